"""The lines of a file's first bytes, decompressed on the way. Everything here blocks."""

import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from tenantry.kernel.errors import MissingExtra

CHUNK = 262_144
LONGEST_LINE = 4_194_304
"""Bytes. A longer line is an entry with a fault, its beginning kept."""

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Damaged(Exception):
    """The compressed stream cannot be read on; the text says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """``start``, ``end``: offsets in the decompressed stream, its line feed not
    counted. ``number`` counts from 1. ``too_long``: then
    ``data`` is its beginning."""

    data: bytes
    start: int
    end: int
    number: int
    too_long: bool = False


class _Inflater(Protocol):
    """One compressed member or frame."""

    @property
    def hungry(self) -> bool:
        """Whether it can give nothing more without more data."""
        ...

    @property
    def ended(self) -> bool: ...

    @property
    def unused(self) -> bytes:
        """What stood behind its end."""
        ...

    def more(self, data: bytes) -> bytes:
        """At most :data:`CHUNK` bytes. Raises :class:`Damaged`."""
        ...


def blocks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The content of the first ``size`` bytes of ``file``, decompressed, in blocks of at most
    :data:`CHUNK` bytes. Raises :class:`Damaged`, and :class:`MissingExtra` for zstd without its package."""
    file.seek(0)
    head = file.read(min(4, size))
    file.seek(0)
    if head.startswith(_GZIP):
        yield from _inflated(_Limited(file, size), _Gzip)
    elif head == _ZSTD:
        yield from _inflated(_Limited(file, size), _zstd())
    else:
        plain = _Limited(file, size)
        yield from iter(plain.read, b"")


def from_offset(file: BinaryIO, offset: int, size: int) -> Iterator[bytes]:
    """The bytes of a plain file from ``offset`` up to ``size``, in blocks of at most :data:`CHUNK` bytes."""
    file.seek(offset)
    left = size - offset
    while left > 0 and (block := file.read(min(CHUNK, left))):
        left -= len(block)
        yield block


def is_plain(file: BinaryIO) -> bool:
    """Whether offsets in the content are offsets in the file."""
    file.seek(0)
    head = file.read(4)
    return not head.startswith(_GZIP) and head != _ZSTD


def lines(content: Iterator[bytes], *, start: int = 0, number: int = 0) -> Iterator[Line]:
    """The lines of ``content`` that are not blank, without their ends. ``start`` and ``number``: the offset
    of its first byte, and how many lines stand before it."""
    kept, length, at = bytearray(), 0, start  # of the line that is being read; at: where it begins
    for block in content:
        begin = 0
        while (cut := block.find(b"\n", begin)) >= 0:
            kept += block[begin : min(cut, begin + LONGEST_LINE + 1 - len(kept))]
            length += cut - begin
            number += 1
            yield from _line(kept, length, at + length, number)
            at, length, begin = at + length + 1, 0, cut + 1
            kept.clear()
        kept += block[begin : begin + LONGEST_LINE + 1 - len(kept)]
        length += len(block) - begin
    if length:
        yield from _line(kept, length, at + length, number + 1)


def skipped(content: Iterator[bytes], offset: int) -> Iterator[bytes]:
    """``content`` less its first ``offset`` bytes."""
    for block in content:
        if offset < len(block):
            yield block[offset:]
        offset = max(0, offset - len(block))


def _line(kept: bytearray, length: int, end: int, number: int) -> Iterator[Line]:
    too_long = length > LONGEST_LINE
    data = bytes(kept[:LONGEST_LINE])
    if too_long or data.strip():
        yield Line(data, end - length, end, number, too_long)


class _Limited:
    """A file that ends after so many bytes."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._left = file, size

    def read(self) -> bytes:
        data = self._file.read(min(CHUNK, self._left))
        self._left -= len(data)
        return data


def _inflated(source: _Limited, make: "type[_Inflater]") -> Iterator[bytes]:
    """Members follow one another; zeros may pad the last one."""
    inflater, data, begun = make(), b"", False
    while True:
        if inflater.ended:
            data, inflater, begun = inflater.unused.lstrip(b"\0"), make(), False
        if not data and inflater.hungry and not (data := source.read().lstrip(b"\0" if not begun else b"")):
            break
        begun = True
        if block := inflater.more(data):
            yield block
        data = b""
    if begun:
        raise Damaged("the compressed stream is cut short: its end is missing. Was the copy interrupted?")


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)
        self._full = False

    @property
    def hungry(self) -> bool:
        return not self._inner.unconsumed_tail and not self._full

    @property
    def ended(self) -> bool:
        return self._inner.eof

    @property
    def unused(self) -> bytes:
        return self._inner.unused_data

    def more(self, data: bytes) -> bytes:
        try:
            block = self._inner.decompress(self._inner.unconsumed_tail + data, CHUNK)
        except zlib.error as error:
            raise Damaged(f"the gzip stream is damaged: {error}") from None
        self._full = len(block) == CHUNK
        return block


def _zstd() -> "type[_Inflater]":
    try:
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdDecompressor, ZstdError
        else:
            from backports.zstd import ZstdDecompressor, ZstdError
    except ImportError:
        raise MissingExtra("zstd", "Reading zstd files") from None

    class Zstd:
        def __init__(self) -> None:
            self._inner = ZstdDecompressor()

        @property
        def hungry(self) -> bool:
            return self._inner.needs_input

        @property
        def ended(self) -> bool:
            return self._inner.eof

        @property
        def unused(self) -> bytes:
            return self._inner.unused_data

        def more(self, data: bytes) -> bytes:
            try:
                return self._inner.decompress(data, max_length=CHUNK)
            except ZstdError as error:
                raise Damaged(f"the zstd stream is damaged: {error}") from None

    return Zstd
