"""The product's shaper in the simulated lane: the code that a planner steps, in rounds as a planner's."""

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.randomness import Randomness
from tenantry.lanes import shaper
from tenantry.lanes.outcome import Outcome
from tenantry.lanes.shaper import Permission, ShaperSettings, ShaperState, Standing
from tenantry.lanes.summary import EMPTY, summary_of
from tenantry.simulation.shaping.lane import TIMEOUT, Ending

ROUND = 0.01
"""Seconds between two steps at least: a planner hears of many endings at once."""

_CLASSES = {200: "ok", 429: "http_429", 503: "http_503", 0: "refused", -1: "timeout"}


class Ours:
    """A lane's shaper, driven as a planner drives it."""

    name = "ours"

    def __init__(self, randomness: Randomness, settings: ShaperSettings | None = None) -> None:
        self._settings = settings or ShaperSettings(timeout_for=TIMEOUT)
        self._randomness = randomness
        self.state: ShaperState = shaper.opened(Timestamp(0.0))
        self._heard: list[Outcome] = []
        self._stepped_at = -ROUND
        self._grant: Permission | None = None

    def allowed(self, in_flight: int, now: float) -> int:
        if self._is_due(in_flight, now):
            self._step(in_flight, now)
        grant = self._grant
        if grant is None or (grant.not_before is not None and now >= grant.not_before):
            grant = self._grant = shaper.permission(
                self.state, in_flight=in_flight, now=Timestamp(now), settings=self._settings
            )
        return grant.starts

    def started(self, count: int, in_flight: int, now: float) -> None:
        self._grant = None
        self.state = shaper.started(
            self.state, count, in_flight=in_flight, now=Timestamp(now), settings=self._settings
        )

    def ended(self, ending: Ending, in_flight: int, now: float) -> None:
        self._grant = None
        outcome = Outcome(_CLASSES[ending.status], retry_after=ending.retry_after, busy_for=ending.took)
        self._heard.append(outcome)

    def next_at(self, in_flight: int, now: float) -> float | None:
        moments = [self._stepped_at + ROUND] if self._heard else []
        due = shaper.due_at(self.state, in_flight=in_flight, settings=self._settings)
        if due is not None:
            moments.append(max(due, self._stepped_at + ROUND))
        if self._grant is not None and self._grant.not_before is not None:
            moments.append(self._grant.not_before)
        return min(moments, default=None)

    def limit(self) -> float:
        return self.state.limit.level

    def _is_due(self, in_flight: int, now: float) -> bool:
        if now < self._stepped_at + ROUND:
            return False
        due = shaper.due_at(self.state, in_flight=in_flight, settings=self._settings)
        return bool(self._heard) or (due is not None and now >= due)

    def _step(self, in_flight: int, now: float) -> None:
        summary = summary_of(self._heard) if self._heard else EMPTY
        self._heard.clear()
        self._stepped_at, self._grant = now, None
        draw = self._randomness.uniform(0.0, 1.0)
        self.state = shaper.step(
            self.state, summary, Standing(in_flight, Timestamp(now)), self._settings, draw=draw
        )
