"""Ranges of a read: offsets, record times, arrival times. All bounds are inclusive.

Planning prunes with a range and may leave more in than is wanted, never less; offsets and record
times the decoder applies to each record as well.
"""

from dataclasses import dataclass
from typing import NamedTuple

from protocol.records.batch import MAX_INT64, MIN_INT64


class Range(NamedTuple):
    """Numbers from `low` to `high`, both included; empty when `low` is the greater one."""

    low: int = MIN_INT64
    high: int = MAX_INT64

    def within(self, other: "Range") -> "Range":
        """The intersection of both."""
        return Range(max(self.low, other.low), min(self.high, other.high))

    @property
    def is_everything(self) -> bool:
        """True when nothing is left out."""
        return self == ANY


ANY = Range()


@dataclass(frozen=True, slots=True)
class OffsetBounds:
    """The bounds of one read over all its partitions."""

    offsets: Range = ANY
    times: Range = ANY
    """Record times in ms, as readers see them."""
    arrivals: Range = ANY
    """In ms; prunes and is never applied to a single record."""
    partitions: frozenset[int] | None = None
    topics: frozenset[str] | None = None

    def takes(self, topic: str, partition: int) -> bool:
        """True when a partition may hold something."""
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )


EVERYTHING = OffsetBounds()
