"""What becomes of odd files and odd lines."""

import asyncio
import gzip
import tracemalloc
from collections import Counter
from collections.abc import Mapping as Options
from pathlib import Path

import pytest
from backports import zstd

from tenantry.brokers.jsonl import JsonLinesSource, Mapping
from tenantry.brokers.jsonl import source as source_module
from tenantry.brokers.jsonl.stream import CHUNK, LONGEST_LINE, blocks, lines
from tenantry.kernel.errors import InvalidValue, SourceUnavailable, UnknownKey
from tenantry.kernel.instant import Instant
from tenantry.kernel.randomness import SeededRandomness
from tenantry.replay.connections import Connection
from tenantry.replay.model import Fetched, Position, SourceAddress
from tenantry.replay.repairs import UNREAD
from tenantry.testing.clock import ManualClock

BEGINNING = Position("")


def read(line: bytes, **options: str) -> Fetched:
    return Mapping.of(options).entry(line, "byte 0", None)


def source_of(root: Path, place: str = "f.jsonl", seed: int = 0) -> JsonLinesSource:
    return JsonLinesSource(
        Connection(name="files", kind="jsonl", url=str(root)),
        SourceAddress("jsonl", place),
        randomness=SeededRandomness(seed),
    )


async def entries_of(root: Path) -> list[Fetched]:
    source = source_of(root)
    await source.open(await source.survey(), BEGINNING)
    found: list[Fetched] = []
    while not (batch := await source.fetch(100, 0)).exhausted:
        found += batch.messages
    await source.close()
    return found + list(batch.messages)


def test_every_field_is_found_where_the_mapping_says() -> None:
    line = (
        b'{"e": {"n": 12, "body": {"a":1.50 , "b":1e3}}, "to": "https://a.example/x", "h": {"X-Try": 2, '
        b'"B": true, "N": null}, "why": "http_503", "said": "no", '
        b'"when": "2026-11-30T10:00:00+01:00", "times": 4}'
    )
    entry = read(
        line,
        id_field="$.e.n",
        payload_field="$.e.body",
        target_field="$.to",
        headers_field="$.h",
        error_class_field="$.why",
        failure_field="$.said",
        failed_at_field="$.when",
        attempts_field="$.times",
    )
    message = entry.message
    assert not entry.fault
    assert (message.id, message.target) == ("12", "https://a.example/x")
    assert message.headers == {"x-try": "2", "b": "true"}
    assert (message.error_class, message.failure, message.attempts) == ("http_503", "no", 4)
    assert message.failed_at == 1_796_029_200
    assert message.payload == b'{"a":1.50 , "b":1e3}', "a payload keeps its bytes"


@pytest.mark.parametrize(
    ("payload_as", "written", "payload", "content_type"),
    [
        ("json", b'"a\\u00e9"', b'"a\\u00e9"', "application/json"),
        ("text", b'"a\\u00e9"', "aé".encode(), "text/plain; charset=utf-8"),
        ("base64", b'"AAEC"', b"\x00\x01\x02", "application/octet-stream"),
    ],
)
def test_a_payload_is_read_as_it_was_written(
    payload_as: str, written: bytes, payload: bytes, content_type: str
) -> None:
    message = read(b'{"id": "a", "payload": ' + written + b"}", payload_as=payload_as).message
    assert (message.payload, message.content_type) == (payload, content_type)


def test_the_whole_line_can_be_the_payload() -> None:
    assert read(b'{"id": 1}\r', payload_field="$").message.payload == b'{"id": 1}'


@pytest.mark.parametrize(
    ("line", "options", "why"),
    [
        (b'{"id": 1', {}, "it is no JSON"),
        (b'{"id": 1, "payload": "\xff"}', {}, "it is no JSON"),
        (b"[" * 100_000, {}, "it is no JSON"),
        (b'{"payload": 1}', {}, "id: it has no usable id"),
        (b'{"id": true, "payload": 1}', {}, "id: it has no usable id"),
        (b'{"id": 1}', {}, "payload: there is nothing"),
        (b'{"id": 1, "payload": 1}', {"payload_as": "text"}, "payload: it is no string"),
        (b'{"id": 1, "payload": "a b"}', {"payload_as": "base64"}, "payload: it is no base64"),
        (b'{"id": 1, "payload": 1, "target": "http://u:p@x/"}', {}, "target: it is no target"),
        (b'{"id": 1, "payload": 1, "headers": [1]}', {}, "headers are an object"),
        (b'{"id": 1, "payload": 1, "headers": {"a": []}}', {}, "the header 'a' is no text"),
        (b'{"id": 1, "payload": 1, "failed_at": "2026-01-01T00:00:00"}', {}, "expected RFC 3339 with a zone"),
        (b'{"id": 1, "payload": 1, "failed_at": 1796034000000}', {}, "is no time"),
        (b'{"id": 1, "payload": 1, "attempts": -1}', {}, "is no count"),
        (b'{"id": 1, "payload": 1, "error_class": 5}', {}, "is no text"),
        (b'{"id": 1, "payload": "' + b"x" * 1_048_577 + b'"}', {}, "can be fed"),
    ],
)
def test_a_line_that_is_no_message_says_why_and_keeps_its_bytes(
    line: bytes, options: Options[str, str], why: str
) -> None:
    entry = read(line, **options)
    assert why in entry.fault
    assert entry.message.id == "byte 0"
    is_unread = entry.message.content_type == UNREAD
    assert is_unread is why.startswith(("payload", "it is no JSON", "can be fed"))
    assert entry.message.payload == (line[:65_536] if is_unread else b"1")
    assert "u:p@" not in entry.fault


def test_an_option_that_nobody_reads_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownKey, match="Did you mean 'id_field'"):
        Mapping.of({"idfield": "$.id"})
    with pytest.raises(InvalidValue, match=r"source\.options\.id_field"):
        Mapping.of({"id_field": "id"})
    with pytest.raises(InvalidValue, match=r"source\.options\.payload_as"):
        Mapping.of({"payload_as": "xml"})


@pytest.mark.parametrize(
    "place", ["", "/etc/passwd", "../f.jsonl", "a/../../f.jsonl", "./f.jsonl", "a//b", "a\0"]
)
def test_a_place_that_leads_out_of_the_directory_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(InvalidValue, match=r"source\.place"):
        source_of(tmp_path, place)


async def test_a_link_that_leads_out_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text('{"id": 1, "payload": 1}\n')
    root = tmp_path / "acme"
    root.mkdir()
    (root / "f.jsonl").symlink_to(tmp_path / "secret.jsonl")
    with pytest.raises(SourceUnavailable, match="no file below"):
        await source_of(root).survey()


async def test_a_link_to_itself_is_the_source_s_state_and_no_fault_of_ours(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").symlink_to("f.jsonl")
    with pytest.raises(SourceUnavailable, match="links lead back") as told:
        await source_of(tmp_path).survey()
    assert str(tmp_path) not in str(told.value)


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
async def test_a_stream_that_is_cut_short_gives_what_it_has_and_then_says_so(
    tmp_path: Path, compress
) -> None:  # type: ignore[no-untyped-def]
    text = b"".join(b'{"id": %d, "payload": "%x"}\n' % (n, n * 7_919) for n in range(60_000))
    whole = compress(text)
    (tmp_path / "f.jsonl").write_bytes(whole)
    source = source_of(tmp_path)
    (tmp_path / "f.jsonl").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceUnavailable, match="cut short"):
        await source.survey()
    (tmp_path / "f.jsonl").write_bytes(whole)
    membership = await source.survey()
    (tmp_path / "f.jsonl").write_bytes(whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2))
    await source.open(membership, BEGINNING)
    count = 0
    with pytest.raises(SourceUnavailable, match=r"damaged|cut short"):
        while True:
            count += len((await source.fetch(10_000, 0)).messages)
    assert count > 10_000
    await source.close()


async def test_a_file_that_is_another_one_by_now_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"id": 1, "payload": 1}\n')
    source = source_of(tmp_path)
    membership = await source.survey()
    path.write_text('{"id": 2, "payload": 1}\n')
    with pytest.raises(SourceUnavailable, match="its beginning has changed"):
        await source.open(membership, BEGINNING)
    path.write_text('{"id": 1')
    with pytest.raises(SourceUnavailable, match="it is shorter now"):
        await source.open(membership, BEGINNING)


async def test_a_huge_line_is_a_fault_and_the_lines_around_it_go_on(tmp_path: Path) -> None:
    huge = b'{"id": 2, "payload": "' + b"x" * (LONGEST_LINE + 5) + b'"}'
    (tmp_path / "f.jsonl").write_bytes(b'{"id": 1, "payload": 1}\n' + huge + b'\n\n{"id": 3, "payload": 1}')
    first, second, third = await entries_of(tmp_path)
    assert (first.fault, third.fault) == ("", "")
    assert "more than 4,194,304 bytes" in second.fault
    assert second.message.payload == huge[:65_536]
    assert third.position == f"{24 + len(huge) + 2 + 24}/4"


def test_lines_are_the_same_wherever_blocks_are_cut() -> None:
    text = b"a\n\nbcd\n  \ne\r\nfg"
    whole = list(lines(iter([text])))
    for size in range(1, len(text)):
        cut = [text[at : at + size] for at in range(0, len(text), size)]
        assert list(lines(iter(cut))) == whole
    assert [(line.data, line.number) for line in whole] == [(b"a", 1), (b"bcd", 3), (b"e\r", 5), (b"fg", 6)]
    assert all(text[line.start : line.end] == line.data for line in whole)


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_a_small_file_that_is_huge_inside_takes_no_memory(tmp_path: Path, compress) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "bomb").write_bytes(compress(bytes(200_000_000)))
    tracemalloc.start()
    with (tmp_path / "bomb").open("rb") as file:
        sizes = [len(block) for block in blocks(file, (tmp_path / "bomb").stat().st_size)]
        assert sum(sizes) == 200_000_000
        assert max(sizes) <= CHUNK
    assert tracemalloc.get_traced_memory()[1] < 16_000_000
    tracemalloc.stop()


def test_a_line_that_is_no_message_keeps_the_target_and_the_payload_that_can_be_read() -> None:
    found = read(b'{"id": 1, "target": "https://a.example/x", "payload": {"n":1.0}, "failed_at": "soon"}')
    assert "failed_at" in found.fault
    kept = found.message
    assert (kept.target, kept.payload) == ("https://a.example/x", b'{"n":1.0}')
    assert kept.content_type == "application/json"


@pytest.mark.parametrize(
    ("line", "target"),
    [
        (b"no json", None),
        (b'{"id": 1, "target": "https://a.example/x"}', "https://a.example/x"),
        (b'{"target": "http://", "failed_at": "soon"}', None),
    ],
)
def test_a_line_without_a_payload_says_that_it_is_the_line_that_is_kept(line: bytes, target: str) -> None:
    kept = read(line).message
    assert (kept.target, kept.payload, kept.content_type) == (target, line, UNREAD)


def write_regular(path: Path, count: int, width: int = 0) -> None:
    """Lines of which every second failed otherwise, and is as long as ``width`` says."""
    with path.open("w") as file:
        for n in range(count):
            why, more = ("timeout", "") if n % 2 == 0 else ("http_503", "x" * width)
            file.write(f'{{"id": {n}, "payload": "{more}", "error_class": "{why}"}}\n')


@pytest.mark.parametrize("read_whole", [1_000_000_000, 0], ids=["read whole", "read at places"])
@pytest.mark.parametrize("count", [399, 400, 401, 500, 504, 799, 3_000, 30_000])
async def test_a_sample_has_as_many_as_were_asked_for_and_follows_no_pattern_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, read_whole: int
) -> None:
    monkeypatch.setattr(source_module, "_READ_WHOLE", read_whole)
    write_regular(tmp_path / "f.jsonl", count)
    found = [each.message for each in await source_of(tmp_path, seed=count).peek(400)]
    ids = [int(each.id) for each in found]
    assert len(ids) == len(set(ids)) == min(400, count)
    assert ids == sorted(ids)
    assert 140 <= sum(each.error_class == "timeout" for each in found) <= 260


async def test_a_sample_of_a_large_file_sees_all_of_it_and_long_lines_no_more_than_short_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_READ_WHOLE", 0)
    write_regular(tmp_path / "f.jsonl", 60_000, width=2_000)
    found = [each.message for each in await source_of(tmp_path, seed=1).peek(400)]
    assert 160 <= sum(each.error_class == "timeout" for each in found) <= 240
    tenths = Counter(int(each.id) // 6_000 for each in found)
    assert len(tenths) == 10
    assert max(tenths.values()) <= 70


async def test_a_sample_of_very_long_lines_has_as_many_as_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_READ_WHOLE", 0)
    write_regular(tmp_path / "f.jsonl", 120, width=400_000)
    assert len(await source_of(tmp_path, seed=1).peek(50)) == 50
    assert len(await source_of(tmp_path, seed=1).peek(200)) == 120


async def test_a_sample_of_a_compressed_file_sees_all_of_it(tmp_path: Path) -> None:
    write_regular(tmp_path / "plain", 5_000)
    (tmp_path / "f.jsonl").write_bytes(gzip.compress((tmp_path / "plain").read_bytes()))
    found = [each.message for each in await source_of(tmp_path, seed=1).peek(400)]
    assert len(found) == 400
    assert int(found[-1].id) > 4_500
    assert 140 <= sum(each.error_class == "timeout" for each in found) <= 260


async def test_a_file_that_takes_long_to_count_is_estimated(tmp_path: Path) -> None:
    with (tmp_path / "f.jsonl").open("w") as file:
        file.writelines(f'{{"id": {n:06}, "payload": 1}}\n' for n in range(100_000))

    class Late(ManualClock):
        def monotonic(self) -> Instant:
            self.advance(0.1)
            return super().monotonic()

    connection = Connection(name="files", kind="jsonl", url=str(tmp_path))
    membership = await JsonLinesSource(connection, SourceAddress("jsonl", "f.jsonl"), clock=Late()).survey()
    assert not membership.counted_exactly
    assert membership.count == pytest.approx(100_000, rel=0.2)
    assert (await source_of(tmp_path).survey()).count == 100_000


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
async def test_lines_that_come_late_come_once_and_in_parts_no_larger_than_asked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    compress,  # type: ignore[no-untyped-def]
) -> None:
    monkeypatch.setattr(source_module, "_LEAST_WAIT", 0)
    text = b"".join(b'{"id": %d, "payload": 1}\n' % n for n in range(20_000))
    (tmp_path / "f.jsonl").write_bytes(compress(text))
    source = source_of(tmp_path)
    membership = await source.survey()
    middle = text.index(b'{"id": 15000,')
    await source.open(membership, Position(f"{middle}/15000"))
    ids: list[int] = []
    empty = 0
    while True:
        limit = 1_000 if empty == 0 else 7  # asked for less than what is on its way
        batch = await source.fetch(limit, 0)
        assert len(batch.messages) <= limit
        empty = 0 if batch.messages else empty + 1
        ids += [int(entry.message.id) for entry in batch.messages]
        if batch.exhausted:
            break
        await asyncio.sleep(0)
    assert ids == list(range(15_000, 20_000))
    await source.close()


async def test_a_session_that_is_closed_while_it_reads_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_LEAST_WAIT", 0)
    text = b"".join(b'{"id": %d, "payload": 1}\n' % n for n in range(50_000))
    (tmp_path / "f.jsonl").write_bytes(gzip.compress(text))
    source = source_of(tmp_path)
    membership = await source.survey()
    for _ in range(20):
        await source.open(membership, Position("500000/1"))
        await source.fetch(10_000, 0)
        await source.close()
    await source.open(membership, BEGINNING)
    assert source._file is not None
    await source.close()
