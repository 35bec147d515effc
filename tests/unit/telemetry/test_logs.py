"""What is logged, how loud, and what never is."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from tenantry.config.api_keys import make_api_key
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.randomness import SeededRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.queue import events as queue
from tenantry.queue.model import JobId, NodeId
from tenantry.telemetry.logs import LogSink, configure_logging
from tenantry.telemetry.redaction import HIDDEN, cleaned, redacted
from tenantry.telemetry.sinks import fan_out

KEY = make_api_key(SeededRandomness(1)).text
WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ENCODED = "".join(f"%{byte:02X}" for byte in KEY.encode())


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers, root.level = before, level
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


LEAKS = [
    KEY,
    f"key={KEY} rest",
    f"Authorization: Bearer {KEY}",
    "Authorization: Basic dXNlcjpTRUNSRVQ=",
    "{'authorization': 'Bearer SECRET-opaque'}",
    "(b'x-api-key', b'SECRET-opaque')",
    "X-API-Key:SECRET-opaque",
    "GET /v1/jobs?limit=1&api_key=SECRET-opaque HTTP/1.1",
    "GET /v1/jobs?access_token=SECRET-opaque&a=1",
    f"GET /v1/jobs?k={ENCODED}",
    f"GET /v1/jobs?k={ENCODED.replace('%', '%25')}",
    f"signing with {WHSEC}.",
    WHSEC.replace("_", "%5f"),
    "postgresql://tenantry:SECRET@db.internal:5432/x",
    "bearer SECRET-opaque-token",
    "Cookie: session=SECRET",
]


@pytest.mark.parametrize("text", LEAKS)
def test_what_looks_like_a_secret_is_replaced(text: str) -> None:
    clean = redacted(text)
    assert HIDDEN in clean
    for secret in (KEY[21:], WHSEC[6:], "SECRET", "U0VDUkVU", ENCODED):
        assert secret not in clean
    assert redacted(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "a job of acme was delivered",
        "task_key",
        "https://example.com/hook?page=2",
        "100% of it",
        "",
        "tk_",
        "%zz",
    ],
)
def test_other_text_is_left_alone(text: str) -> None:
    assert redacted(text) == text


def test_fields_named_like_secrets_are_hidden_at_any_depth() -> None:
    entry = {"headers": [{"X-API-Key": "a", "accept": "b"}], "db_password": 1, "monkey": "c", b"secret": b"d"}
    assert cleaned(entry) == {
        "headers": [{"X-API-Key": HIDDEN, "accept": "b"}],
        "db_password": HIDDEN,
        "monkey": "c",
        "b'secret'": "d",
    }


def test_a_structure_without_end_is_cut() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert "nested too deeply" in repr(cleaned(endless))


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_secret_reaches_a_line_by_any_way(form: str) -> None:
    stream = io.StringIO()
    logger = configure_logging(form=form, level="debug", stream=stream)  # type: ignore[arg-type]
    logger.info(
        f"took {KEY}", key=KEY, nested={"a": [WHSEC]}, authorization="Bearer SECRET", raw=WHSEC.encode()
    )
    logging.getLogger("uvicorn.error").warning("GET /?api_key=%s", KEY)
    try:
        raise ValueError(f"bad {KEY}", WHSEC)  # noqa: TRY301 - a traceback is what is wanted
    except ValueError:
        logger.exception("failed")
        logging.getLogger("library").exception("failed with %s", KEY)
    sink = LogSink(logger)
    sink(queue.JobsDied(NodeId("n"), (queue.JobDied(JobId("j"), TenantId("acme"), f"said {KEY}"),)))
    text = stream.getvalue()
    assert text.count("ValueError") >= 2
    assert HIDDEN in text
    for secret in (KEY[3:], WHSEC[6:], "SECRET"):
        assert secret not in text
    assert "\x1b" not in text


def test_a_line_of_json_holds_the_event_its_level_and_its_fields() -> None:
    stream = io.StringIO()
    sink = LogSink(configure_logging(stream=stream))
    sink(queue.PlannerElected("n1", 3))
    sink(queue.StoreFailed("worker", "StoreUnavailable", 0.5))
    first, second = lines(stream)
    assert first.pop("timestamp")
    assert first == {
        "event": "PlannerElected",
        "level": "info",
        "logger": "tenantry",
        "holder": "n1",
        "term": 3,
    }
    assert (second["level"], second["loop"]) == ("warning", "worker")


def test_what_grows_with_the_load_is_not_logged_unless_asked_for() -> None:
    stream = io.StringIO()
    LogSink(configure_logging(stream=stream))(queue.RoundPlanned(1, 2, 3, 0.1))
    assert stream.getvalue() == ""
    LogSink(configure_logging(stream=stream, level="debug"))(queue.RoundPlanned(1, 2, 3, 0.1))
    assert lines(stream)[0]["picks"] == 1


def test_batches_are_written_by_their_first_few_records() -> None:
    stream = io.StringIO()
    died = tuple(queue.JobDied(JobId(f"j{n}"), TenantId("acme"), "timeout") for n in range(1_000))
    LogSink(configure_logging(stream=stream))(queue.JobsDied(NodeId("n"), died))
    jobs = lines(stream)[0]["jobs"]
    assert isinstance(jobs, list)
    assert len(jobs) == 6
    assert jobs[-1] == "and 995 more"


def test_colours_are_for_those_who_ask() -> None:
    stream = io.StringIO()
    configure_logging(form="console", colours=True, stream=stream).info("hello")
    assert "\x1b[" in stream.getvalue()


@pytest.mark.parametrize("wrong", [{"form": "xml"}, {"level": "loud"}])
def test_unknown_settings_are_refused_by_name(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        configure_logging(**wrong)  # type: ignore[arg-type]


def test_sinks_are_told_in_order() -> None:
    heard: list[str] = []
    tell = fan_out(lambda event: heard.append("a"), lambda event: heard.append("b"))
    tell(queue.JobsFed(1))
    assert heard == ["a", "b"]
