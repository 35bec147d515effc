"""What an attack takes from a database: one transaction that ends undone, whatever happens in it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tenantry.rls.facts import Facts
from tenantry.rls.prove.model import Answer, Attempt
from tenantry.rls.prove.values import Kind


class Range(Protocol):
    """A place where attempts can be made. For one task. Every method raises
    :class:`~tenantry.kernel.errors.StoreUnavailable` where the server cannot be reached."""

    async def facts(self) -> Facts:
        """The catalogue as it is in the transaction."""
        ...

    async def kinds(self) -> Mapping[int, Kind]:
        """Domains and enums by the OID of the type."""
        ...

    async def checks(self) -> Mapping[int, tuple[str, ...]]:
        """The CHECK constraints of each table, as SQL."""
        ...

    async def bounds(self) -> Mapping[int, str]:
        """How each partition is bounded, as SQL."""
        ...

    async def is_free(self, table: str, column: str, text: str) -> bool:
        """Whether no row of ``table`` has ``text`` in ``column``, nor could not for its type."""
        ...

    async def plant(self, statement: str) -> tuple[str | None, str]:
        """Inserts a row, with triggers and policies off, and gives it back as JSON; or None and why not."""
        ...

    async def keep(self) -> None:
        """From here on rows can be taken back."""
        ...

    async def take_back(self) -> None:
        """Undoes everything since :meth:`keep`, which may then be called again."""
        ...

    async def attempt(self, attempt: Attempt, planted: Sequence[str], watched: Sequence[str]) -> Answer:
        """Makes it and undoes it. ``planted``: rows as JSON that may be shown. ``watched``: queries of two
        columns, a table's title and a hash of the others' rows there."""
        ...
