"""The bounds of acceptable record times, and the names of what is wrong with others (time.md 1, 2).

Pure arithmetic on milliseconds since 1970, safe for every 64-bit time. The bounds are strict as
Kafka's (semantics.md 6.2): a time is refused when it is more than `before.max.ms` before or more
than `after.max.ms` after the broker's clock, and a difference equal to the limit passes. What a bad
time was meant to be is found by `protocol.records.mistimed`.
"""

from enum import StrEnum
from typing import NamedTuple

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Bounds(NamedTuple):
    """The earliest and the latest acceptable time; int64, both included."""

    low: int
    high: int


class Direction(StrEnum):
    """Side of a bad time; `none` is a record without time."""

    PAST = "past"
    FUTURE = "future"
    EXPIRED = "expired"
    NONE = "none"


class Suspicion(StrEnum):
    """Suspected mistakes. In the order of the guesses of `protocol.records.mistimed`."""

    BOUND = "bound"
    SECONDS = "seconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"
    FILETIME = "filetime"
    ZERO = "zero"
    NEGATIVE = "negative"


HINTS = {
    Suspicion.BOUND: "",
    Suspicion.SECONDS: "; looks like seconds",
    Suspicion.MICROSECONDS: "; looks like microseconds",
    Suspicion.NANOSECONDS: "; looks like nanoseconds",
    Suspicion.FILETIME: "; looks like a Windows FILETIME",
    Suspicion.ZERO: "; zero: it was never set",
    Suspicion.NEGATIVE: "; negative: before 1970",
}
"""Text of a refusal after the bound."""


def bounds(now_ms: int, before_max_ms: int, after_max_ms: int) -> Bounds:
    """The acceptable times at `now_ms`, cut to what 64 bits hold; the largest bound is none."""
    low = INT64_MIN if before_max_ms == INT64_MAX else now_ms - before_max_ms
    return Bounds(max(low, INT64_MIN), min(now_ms + after_max_ms, INT64_MAX))
