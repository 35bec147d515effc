"""The arithmetic that benchmarks are judged by."""

import json

import pytest
from benchmarks.docs import filled
from benchmarks.figures import (
    BEST,
    NONE,
    Goal,
    Measured,
    as_json,
    from_json,
    percentile,
    ratio_of,
    short,
    spread,
    waits_of,
)
from benchmarks.report import markdown


def measured(goal: Goal = NONE, better: str = "higher", **runs: list[float]) -> Measured:
    return Measured("a claim", "jobs/s", better, goal, runs)  # type: ignore[arg-type]


def test_a_figure_is_the_median_of_its_runs_so_one_outlier_changes_nothing() -> None:
    claim = measured(ours=[10.0, 11.0, 900.0], pgqueuer=[5.0, 0.1, 6.0]).judged()
    assert (claim.ours, claim.peers, claim.runs) == (11.0, {"pgqueuer": 5.0}, 3)


def test_a_ratio_above_one_is_better_whichever_way_the_unit_goes() -> None:
    assert ratio_of(200.0, {"a": 100.0}, "higher") == 2.0
    assert ratio_of(10.0, {"a": 500.0}, "lower") == 50.0


def test_without_a_name_the_ratio_is_to_the_best_peer_and_not_to_the_worst() -> None:
    peers = {"slow": 10.0, "fast": 100.0}
    assert ratio_of(200.0, peers, "higher") == 2.0
    assert ratio_of(5.0, peers, "lower") == 2.0
    assert ratio_of(200.0, peers, "higher", "slow") == 20.0


def test_there_is_no_ratio_to_a_peer_that_was_not_there_or_did_nothing() -> None:
    assert ratio_of(1.0, {}, "higher") is None
    assert ratio_of(1.0, {"a": 2.0}, "higher", "b") is None
    assert ratio_of(1.0, {"a": 0.0}, "higher") is None


@pytest.mark.parametrize(("ours", "met"), [(200.0, True), (199.0, False)])
def test_a_goal_against_a_peer_is_met_from_exactly_its_ratio_on(ours: float, met: bool) -> None:
    goal = Goal(2.0, "pgqueuer")
    claim = measured(goal, ours=[ours], pgqueuer=[100.0], awa=[500.0]).judged()
    assert (claim.met, claim.goal) == (met, "≥ 2 × pgqueuer")


@pytest.mark.parametrize(("ours", "met"), [(10.0, True), (10.1, False)])
def test_a_goal_of_ours_alone_is_met_up_to_its_limit(ours: float, met: bool) -> None:
    claim = measured(Goal(at_most=10.0), "lower", ours=[ours]).judged()
    assert (claim.met, claim.ratio, claim.goal) == (met, None, "≤ 10")


def test_where_nothing_is_asked_or_nobody_compared_nothing_is_met_or_missed() -> None:
    assert measured(ours=[1.0], awa=[2.0]).judged().met is None
    assert measured(Goal(2.0, BEST), ours=[1.0]).judged().met is None


def test_the_floor_is_shown_and_is_no_peer() -> None:
    claim = measured(ours=[1.0], floor=[9.0], awa=[2.0]).judged()
    assert (claim.floor, claim.peers, claim.ratio) == (9.0, {"awa": 2.0}, 0.5)


def test_a_claim_without_a_run_of_ours_is_an_error_and_not_a_line() -> None:
    with pytest.raises(ValueError, match="ours was not measured"):
        measured(awa=[1.0]).judged()


def test_spread_is_the_range_over_the_median() -> None:
    assert spread([8.0, 10.0, 13.0]) == 0.5
    assert spread([7.0]) == 0.0
    assert spread([0.0, 0.0]) == 0.0


def test_a_percentile_is_the_nearest_rank() -> None:
    values = [float(n) for n in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1.0)) == (50.0, 99.0, 100.0)
    assert percentile([3.0], 0.99) == 3.0
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_in_a_fifo_what_has_not_started_is_the_last_and_counts_with_what_it_had_waited() -> None:
    due = [4.0, 3.0, 2.0, 1.0]
    assert waits_of([0.5, 0.6], due, in_order=True) == [0.5, 0.6, 2.0, 1.0]
    assert waits_of([], due, in_order=True) == due


def test_out_of_order_what_has_not_started_counts_as_the_worst_that_may_be() -> None:
    assert waits_of([0.5, 0.6], [4.0, 3.0, 2.0, 1.0], in_order=False) == [0.5, 0.6, 4.0, 3.0]


def test_when_all_have_started_only_their_waits_count() -> None:
    assert waits_of([0.1, 0.2], [2.0, 1.0], in_order=True) == [0.1, 0.2]


def test_claims_come_back_from_json_as_they_went_and_hold_the_published_keys() -> None:
    claims = [measured(Goal(2.0, "awa"), ours=[4.0], floor=[9.0], awa=[2.0]).judged()]
    text = json.dumps(as_json(claims))
    assert from_json(json.loads(text)) == claims
    keys = {"claim", "unit", "ours", "floor", "peers", "ratio", "goal", "met", "runs", "spread"}
    assert set(json.loads(text)[0]) == keys


def test_figures_are_short_and_a_missing_one_is_a_dash() -> None:
    assert [short(v) for v in (12345.6, 99.96, 0.01234, 0.0, None)] == ["12,346", "100", "0.0123", "0", "–"]


def test_only_what_stands_between_its_marks_is_replaced_in_the_docs() -> None:
    page = "before\n<!-- figures: queue -->\nold\n<!-- /figures -->\nafter"
    once = filled(page, "queue", "new queue")
    assert once == "before\n<!-- figures: queue -->\n\nnew queue\n<!-- /figures -->\nafter"
    assert filled(once, "queue", "new queue") == once
    assert filled(page, "lanes", "of another") == page


def test_the_table_of_the_docs_has_a_row_a_claim_and_says_what_was_missed() -> None:
    claim = measured(Goal(2.0, "awa"), ours=[1.0], awa=[2.0]).judged()
    assert markdown([claim]).splitlines()[2].endswith("| 0.5 | ≥ 2 × awa | no | 0% |")
