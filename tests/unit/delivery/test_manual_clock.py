"""The public clock for tests moves only when told."""

import pytest

from tenantry.kernel.clock import Clock
from tenantry.kernel.errors import InvalidValue
from tenantry.testing.clock import ManualClock


def test_both_clocks_advance_together_and_only_the_wall_steps() -> None:
    manual = ManualClock(at=100.0)
    clock: Clock = manual
    began = clock.monotonic()
    manual.advance(2.5)
    manual.step_wall(-3_600)
    assert clock.monotonic() - began == 2.5
    assert clock.now() == 100.0 + 2.5 - 3_600


def test_time_does_not_go_back() -> None:
    with pytest.raises(InvalidValue, match="step_wall"):
        ManualClock().advance(-1)
