"""Offsets for a consumer in another cluster, so that it misses nothing (KIP-33, use case 3).

Every record is produced to both clusters and may arrive in them in another order. What the consumer
had not read in the first one came there after all that it had read. So where a time T is known that
a record which it had read did not come before, what it had not read is not older than T - L, L
being the largest latency of that cluster. In the other cluster the consumer has all to come from
the first record whose time is T - L or later: nothing is missed, and records there that were read
before come twice.

T may be too early, which costs records that come twice, and never too late, which would lose some.
A claimed time is one when it is not after the earliest that the arrival can be: a clock that is
ahead claims more. How far it is ahead at the most may be known from elsewhere. Where all that was
read last claims too much, the arrival itself is T. Claimed times come first, since old data that is
being loaded arrives now and is followed by more of the same. Pure.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple


class Consumed(NamedTuple):
    """Progress of a consumer in a partition of the first cluster."""

    topic: str
    partition: int
    offset: int
    """The next one that it would have read."""
    time_ms: int | None
    """The latest time that all it had not read came after; None: nothing is known."""


class Resume(NamedTuple):
    """Start of the consumer in the other cluster."""

    topic: str
    partition: int
    offset: int
    from_ms: int | None
    """The time from which on records are wanted; None: all."""
    records: int
    """From there to the end."""
    duplicates: int | None
    """Of them, so many the consumer has seen; None where nobody compared."""
    missed: int | None
    """Records that it had not read and that are before the offset there: none, or the latency
    was larger than given."""


def wanted_from(consumed: Consumed, max_latency_ms: int) -> int | None:
    """The time from which on records may not have been read."""
    return None if consumed.time_ms is None else max(0, consumed.time_ms - max_latency_ms)


def came_after(
    rows: Iterable[tuple[int, int | None]], max_ahead_ms: int | None = None
) -> int | None:
    """A time after which the records behind the rows arrived; None: unknown.

    Of each row the claimed time (below zero: none) and the arrival, which may be too early and
    never too late; None: unknown. `max_ahead_ms`: no clock is further ahead; None: unknown.
    """
    credible: int | None = None
    last_arrival: int | None = None
    for claimed, arrival in rows:
        if arrival is not None:
            last_arrival = max(arrival, arrival if last_arrival is None else last_arrival)
        if claimed < 0:
            continue
        if arrival is not None and claimed <= arrival:
            credible = max(claimed, claimed if credible is None else credible)
        elif max_ahead_ms is not None:
            surely = max(0, claimed - max_ahead_ms)
            credible = max(surely, surely if credible is None else credible)
    return last_arrival if credible is None else credible


def compare(
    read: Iterable[Any], unread: Iterable[Any], before: Iterable[Any], after: Iterable[Any]
) -> tuple[int, int]:
    """Numbers of the records that come twice, and of those that never come.

    Of the first cluster the records that the consumer had `read` and those it had not; of the other
    those `before` the offset and from it on. Records are identified by what a producer gave them.
    Equal ones count.
    """
    seen, coming = Counter(read), Counter(after)
    duplicates = sum(min(count, seen[record]) for record, count in coming.items())
    waiting, passed = Counter(unread), Counter(before)
    missed = sum(
        max(0, count - coming[record]) for record, count in waiting.items() if record in passed
    )
    return duplicates, missed


def starting_offsets(found: Iterable[Resume]) -> dict[str, dict[str, int]]:
    """As Spark's `startingOffsets` takes it."""
    offsets: dict[str, dict[str, int]] = {}
    for each in found:
        offsets.setdefault(each.topic, {})[str(each.partition)] = each.offset
    return offsets


def reset_plan(found: Iterable[Resume]) -> str:
    """As `kafka-consumer-groups --reset-offsets --from-file` takes it."""
    return "".join(f"{each.topic},{each.partition},{each.offset}\n" for each in found)
