"""What all replays of one coordinator share, and how often they do what."""

import traceback
from dataclasses import dataclass

from tenantry.kernel.errors import TenantryError
from tenantry.kernel.instant import Seconds
from tenantry.queue.surroundings import Surroundings
from tenantry.replay.ports import ReplayStore, Sources, Standing
from tenantry.replay.window import DEFAULTS, WindowSettings


@dataclass(frozen=True, slots=True)
class RunSettings:
    """All in seconds. ``tell_every``: the record for people, while it changes; ``tell_at_least_every``: while
    it does not. ``stand_every``: shares, lanes and classes are asked for so often, ``arrived_every``: what is
    new in the source. ``patience``: for an answer of a source; ``close_within``: for its closing, which
    orders wait for. ``retry_store_for``, ``retry_source_for``: the first wait after a failure; a source's
    doubles up to ``retry_source_cap``. ``rest_for``: between looks at a replay that does nothing."""

    window: WindowSettings = DEFAULTS
    tell_every: Seconds = 1.0
    tell_at_least_every: Seconds = 15.0
    stand_every: Seconds = 1.0
    arrived_every: Seconds = 10.0
    patience: Seconds = 10.0
    close_within: Seconds = 0.5
    retry_store_for: Seconds = 0.5
    retry_source_for: Seconds = 1.0
    retry_source_cap: Seconds = 60.0
    rest_for: Seconds = 2.0
    return_batch: int = 500


@dataclass(frozen=True, slots=True)
class Kit:
    """What all replays of one coordinator share."""

    store: ReplayStore
    sources: Sources
    standing: Standing
    around: Surroundings
    settings: RunSettings


class Lost(Exception):
    """The lease is another's: nothing may be done for this replay here any more."""


def placed(error: Exception) -> str:
    """A fault's kind and place, for whoever has to find it; its words only where they are ours: a client's or
    a parser's may hold a piece of a message, or of a URL with its password."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    words = f": {error}" if isinstance(error, TenantryError) else ""
    return f"{type(error).__name__}{words} ({frame.filename.rpartition('/')[2]}:{frame.lineno})"
