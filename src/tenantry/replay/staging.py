"""From what was fetched to what is staged: which are meant, how they are changed, which cannot be sent. Pure
but for the ids it draws."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tenantry.lanes.model import Target
from tenantry.queue.model import JobId
from tenantry.replay.dedup import key_of
from tenantry.replay.edits import Editor, Unedited
from tenantry.replay.filters import Filter
from tenantry.replay.model import Fetched, Message, ReplaySpec, Staged
from tenantry.replay.poison import origin_of
from tenantry.replay.repairs import NOWHERE
from tenantry.replay.specs import wide_paths

_LONG: Final = 16 * 1024
"""Bytes of a payload from which on a path of many places takes tens of milliseconds."""

NO_TARGET: Final = "nobody says where it was to go; give the replay a target"
REFUSED: Final = "the store cannot hold this message"
BROKEN, CLASS = "broken", "class"
"""The rules by which a message is parked unsent."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """A fetch, sorted. ``taken`` and ``staged`` go together, one each."""

    taken: tuple[Fetched, ...]
    staged: tuple[Staged, ...]
    left: tuple[Fetched, ...]


class Stager:
    """One spec, compiled. Raises :class:`~tenantry.kernel.errors.InvalidValue` for a spec that cannot be."""

    def __init__(self, spec: ReplaySpec, draw_id: Callable[[], str]) -> None:
        self._spec, self._draw_id = spec, draw_id
        self._filter, self._editor = Filter(spec.filters), Editor(spec.edits)
        self._is_wide = bool(wide_paths(spec))

    def is_slow(self, fetched: Sequence[Fetched]) -> bool:
        """Whether these could take so long that no other task should wait for it: long payloads, of which a
        path asks for many places. O(messages)."""
        return self._is_wide and any(len(each.message.payload) > _LONG for each in fetched)

    def sorted(self, fetched: Sequence[Fetched], held: Mapping[str, str]) -> Sorted:
        """``held``: the classes that are held, with why. O(bytes)."""
        meant = [(each, self.is_meant(each)) for each in fetched]
        taken = tuple(each for each, is_meant in meant if is_meant)
        left = tuple(each for each, is_meant in meant if not is_meant)
        return Sorted(taken, tuple(self.staged(each, held) for each in taken), left)

    def is_meant(self, each: Fetched) -> bool:
        """What is no message cannot be asked: it is taken, and parked."""
        return bool(each.fault) or self._filter.matches(each.message)

    def staged(self, each: Fetched, held: Mapping[str, str]) -> Staged:
        """The message as it is to be staged: identity from before the edits."""
        message = each.message
        target = self.target_of(message)
        found = Staged(
            key=key_of(self._spec.tenant, target or NOWHERE, message.id, message.payload),
            job=message.letter or JobId(self._draw_id()),
            message=message,
            target=target or NOWHERE,
            payload=message.payload,
            headers=message.headers,
            origin=origin_of(message, target or NOWHERE),
        )
        fault = each.fault or ("" if target else NO_TARGET)
        return broken(found, fault) if fault else self._edited(found, held)

    def target_of(self, message: Message) -> Target | None:
        """Where it goes, or None where nobody says."""
        return self._spec.target or message.target

    def _edited(self, found: Staged, held: Mapping[str, str]) -> Staged:
        if found.origin in held:
            return replace(found, broken=held[found.origin], park_rule=CLASS)
        edited = self._editor.edit(found.payload, found.headers)
        if isinstance(edited, Unedited):
            return broken(found, edited.reason)
        return replace(found, payload=edited.payload, headers=edited.headers)


def broken(staged: Staged, reason: str) -> Staged:
    """It cannot be sent: to be parked instead. Pure."""
    return replace(staged, broken=reason, park_rule=BROKEN)
