"""JSON Lines files as a source of messages: one JSON value a line, plain, gzip or zstd.

Authority: the file. It is read and never written, by position: nothing is acknowledged, and a later session
goes on behind the last line that was staged.

What holds:

- A membership is the file's first bytes, as many as it had when it was frozen; what is appended later is not
  in it. A file whose beginning has changed since, or that is shorter, is not read.
- A line that is no message is an entry with its fault; the lines around it go on.
- Memory is bounded by the longest line that is taken (4 MiB), however the file is compressed.

What does not: a change in the middle of a file of the same length is not found. To go on in a compressed file
it is decompressed again up to the position.

``mapping`` is pure; ``stream`` and ``sampling`` read, and block, so ``source`` calls it in a thread.
"""

from tenantry.brokers.jsonl.mapping import Mapping
from tenantry.brokers.jsonl.source import JsonLinesSource

__all__ = ["JsonLinesSource", "Mapping"]
