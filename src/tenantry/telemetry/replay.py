"""What the events of replays move. One :class:`~tenantry.telemetry.prometheus.Metrics` a coordinator: each
measurement of phases replaces the one before."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tenantry.kernel.events import Event
from tenantry.replay import events
from tenantry.replay.model import Fate
from tenantry.telemetry.meters import Meters

_TOLD_APART = (Fate.STAGED, Fate.DUPLICATE, Fate.PARKED)
"""The fates of messages that were taken; by tenant only these are counted."""


def _fed(meters: Meters, event: events.WindowFed) -> None:
    meters.observe("replay_feed_seconds", event.took_for)
    meters.count("replay_messages_left_total", event.left)
    for fate, count in event.fates.items():
        meters.count("replay_messages_total", count, fate.value)
        if fate in _TOLD_APART:
            meters.count_tenant("tenant_replay_messages_total", event.tenant, count, fate.value)


def _parked(meters: Meters, event: events.MessagesParked) -> None:
    meters.count("replay_messages_parked_total", event.count, event.rule)


def _held(meters: Meters, event: events.ReplayHeld) -> None:
    meters.count("replays_held_total", 1, event.rule.value)


def _class_held(meters: Meters, event: events.ClassHeld) -> None:
    meters.count("replay_classes_held_total", 1)


def _in_circles(meters: Meters, event: events.ReplayInCircles) -> None:
    meters.count("replays_in_circles_total", 1)
    meters.count_tenant("tenant_replays_in_circles_total", event.tenant, 1)


def _source_failed(meters: Meters, event: events.SourceFailed) -> None:
    meters.count("replay_source_failures_total", 1, event.kind)


def _faulted(meters: Meters, event: events.ReplayFaulted | events.CoordinatorFaulted) -> None:
    meters.count("replay_faults_total", 1)


def _lost(meters: Meters, event: events.ReplayLost) -> None:
    meters.count("replay_leases_lost_total", 1)


def _ended(meters: Meters, event: events.ReplayEnded) -> None:
    meters.count("replays_ended_total", 1, event.state.value)


def _measured(meters: Meters, event: events.ReplaysMeasured) -> None:
    meters.forget("replays")
    for phase, count in event.phases.items():
        meters.show("replays", count, phase)


HANDLERS: Mapping[type[Event], Callable[[Meters, Any], None]] = MappingProxyType(
    {
        events.WindowFed: _fed,
        events.MessagesParked: _parked,
        events.ReplayHeld: _held,
        events.ClassHeld: _class_held,
        events.ReplayInCircles: _in_circles,
        events.SourceFailed: _source_failed,
        events.ReplayFaulted: _faulted,
        events.CoordinatorFaulted: _faulted,
        events.ReplayLost: _lost,
        events.ReplayEnded: _ended,
        events.ReplaysMeasured: _measured,
    }
)
