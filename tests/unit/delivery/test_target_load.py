"""A test target under load, in time that is only counted: what each mood promises."""

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.testing.exchange import Manner, Then, answer
from tenantry.testing.load import Mood, flapping, limiting, serving, slowing
from tenantry.testing.target import Target

OK = Manner(answer())


def meets(mood: Mood, *times: float) -> list[Manner]:
    return [mood(now, lambda: OK) for now in times]


def status(manner: Manner) -> bytes:
    return manner.raw.split(b" ")[1]


def test_so_many_are_served_at_once_and_the_others_wait_in_line() -> None:
    waits = [round(manner.wait_for, 6) for manner in meets(serving(2, 1.0, None), 0.0, 0.0, 0.0, 0.0, 0.5)]
    assert waits == [1.0, 1.0, 2.0, 2.0, 2.5]


def test_a_server_that_is_idle_again_makes_nobody_wait() -> None:
    assert [manner.wait_for for manner in meets(serving(1, 1.0, None), 0.0, 5.0)] == [1.0, 1.0]


def test_beyond_the_line_it_answers_503_and_holds_no_server_for_it() -> None:
    manners = meets(serving(1, 1.0, 1), 0.0, 0.0, 0.0, 0.0, 1.0)
    assert [status(manner) for manner in manners] == [b"200", b"200", b"503", b"503", b"200"]
    assert manners[-1].wait_for == 2.0


def test_a_curve_is_asked_for_the_number_in_flight() -> None:
    waits = [manner.wait_for for manner in meets(slowing(lambda n: 0.1 * n), 0.0, 0.0, 0.0, 1.0)]
    assert waits == pytest.approx([0.1, 0.2, 0.3, 0.1])


def test_beyond_the_rate_it_answers_429_with_the_seconds_after_which_one_more_passes() -> None:
    mood = limiting(0.25, 3.0, None)
    manners = meets(mood, 0.0, 0.0, 0.0, 0.0)
    assert [status(manner) for manner in manners] == [b"200", b"200", b"200", b"429"]
    assert b"Retry-After: 3\r\n" in manners[-1].raw
    assert status(meets(mood, 3.0)[0]) == b"200"


def test_a_retry_after_that_was_asked_for_is_said_instead() -> None:
    assert b"Retry-After: 600\r\n" in meets(limiting(1.0, 0.0, 600.0), 0.0, 0.0)[1].raw


def test_it_flaps_from_its_first_request_on() -> None:
    manners = meets(flapping(10.0, 5.0), 100.0, 109.9, 110.0, 114.9, 115.0, 125.0)
    assert [manner.then is Then.RESET for manner in manners] == [False, False, True, True, False, True]


def test_what_is_refused_by_rate_takes_no_server() -> None:
    story = Target().serves(1, 1.0).limits(1.0)
    first, second, third = (story._next(now) for now in (0.0, 0.0, 1.0))
    assert first is not None
    assert second is not None
    assert third is not None
    assert (status(second), third.wait_for) == (b"429", 1.0)


def test_a_new_story_ends_all_moods() -> None:
    manner = Target().serves(1, 1.0).limits(0.001).answers(204)._next(0.0)
    assert manner is not None
    assert (status(manner), manner.wait_for) == (b"204", 0.0)


@pytest.mark.parametrize(
    ("said", "place"),
    [
        (lambda target: target.serves(0, 1.0), "at_once"),
        (lambda target: target.serves(1, 0.0), "takes"),
        (lambda target: target.serves(1, 1.0, line=-1), "line"),
        (lambda target: target.limits(0.0), "rate"),
        (lambda target: target.limits(1.0, burst=-1.0), "burst"),
        (lambda target: target.flaps(0.0, 1.0), "up_for"),
        (lambda target: target.flaps(1.0, float("nan")), "down_for"),
        (lambda target: target.trickles(b"", 1.0), "trickles"),
        (lambda target: target.trickles(b"x", -1.0), "trickles"),
        (lambda target: target.slows(lambda n: -1.0)._next(0.0), "curve"),
    ],
)
def test_a_meaningless_story_is_refused_with_its_place(said: object, place: str) -> None:
    with pytest.raises(InvalidValue, match=place):
        said(Target())  # type: ignore[operator]
