"""``tenantry rls``: every command of the group, which its modules add to it."""

from tenantry.cli import rls_audit, rls_explain, rls_prove, rls_write
from tenantry.cli.rls_app import app

__all__ = ["app", "rls_audit", "rls_explain", "rls_prove", "rls_write"]
