"""What the demo and its crowd (a process of its own) say to each other: one JSON object a line."""

import msgspec

from tenantry.kernel.instant import Seconds


class Client(msgspec.Struct, frozen=True):
    """One tenant's client: see :class:`tenantry.cli.demo.scenario.Member`."""

    tenant: str
    api_key: str
    rate: float
    window: int
    answer_for: Seconds


class Go(msgspec.Struct, frozen=True, tag="go"):
    """To the crowd: begin. Its last word is :class:`Done`; then it only answers deliveries, until the pipe
    closes."""

    api_url: str
    clients: list[Client]
    burst_tenant: str
    burst_jobs: int
    burst_batch: int
    burst_at: Seconds
    seconds: Seconds


class Began(msgspec.Struct, frozen=True, tag="began"):
    """From the crowd: its clients have begun."""


class Burst(msgspec.Struct, frozen=True, tag="burst"):
    """From the crowd: the burst has been sent."""


class Accepted(msgspec.Struct, frozen=True, tag="accepted"):
    """From the crowd: the ids of jobs for which a client holds a ticket."""

    ids: list[str]


class Done(msgspec.Struct, frozen=True, tag="done"):
    """From the crowd: no client sends any more. ``received``: deliveries that came in until now."""

    received: int


Said = Began | Burst | Accepted | Done
