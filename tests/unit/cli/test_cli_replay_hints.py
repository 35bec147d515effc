"""What `tenantry replay` says can be done next leads on."""

import pytest

from tenantry.cli.output import Output
from tenantry.cli.replay_looks import show_record
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.replay.model import Counts, Hold, HoldRule, ReplayId, ReplayState
from tenantry.replay.progress import Phase, Progress


def held_by(rule: HoldRule) -> Progress:
    return Progress(
        replay=ReplayId("R"),
        tenant=TenantId("acme"),
        state=ReplayState.HELD,
        phase=Phase.HELD,
        at=Timestamp(0.0),
        total=21,
        counted_exactly=True,
        done=2,
        taken=2,
        counts=Counts(delivered=2),
        rate=0.0,
        trend=0.0,
        eta=None,
        eta_why="held",
        running_for=1.0,
        hold=Hold(rule, "the reason"),
    )


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (HoldRule.SAMPLE, "tenantry replay continue -t acme R"),
        (HoldRule.POISON, "tenantry replay continue -t acme R"),
        (HoldRule.BUDGET, "tenantry replay budget -t acme R --messages N"),
        (HoldRule.CONCURRENCY, "starts by itself"),
    ],
)
def test_a_held_replay_is_told_the_order_that_frees_it(
    rule: HoldRule, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_record(Output(json=False, colour=False), held_by(rule))
    assert said in capsys.readouterr().err
