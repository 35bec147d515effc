"""Where the authority is: what is accepted, and that a password is never shown."""

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.valkey import ValkeyLeaseAuthority
from tenantry.valkey.topology import SLOTS, asked_to, slot_owners
from tenantry.valkey.urls import Kind, ValkeyUrl, parse


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("redis://h", ValkeyUrl(Kind.ONE, (("h", 6379),))),
        ("valkeys://u:p%40x@h:7/3", ValkeyUrl(Kind.ONE, (("h", 7),), None, "", 3, True, "u", "p@x")),
        ("redis://:p@[::1]:7", ValkeyUrl(Kind.ONE, (("::1", 7),), password="p")),
        ("unix:///run/v.sock", ValkeyUrl(Kind.ONE, path="/run/v.sock")),
        (
            "redis+sentinel://a,b:9/mine/2",
            ValkeyUrl(Kind.SENTINEL, (("a", 26379), ("b", 9)), None, "mine", 2),
        ),
        ("valkey+cluster://a,b:9", ValkeyUrl(Kind.CLUSTER, (("a", 6379), ("b", 9)))),
    ],
)
def test_a_url_is_read(text: str, url: ValkeyUrl) -> None:
    assert parse(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "http://h", "redis://", "redis://a,b", "redis+cluster://a/1", "redis+sentinel://a", "redis+other://a",
        "redis://h/x", "redis://h/0/1", "redis://h:port", "unix://", "",
    ],
)  # fmt: skip
def test_what_is_no_url_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(InvalidValue, match=r"redis\+sentinel://"):
        parse(text)


def test_a_password_is_shown_nowhere() -> None:
    assert "secret" not in repr(parse("redis://u:secret@h"))
    with pytest.raises(InvalidValue) as refused:
        parse("redis://u:secret@h/x")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("arguments", [{"timeout": 0.0}, {"prefix": "a{b}"}, {"prefix": ""}])
def test_settings_out_of_range_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        ValkeyLeaseAuthority("redis://h", **arguments)  # type: ignore[arg-type]


def test_every_slot_has_its_owner_and_a_host_that_is_not_told_is_the_one_asked() -> None:
    told = [[0, 8000, [b"", 1, b"id"], [b"r", 2, b"id"]], [8001, SLOTS - 1, [b"h", 3, b"id"]]]
    owners, named = slot_owners(told, "me")
    assert (owners[0], owners[8000], owners[8001], owners[-1]) == ("me:1", "me:1", "h:3", "h:3")
    assert named == ["me:1", "r:2", "h:3"]


def test_only_ask_asks_elsewhere() -> None:
    from valkey.exceptions import ResponseError

    assert asked_to(ResponseError("ASK 12 h:1")) == "h:1"
    assert asked_to(ResponseError("MOVED 12 h:1")) == ""
    assert asked_to(OSError("ASK 12 h:1")) == ""
