"""What a session over a topic remembers, without a broker."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from tenantry.brokers.kafka.replay_reading import Reading
from tenantry.brokers.kafka.replay_source import Span, _Session


class Log:
    """One partition, of ``length`` records: a consumer of it, as far as a session asks."""

    def __init__(self, length: int) -> None:
        self._offsets, self.commits = iter(range(length)), list[int]()

    def assign(self, places: object) -> None: ...

    def pause(self, places: object) -> None: ...

    def poll(self, wait: float) -> Any:
        offset = next(self._offsets, None)
        return None if offset is None else _message(offset)

    def commit(self, *, offsets: Any, asynchronous: bool) -> None:
        self.commits += [each.offset for each in offsets]


def _message(offset: int) -> Any:
    told = {"error": None, "topic": "t", "partition": 0, "offset": offset, "value": b"{}", "key": None,
            "headers": None, "timestamp": (1, 1_800_000_000_000)}  # fmt: skip
    return SimpleNamespace(**{name: lambda value=value: value for name, value in told.items()})


def test_behind_a_message_that_is_left_no_offset_is_committed_and_none_is_remembered() -> None:
    log = Log(10_000)
    session = _Session(log, Reading.of("events", {}), "t", {0: Span(0, 10_000)})  # type: ignore[arg-type]
    first = session.fetched(100, 0.0).messages
    session.finished([each.receipt for each in first[:40] + first[41:]])
    session.stayed([first[40].receipt])
    while batch := session.fetched(100, 0.0).messages:
        session.finished([each.receipt for each in batch[1:]])
        session.stayed([batch[0].receipt])
    assert log.commits == [40], "the next replay begins with the one that was left"
    tracker = session._trackers[0]
    assert (tracker.position, tracker.last, tracker.unfinished) == (40, 99, 1)
