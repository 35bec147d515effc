"""Five published rules, written from their public descriptions, each with its documented defaults.

They decide how many calls may be in flight (or start a second) and nothing else: no breaker, no
``Retry-After``, because they have none. What each hears follows its documentation: where a rule has a notion
of a dropped call, timeouts, refusals, 429 and 503 are drops.
"""

from math import cbrt, ceil, floor, inf, log10, sqrt
from statistics import median

from tenantry.kernel.randomness import Randomness
from tenantry.simulation.shaping.lane import Ending


class Windowless:
    """A rule that is a limit in flight, moved as calls end."""

    name = ""
    level = 20.0

    def allowed(self, in_flight: int, now: float) -> int:
        return max(0, int(self.level) - in_flight)

    def started(self, count: int, in_flight: int, now: float) -> None:
        """Nothing to note."""

    def ended(self, ending: Ending, in_flight: int, now: float) -> None:
        raise NotImplementedError

    def next_at(self, in_flight: int, now: float) -> float | None:
        return None

    def limit(self) -> float:
        return self.level


class Vegas(Windowless):
    """Netflix concurrency-limits ``VegasLimit``, defaults: starts at 20, at most 1,000; alpha 3, beta 6 and
    threshold 1, each times the decimal logarithm of the limit; probes for a new minimum after 30 times the
    limit of calls, spread. Source: the library's documentation and L. Brakmo, L. Peterson, "TCP Vegas"."""

    name = "Vegas"

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        self._idle = 0.0
        self._seen, self._spread = 0, randomness.uniform(0.5, 1.0)

    def ended(self, ending: Ending, in_flight: int, now: float) -> None:
        self._seen += 1
        if self._seen >= self._spread * 30 * self.level:
            self._seen, self._spread = 0, self._randomness.uniform(0.5, 1.0)
            self._idle = ending.took
        elif not self._idle or ending.took < self._idle:
            self._idle = ending.took
        else:
            self.level = min(1_000.0, max(1.0, self._moved(ending)))

    def _moved(self, ending: Ending) -> float:
        unit = max(1, int(log10(int(self.level))))
        queue = ceil(self.level * (1.0 - self._idle / ending.took))
        if not ending.succeeded:
            return self.level - unit
        if 2 * ending.in_flight < self.level:
            return self.level
        if queue <= unit:
            return self.level + 6 * unit
        if queue < 3 * unit:
            return self.level + unit
        return self.level - unit if queue > 6 * unit else self.level


class Gradient2(Windowless):
    """Netflix concurrency-limits ``Gradient2Limit`` inside ``WindowedLimit``, defaults: between 20 and 200,
    4 calls of queue, smoothing 0.2, a long average over 600 windows of a second, gradient in [0.5, 1]. A
    window is read when it has 10 calls. Source: the library's documentation."""

    name = "Gradient2"

    def __init__(self) -> None:
        self._long, self._windows = 0.0, 0
        self._took, self._calls, self._most, self._next = 0.0, 0, 0, 1.0

    def ended(self, ending: Ending, in_flight: int, now: float) -> None:
        self._most = max(self._most, ending.in_flight)
        if ending.succeeded:
            self._took += ending.took
            self._calls += 1
        if now > self._next and self._calls >= 10:
            short = self._took / self._calls
            self._next = now + 1.0
            self._read(short, self._most)
            self._took, self._calls, self._most = 0.0, 0, 0

    def _read(self, short: float, most: int) -> None:
        self._windows += 1
        if self._windows <= 10:  # a plain mean warms the average up
            self._long += (short - self._long) / self._windows
        else:
            self._long += (short - self._long) * 2.0 / 601.0
        if self._long / short > 2.0:
            self._long *= 0.9
        if most < self.level / 2.0:
            return
        gradient = max(0.5, min(1.0, self._long / short))
        moved = 0.8 * self.level + 0.2 * (self.level * gradient + 4.0)
        self.level = max(20.0, min(200.0, moved))


class EnvoyGradient(Windowless):
    """Envoy's adaptive concurrency, gradient controller: the median of windows of 100 ms against a minimum
    measured over 50 calls at a concurrency of 3, each minute with 15 % of jitter; 25 % of buffer, gradient in
    [0.5, 2], headroom the square root of the limit, between 3 and 1,000; five windows at the least measure
    anew. Source: Envoy's documentation; the two intervals are those of its example, for it has no defaults
    for them."""

    name = "Envoy gradient"
    level = 3.0

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        self._samples: list[float] = []
        self._least, self._after = 0.0, 3.0
        self._measuring, self._since = True, 0.0
        self._next, self._measure_at, self._lowest = 0.1, inf, 0

    def ended(self, ending: Ending, in_flight: int, now: float) -> None:
        if ending.succeeded and now - ending.took >= (self._since if self._measuring else 0.0):
            self._samples.append(ending.took)
        if self._measuring:
            if len(self._samples) >= 50:
                self._measured(now)
            return
        if now >= self._measure_at:
            self._measure(now)
        elif now >= self._next:
            self._next = now + 0.1
            self._read(now)

    def _measure(self, now: float) -> None:
        self._measuring, self._since, self._after, self.level = True, now, self.level, 3.0
        self._samples.clear()

    def _measured(self, now: float) -> None:
        self._least, self._measuring, self.level = median(self._samples), False, self._after
        self._samples.clear()
        self._lowest, self._next = 0, now + 0.1
        self._measure_at = now + 60.0 * (1.0 + self._randomness.uniform(0.0, 0.15))

    def _read(self, now: float) -> None:
        if not self._samples:
            return
        gradient = max(0.5, min(2.0, self._least * 1.25 / median(self._samples)))
        self._samples.clear()
        moved = self.level * gradient
        before, self.level = self.level, float(max(3, min(1_000, int(moved + sqrt(moved)))))
        self._lowest = self._lowest + 1 if before == self.level == 3.0 else 0
        if self._lowest >= 5:
            self._measure(now)


class VectorArc(Windowless):
    """Vector's adaptive request concurrency: one more a round trip while the mean latency is no higher than
    its average, times 0.9 when calls are refused or the latency is 2.5 deviations above it; the average and
    the deviation are exponential with alpha 0.4; from 1 to 200. Source: Vector's documentation."""

    name = "Vector ARC"
    level = 1.0

    def __init__(self) -> None:
        self._mean, self._variance = -1.0, 0.0
        self._took, self._calls = 0.0, 0
        self._refused = self._reached = False
        self._next = 0.0

    def started(self, count: int, in_flight: int, now: float) -> None:
        self._reached = self._reached or in_flight >= self.level

    def ended(self, ending: Ending, in_flight: int, now: float) -> None:
        self._refused = self._refused or not ending.succeeded
        if ending.succeeded:
            self._took += ending.took
            self._calls += 1
        now_takes = self._took / self._calls if self._calls else None
        if self._mean < 0.0:
            if now_takes is not None:
                self._mean, self._next = now_takes, now + now_takes
        elif now >= self._next:
            self._manage(now_takes)
            if now_takes is not None:
                self._average(now_takes)
            self._next = now + self._mean
            self._took, self._calls, self._refused, self._reached = 0.0, 0, False, False

    def _manage(self, takes: float | None) -> None:
        quiet = takes is not None and takes <= self._mean
        high = (takes or 0.0) >= self._mean + 2.5 * sqrt(self._variance)
        if self.level < 200 and self._reached and not self._refused and quiet:
            self.level += 1.0
        elif self.level > 1 and (self._refused or high):
            self.level = float(max(1, int(self.level * 0.9)))

    def _average(self, takes: float) -> None:
        difference = takes - self._mean
        step = 0.4 * difference
        self._mean += step
        self._variance = 0.6 * (self._variance + difference * step)


class BotoCubic:
    """boto3's adaptive retry mode: a token bucket whose rate is cut to 0.7 by a refusal and grows as a cubic
    (scale 0.4), at most twice the measured rate, which is smoothed by 0.8 over half seconds; off until the
    first refusal. It bounds no concurrency: that is the client's, 10 connections by default. Refusals are 429
    and 503; a timeout is none to it. Source: boto3's documentation, and of botocore the defaults."""

    name = "boto3 cubic"
    connections = 10

    def __init__(self) -> None:
        self._rate, self._capacity, self._tokens, self._filled_at = inf, 1.0, 1.0, 0.0
        self._top, self._plateau, self._refused_at = 0.0, 0.0, 0.0
        self._measured, self._count, self._half = 0.0, 0, 0.0

    def allowed(self, in_flight: int, now: float) -> int:
        room = max(0, self.connections - in_flight)
        if self._rate == inf:
            return room
        self._fill(now)
        return min(room, floor(self._tokens + 1e-9))

    def started(self, count: int, in_flight: int, now: float) -> None:
        if self._rate != inf:
            self._tokens -= count

    def ended(self, ending: Ending, in_flight: int, now: float) -> None:
        self._measure(now)
        if ending.status in {429, 503}:
            self._top = self._measured if self._rate == inf else min(self._measured, self._rate)
            self._plateau, self._refused_at = cbrt(self._top * 0.3 / 0.4), now
            self._set(0.7 * self._top, now)
        elif self._rate != inf:
            self._set(0.4 * (now - self._refused_at - self._plateau) ** 3 + self._top, now)

    def next_at(self, in_flight: int, now: float) -> float | None:
        if self._rate == inf or in_flight >= self.connections or self._tokens >= 1.0:
            return None
        return self._filled_at + (1.0 - self._tokens) / self._rate

    def limit(self) -> float:
        return float(self.connections)

    def _measure(self, now: float) -> None:
        self._count += 1
        half = floor(2.0 * now) / 2.0
        if half > self._half:
            self._measured = 0.8 * self._count / (half - self._half) + 0.2 * self._measured
            self._count, self._half = 0, half

    def _fill(self, now: float) -> None:
        self._tokens = min(self._capacity, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now

    def _set(self, rate: float, now: float) -> None:
        self._fill(now)
        rate = max(0.5, min(rate, 2.0 * self._measured))
        self._rate, self._capacity = rate, max(1.0, rate)
        self._tokens = min(self._tokens, self._capacity)


__all__ = ["BotoCubic", "EnvoyGradient", "Gradient2", "VectorArc", "Vegas"]
