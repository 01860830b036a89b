"""Whether a record's time is acceptable, and what its producer probably meant (time.md 1 and 2).

Pure arithmetic on milliseconds since 1970, safe for every 64-bit time. The bounds are strict as
Kafka's (semantics.md 6.2): a time is refused when it is more than `before.max.ms` before or more
than `after.max.ms` after the broker's clock, and a difference equal to the limit passes. The
unit detective then tries the time as seconds, microseconds, nanoseconds and Windows FILETIME.
"""

from enum import StrEnum
from typing import NamedTuple

NO_TIMESTAMP = -1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
FILETIME_EPOCH_MS = -11_644_473_600_000  # 1601-01-01, counted in units of 100 ns
PLAUSIBLE_SINCE_MS = 631_152_000_000  # 1990-01-01: no guess of a unit leads further back


class Bounds(NamedTuple):
    """The earliest and the latest acceptable time; int64, both included."""

    low: int
    high: int


class Direction(StrEnum):
    """On which side of the bounds a time lies."""

    PAST = "past"
    FUTURE = "future"


class Suspicion(StrEnum):
    """What a bad time looks like."""

    BOUND = "bound"
    SECONDS = "seconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"
    FILETIME = "filetime"
    ZERO = "zero"
    NEGATIVE = "negative"


class Verdict(NamedTuple):
    """Why a time is refused. `skew_ms` is how far it lies beyond the broker's clock, unsigned."""

    timestamp: int
    direction: Direction
    suspicion: Suspicion
    skew_ms: int
    bounds: Bounds

    @property
    def text(self) -> str:
        """One sentence for the producer: the bounds, and the suspected unit."""
        sentence = (
            f"Timestamp {self.timestamp} is out of range. "
            f"The timestamp should be within [{self.bounds.low}, {self.bounds.high}]"
        )
        return sentence + _HINTS[self.suspicion]


_HINTS = {
    Suspicion.BOUND: "",
    Suspicion.SECONDS: "; it looks like seconds, not milliseconds",
    Suspicion.MICROSECONDS: "; it looks like microseconds, not milliseconds",
    Suspicion.NANOSECONDS: "; it looks like nanoseconds, not milliseconds",
    Suspicion.FILETIME: "; it looks like a Windows FILETIME, not milliseconds since 1970",
    Suspicion.ZERO: "; it is zero: the record's time was never set",
    Suspicion.NEGATIVE: "; it is negative: before 1970",
}


def bounds(now_ms: int, before_max_ms: int, after_max_ms: int) -> Bounds:
    """The acceptable times at `now_ms`, cut to what 64 bits hold; the largest bound is none."""
    low = INT64_MIN if before_max_ms == INT64_MAX else now_ms - before_max_ms
    return Bounds(max(low, INT64_MIN), min(now_ms + after_max_ms, INT64_MAX))


def judge(timestamp: int, now_ms: int, allowed: Bounds) -> Verdict | None:
    """None for a time that is acceptable, as is -1 (no time); else what is wrong with it."""
    if timestamp == NO_TIMESTAMP or allowed.low <= timestamp <= allowed.high:
        return None
    direction = Direction.PAST if timestamp < allowed.low else Direction.FUTURE
    return Verdict(
        timestamp, direction, suspect(timestamp, now_ms, allowed), abs(now_ms - timestamp), allowed
    )


def suspect(timestamp: int, now_ms: int, allowed: Bounds) -> Suspicion:
    """What a time that is out of bounds was probably meant to be.

    Of the units that bring it inside the bounds the one nearest to the clock wins; zero and
    negative times have names of their own.
    """
    if timestamp <= 0:
        return Suspicion.NEGATIVE if timestamp else Suspicion.ZERO
    low = max(allowed.low, PLAUSIBLE_SINCE_MS)
    readings = {
        Suspicion.SECONDS: timestamp * 1000,
        Suspicion.MICROSECONDS: timestamp // 1000,
        Suspicion.NANOSECONDS: timestamp // 1_000_000,
        Suspicion.FILETIME: timestamp // 10_000 + FILETIME_EPOCH_MS,
    }
    inside = {unit: abs(ms - now_ms) for unit, ms in readings.items() if low <= ms <= allowed.high}
    return min(inside, key=inside.__getitem__, default=Suspicion.BOUND)
