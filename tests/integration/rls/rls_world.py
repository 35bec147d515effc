"""What tests of the audit say to each other."""

from collections.abc import Awaitable, Callable

from tenantry.rls import Facts

FactsAfter = Callable[[str], Awaitable[Facts]]
"""Runs a script as a superuser, and reads what the catalogue then holds."""
