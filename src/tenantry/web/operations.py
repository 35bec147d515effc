"""The table of what tenants can do over HTTP."""

from tenantry.queue.model import JobState
from tenantry.web import bulk, jobs, wire
from tenantry.web.bodies import NDJSON
from tenantry.web.calls import JSON, Call
from tenantry.web.surface import Operation, Parameter, Surface

ALWAYS = (
    "malformed-request",
    "invalid-parameter",
    "credential-ambiguous",
    "credential-in-query",
    "unauthenticated",
    "tenant-mismatch",
    "unknown-tenant",
    "internal-fault",
    "store-unavailable",
)
"""What any operation that needs a key can answer."""

_BODY = ("request-timeout", "body-too-large", "unsupported-media-type", "invalid-value")
_ADMISSION = ("over-rate", "over-bound", "overloaded", "idempotency-key-reused")
_LOCATION = {"Location": "Where the state can be read"}

_KEY = Parameter(
    "Idempotency-Key",
    "header",
    "A second submit with the same key and body answers with the first job. Quoted or not",
    {"type": "string", "minLength": 1, "maxLength": 255},
)
_TENANT = Parameter(
    "X-Tenant-Id", "header", "Not needed. When it is there it must name the key's tenant", {"type": "string"}
)
_STATE = Parameter("state", "query", "Only jobs in this state", {"enum": [state.value for state in JobState]})
_LIMIT = Parameter(
    "limit",
    "query",
    "At most so many, the newest first",
    {"type": "integer", "minimum": 1, "maximum": 1_000, "default": 100},
)

OPERATIONS: tuple[Operation[Call], ...] = (
    Operation(
        "submitJob",
        "POST",
        "/v1/jobs",
        jobs.submit_job,
        "Submit one job. 202 means that it is durably accepted",
        202,
        wire.JobAccepted,
        body={JSON: wire.NewJob},
        parameters=(_KEY, _TENANT),
        problems=_BODY + _ADMISSION,
        headers=_LOCATION,
    ),
    Operation(
        "listJobs",
        "GET",
        "/v1/jobs",
        jobs.list_jobs,
        "List the newest jobs, without payloads",
        200,
        wire.JobList,
        parameters=(_STATE, _LIMIT, _TENANT),
    ),
    Operation(
        "submitBatch",
        "POST",
        "/v1/batches",
        jobs.submit_batch,
        "Submit up to 1,000 jobs, all or none. A fault names its row",
        202,
        wire.JobsAccepted,
        body={JSON: wire.NewJobs},
        parameters=(_TENANT,),
        problems=(*_BODY, *_ADMISSION, "batch-over-bound"),
    ),
    Operation(
        "submitBulk",
        "POST",
        "/v1/bulk",
        bulk.submit_bulk,
        "Store a set of jobs larger than the bound; they are fed in as the tenant's bound has room",
        202,
        wire.BulkProgress,
        body={JSON: wire.NewJobs, NDJSON: wire.NewJob},
        parameters=(_TENANT,),
        problems=(*_BODY, "over-bound", "overloaded", "batch-over-bound"),
        headers=_LOCATION,
    ),
    Operation(
        "getBulk",
        "GET",
        "/v1/bulk/{id}",
        bulk.get_bulk,
        "How far a bulk set is",
        200,
        wire.BulkProgress,
        parameters=(_TENANT,),
        problems=("not-found",),
    ),
    Operation(
        "getJob",
        "GET",
        "/v1/jobs/{id}",
        jobs.get_job,
        "A job in any state, ended ones as long as outcomes are kept",
        200,
        wire.Job,
        parameters=(_TENANT,),
        problems=("not-found",),
    ),
    Operation(
        "explainJob",
        "GET",
        "/v1/jobs/{id}/explanation",
        jobs.explain_job,
        "What a waiting job waits for, most decisive first",
        200,
        wire.Explanation,
        parameters=(_TENANT,),
        problems=("not-found",),
    ),
    Operation(
        "cancelJob",
        "POST",
        "/v1/jobs/{id}/cancel",
        jobs.cancel_job,
        "Cancel a job that is waiting, delayed or parked. Cancelling twice is the same as once",
        200,
        wire.JobCancelled,
        parameters=(_TENANT,),
        problems=("not-found", "not-cancellable"),
    ),
)

TENANT_SURFACE: Surface[Call] = Surface(
    title="Tenantry",
    summary="Submit jobs; each tenant gets its fair share",
    operations=OPERATIONS,
    always=ALWAYS,
    health=("/v1/health", "/v1/health/ready"),
)
