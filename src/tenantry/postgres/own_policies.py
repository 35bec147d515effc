"""Row policies of Tenantry's own schema, as its audit takes them: what is declared, and what is accepted.

The schema is audited like any other (``tenantry rls audit --own``), and a test holds each migration to it:
what is found must be mended, or stand in ``own_policies.toml`` with its reason.
"""

from collections.abc import Mapping
from importlib.resources import files

from tenantry.rls.baseline import parse_baseline
from tenantry.rls.model import Declared

OWN = Declared(
    application_roles=("tenantry_tenant",),
    tenant_columns=("tenant_id",),
    service_roles={
        "tenantry_engine": "the planner and the workers serve all tenants; nothing of a tenant's logs in"
    },
    schemas=("tenantry",),
    setting="tenantry.tenant_id",
)


def accepted() -> Mapping[str, str]:
    """What is accepted of the findings, each with the reason."""
    return parse_baseline(
        files("tenantry.postgres").joinpath("own_policies.toml").read_text(encoding="utf-8")
    )
