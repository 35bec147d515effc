"""What the audit takes from a database."""

from typing import Protocol

from tenantry.rls.facts import Facts


class Catalogue(Protocol):
    """A database whose catalogue can be read."""

    async def facts(self) -> Facts:
        """The picture of one moment. Needs no privilege beyond CONNECT; takes no lock that anyone waits for.

        Raises :class:`~tenantry.kernel.errors.StoreUnavailable`.
        """
        ...
