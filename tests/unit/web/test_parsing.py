"""From bytes to jobs: nothing is lost or guessed, and no input makes anything but a job or a refusal."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.delivery.client_wire import encode_job, encode_jobs, encode_lines
from tenantry.kernel.errors import InvalidValue
from tenantry.lanes.model import Target
from tenantry.queue.model import JobClass, NewJob
from tenantry.web.parsing import JOB_KEYS, job_of, lines, read_job, read_line, read_rows
from tenantry.web.problems import Refused

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
).filter(lambda value: "\\ud" not in json.dumps(value))

JOBS = st.builds(
    NewJob,
    target=st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable()).map(Target),
    payload=st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()),
    job_class=st.sampled_from(JobClass),
    delay_for=st.floats(0, 1e6),
    cost=st.none() | st.floats(0.1, 1e4),
    ordering_key=st.none() | st.text(min_size=1, max_size=9).filter(str.isprintable),
    idempotency_key=st.none() | st.text(min_size=1, max_size=9).filter(str.isprintable),
    content_type=st.sampled_from(["application/json", "text/plain"]),
)


@given(VALUES, st.sampled_from([None, 0, 2]))
def test_the_payload_is_its_bytes_whatever_json_it_is(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    body = b'{"payload": %s , "target":"a"}' % text
    assert read_job(body).payload == text


@given(JOBS)
def test_what_the_client_writes_the_server_reads_back(job: NewJob) -> None:
    assert read_job(encode_job(job)) == job
    assert read_line(encode_lines([job]), 0) == job


@given(st.lists(JOBS, max_size=5))
def test_a_batch_is_read_back_row_by_row(jobs: list[NewJob]) -> None:
    rows = read_rows(encode_jobs(jobs))
    assert [job_of(bytes(row), f"jobs[{n}]") for n, row in enumerate(rows)] == jobs


@given(st.binary(max_size=200))
def test_no_bytes_make_anything_but_a_job_or_a_refusal(body: bytes) -> None:
    for read in (read_job, read_rows):
        try:
            read(body)  # type: ignore[operator]
        except (Refused, InvalidValue) as refusal:
            assert str(refusal)


@given(st.dictionaries(st.sampled_from([*JOB_KEYS, "kost"]), VALUES, max_size=6))
def test_no_object_makes_anything_but_a_job_or_a_named_fault(fields: dict[str, Any]) -> None:
    try:
        read_job(json.dumps(fields).encode())
    except InvalidValue as error:
        assert error.path in ("", *JOB_KEYS)
    except Refused as refusal:
        assert refusal.problem.kind.name == "malformed-request"


@given(st.sampled_from(JOB_KEYS), st.booleans(), st.booleans())
def test_a_key_that_stands_twice_is_found_however_it_is_written(key: str, escaped: bool, last: bool) -> None:
    values = {"target": '"a"', "payload": "1", "delay_for": "1", "cost": "1"}
    fields = {"target": '"a"', "payload": "1", key: values.get(key, '"live"')}
    if key == "payload_base64":
        del fields["payload"]
        fields[key] = '"AA=="'
    other = f"\\u{ord(key[0]):04x}{key[1:]}" if escaped else key
    pairs = [f'"{name}":{value}' for name, value in fields.items()]
    pairs.insert(len(pairs) if last else 0, f'"{other}":{fields[key]}')
    body = "{" + ",".join(pairs) + "}"
    with pytest.raises(Refused) as raised:
        read_job(body.encode())
    assert f"{key} stands twice" in raised.value.problem.detail


@given(VALUES)
def test_keys_inside_the_payload_are_the_tenant_s_own(value: object) -> None:
    inner = f'{{"target":{json.dumps(value)},"target":1,"cost":2,"cost":3,"payload":{{}},"jobs":[]}}'
    body = f'{{"target":"cost","ordering_key":"payload","payload":{inner}}}'.encode()
    assert read_job(body).payload == inner.encode()
    assert len(read_rows(b'{"jobs":[' + body + b"]}")) == 1


@given(
    st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), min_size=1, max_size=8), st.data()
)
def test_lines_do_not_depend_on_how_they_arrive(given_lines: list[bytes], data: st.DataObject) -> None:
    text = b"\n".join(given_lines)
    found, rest = [], b""
    while text:
        size = data.draw(st.integers(1, len(text)))
        whole, rest = lines(rest, text[:size])
        found, text = found + whole, text[size:]
    assert [*found, rest] == given_lines


def test_base64_is_strict() -> None:
    body = json.dumps({"target": "a", "payload_base64": b64encode(b"\x00\xff").decode()}).encode()
    assert read_job(body).payload == b"\x00\xff"
    with pytest.raises(InvalidValue):
        read_job(body.replace(b"AP8=", b"AP8=\\n"))
