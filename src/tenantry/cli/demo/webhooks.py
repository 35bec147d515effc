"""The real events: payload examples of GitHub's webhooks. Origin and licence: ``demo_data/README.md``."""

import gzip
from importlib.resources import files

import msgspec


class _Line(msgspec.Struct):
    event: str
    payload: msgspec.Raw


def payloads(*, largest: int | None = None) -> tuple[bytes, ...]:
    """The payloads as JSON, as they came; those of at most ``largest`` bytes. Reads the package's data."""
    packed = files("tenantry.cli").joinpath("demo_data", "github-webhooks.jsonl.gz").read_bytes()
    decode = msgspec.json.Decoder(_Line).decode
    found = (bytes(decode(line).payload) for line in gzip.decompress(packed).splitlines())
    return tuple(payload for payload in found if largest is None or len(payload) <= largest)
