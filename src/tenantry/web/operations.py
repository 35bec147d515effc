"""The table of what tenants can do over HTTP."""

from typing import Any

from tenantry.queue.model import JobState
from tenantry.replay.desk import ReplayService
from tenantry.replay.model import ReplayState
from tenantry.replay.progress import Progress
from tenantry.web import bulk, jobs, replays, wire, wire_replays
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

JOB_OPERATIONS: tuple[Operation[Call], ...] = (
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

_REPLAYS = "/v1/replays/{id}"
_REPLAY_STATE = Parameter(
    "state", "query", "Only replays in this state", {"enum": [state.value for state in ReplayState]}
)
_ORDERS: tuple[tuple[str, str, Any], ...] = (
    ("start", "Run a plan. Starting what runs already is the same as once", ReplayService.start),
    ("pause", "Start nothing more of it; what is in flight ends", ReplayService.pause),
    ("resume", "End a pause", ReplayService.resume),
    ("continue", "Let a held replay go on", ReplayService.proceed),
    ("cancel", "Take no more; what waits returns to the dead letters", ReplayService.cancel),
)

REPLAY_OPERATIONS: tuple[Operation[Call], ...] = (
    Operation(
        "planReplay",
        "POST",
        "/v1/replays",
        replays.plan_replay,
        "Look at what a replay would meet, and keep the plan for a day. Nothing is taken",
        201,
        wire_replays.ReplayPlan,
        body={JSON: wire_replays.NewReplay},
        parameters=(_TENANT,),
        problems=(*_BODY, "source-unavailable"),
        headers=_LOCATION,
    ),
    Operation(
        "listReplays",
        "GET",
        "/v1/replays",
        replays.list_replays,
        "The newest replays and plans",
        200,
        wire_replays.ReplayList,
        parameters=(_REPLAY_STATE, _LIMIT, _TENANT),
    ),
    Operation(
        "getReplay",
        "GET",
        _REPLAYS,
        replays.get_replay,
        "Where a replay is: phase, counts that add up, rate, what is left as a range",
        200,
        Progress,
        parameters=(_TENANT,),
        problems=("not-found",),
    ),
    Operation(
        "followReplay",
        "GET",
        f"{_REPLAYS}/events",
        replays.follow_replay,
        "The same record as server-sent events named `progress`, until an event `end`",
        200,
        Progress,
        parameters=(_TENANT,),
        problems=("not-found",),
        media_type=replays.EVENT_STREAM,
    ),
    *(
        Operation(
            f"{order}Replay",
            "POST",
            f"{_REPLAYS}/{order}",
            replays.ordering(give),
            summary,
            200,
            Progress,
            parameters=(_TENANT,),
            problems=("not-found", "not-now"),
        )
        for order, summary, give in _ORDERS
    ),
    Operation(
        "budgetReplay",
        "PUT",
        f"{_REPLAYS}/budget",
        replays.rebudget,
        "Another budget. A replay that the old one held goes on where the new one has room",
        200,
        Progress,
        body={JSON: wire_replays.ReplayBudget},
        parameters=(_TENANT,),
        problems=(*_BODY, "not-found", "not-now"),
    ),
    Operation(
        "listParked",
        "GET",
        "/v1/parked",
        replays.list_parked,
        "Messages that replays put aside",
        200,
        wire_replays.ParkedList,
        parameters=(
            Parameter("replay", "query", "Only those of this replay", {"type": "string", "format": "uuid"}),
            Parameter("after", "query", "Those behind this one", {"type": "string", "format": "uuid"}),
            _LIMIT,
            _TENANT,
        ),
    ),
    Operation(
        "getParked",
        "GET",
        "/v1/parked/{id}",
        replays.get_parked,
        "One message that was put aside, whole",
        200,
        wire_replays.Parked,
        parameters=(_TENANT,),
        problems=("not-found",),
    ),
    Operation(
        "sendBackParked",
        "POST",
        "/v1/parked/{id}/send-back",
        replays.send_back,
        "Put it back in line in its replay, edited or as it is (`{}`)",
        200,
        wire_replays.ParkedDone,
        body={JSON: wire_replays.SendBack},
        parameters=(_TENANT,),
        problems=(*_BODY, "not-found"),
    ),
    Operation(
        "dropParked",
        "POST",
        "/v1/parked/{id}/drop",
        replays.drop_parked,
        "End it: it is never sent",
        200,
        wire_replays.ParkedDone,
        parameters=(_TENANT,),
        problems=("not-found",),
    ),
)

OPERATIONS: tuple[Operation[Call], ...] = (*JOB_OPERATIONS, *REPLAY_OPERATIONS)

TENANT_SURFACE: Surface[Call] = Surface(
    title="Tenantry",
    summary="Submit jobs, and replay dead letters; each tenant gets its fair share",
    operations=OPERATIONS,
    always=ALWAYS,
    health=("/v1/health", "/v1/health/ready"),
)
