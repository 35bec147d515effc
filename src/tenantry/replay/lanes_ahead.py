"""What a replay knows of the lanes that it feeds: permits, shares, and the classes of messages that are held.

Asked once in a while. It is advice: while nobody answers, the last answer stands."""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from tenantry.kernel.errors import DependencyError
from tenantry.kernel.events import EventSink
from tenantry.kernel.instant import Instant, Seconds
from tenantry.queue.events import StoreFailed
from tenantry.replay.events import ClassHeld
from tenantry.replay.model import Counts, ReplayView
from tenantry.replay.poison import held_classes
from tenantry.replay.ports import ReplayStore, Standing

MOST_TARGETS: Final = 50
"""So many targets are asked about, those that were headed for last."""

MOST_CLASSES: Final = 100
"""Classes that are held at once: those with most failures."""


class LanesAhead:
    """Of one replay. One task only."""

    def __init__(self, view: ReplayView, store: ReplayStore, standing: Standing, emit: EventSink) -> None:
        self._view, self._store, self._standing, self._emit = view, store, standing, emit
        self._targets: OrderedDict[str, None] = OrderedDict()
        self._asked_at: Instant | None = None
        self._faults_then: int | None = None
        self.permits = 0
        self.shares: tuple[float, float] | None = None
        self.held_classes: Mapping[str, str] = MappingProxyType({})

    def heads_for(self, targets: Collection[str]) -> None:
        """Messages to these were staged."""
        for target in targets:
            self._targets[target] = None
            self._targets.move_to_end(target)
        while len(self._targets) > MOST_TARGETS:
            self._targets.popitem(last=False)

    def forget_classes(self) -> None:
        """A person let it go on: the store counts anew, and is asked at once."""
        self.held_classes, self._faults_then, self._asked_at = MappingProxyType({}), None, None

    async def look(self, counts: Counts, now: Instant, *, every: Seconds) -> None:
        """Ask again if it is time. Raises :class:`DependencyError` of the replay's store alone."""
        if self._asked_at is not None and now - self._asked_at < every:
            return
        self._asked_at = now
        if counts.message_faults != self._faults_then:
            self._faults_then = counts.message_faults
            await self._ask_classes()
        try:
            tenant = self._view.spec.tenant
            paces = await self._standing.lanes(tenant, tuple(self._targets)) if self._targets else {}
            self.permits = sum(pace.permits for pace in paces.values())
            self.shares = await self._standing.shares(tenant)
        except DependencyError as error:
            self._emit(StoreFailed("replay", type(error).__name__, every))

    async def _ask_classes(self) -> None:
        spec = self._view.spec
        failures = await self._store.failures(self._view.id, limit=MOST_CLASSES)
        held = held_classes(failures, spec.class_after)
        for origin in held.keys() - self.held_classes.keys():
            self._emit(ClassHeld(spec.tenant, self._view.id, origin, held[origin]))
        self.held_classes = held
