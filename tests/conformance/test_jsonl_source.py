"""A file of JSON Lines keeps the promises of a source, however it is compressed."""

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from backports import zstd

from tenantry.brokers.jsonl import JsonLinesSource
from tenantry.replay.connections import Connection
from tenantry.replay.model import SourceAddress
from tenantry.replay.ports import Source
from tenantry.testing.conformance.sources import SourceConformance, payload_of

Compress = Callable[[bytes], bytes]


class JsonLinesWorld:
    """One file. What is put later is one more member, or frame, behind the others."""

    small_window = 0

    def __init__(self, root: Path, compress: Compress) -> None:
        self._root, self._compress = root, compress
        self._path = root / "acme" / "dead.jsonl"
        self._path.parent.mkdir()
        self._path.touch()

    async def put(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            payload = payload_of(number).decode()
            self._append(f'{{"id": {number}, "payload": {payload}, "headers": {{"Shape": "round"}}}}\n')

    async def put_broken(self) -> bool:
        self._append('{"id": 1, "payload"\n')
        return True

    def source(self, *, small: bool = False) -> Source:
        return self._source("acme/dead.jsonl")

    async def crash(self, source: Source) -> None:
        """A reader leaves nothing behind."""

    def lost(self) -> Source:
        return self._source("acme/absent.jsonl")

    def _source(self, place: str) -> Source:
        connection = Connection(name="files", kind="jsonl", url=str(self._root))
        return JsonLinesSource(connection, SourceAddress("jsonl", place))

    def _append(self, text: str) -> None:
        with self._path.open("ab") as file:
            file.write(self._compress(text.encode()))


class TestPlain(SourceConformance):
    @pytest.fixture
    def world(self, tmp_path: Path) -> JsonLinesWorld:
        return JsonLinesWorld(tmp_path, bytes)


class TestGzip(SourceConformance):
    @pytest.fixture
    def world(self, tmp_path: Path) -> JsonLinesWorld:
        return JsonLinesWorld(tmp_path, gzip.compress)


class TestZstd(SourceConformance):
    @pytest.fixture
    def world(self, tmp_path: Path) -> JsonLinesWorld:
        return JsonLinesWorld(tmp_path, zstd.compress)
