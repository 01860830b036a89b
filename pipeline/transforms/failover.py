"""Where a consumer goes on in another cluster, so that it misses nothing (KIP-33, use case 3).

Every record is produced to both clusters and may arrive in them in another order. What the consumer
had not read in the first one came there after all that it had read. Of a record that it had read,
the claimed time C is not after its arrival, unless its clock was ahead; so what it had not read
came after C, and is not older than C - L, L being the largest latency of that cluster. In the other
cluster the consumer has all to come from the first record whose time is C - L or later, for the
latest such C: nothing is missed, and what lies there and was read before comes twice. Pure.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple


class Consumed(NamedTuple):
    """How far a consumer had come in a partition of the first cluster."""

    topic: str
    partition: int
    offset: int
    """The next one that it would have read."""
    time_ms: int | None
    """The latest time that what it read last claims and can be believed; None: there is none."""


class Resume(NamedTuple):
    """Where it goes on in the other cluster."""

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
    """Records that it had not read and that lie before the offset there: none, or the latency
    was larger than told."""


def wanted_from(consumed: Consumed, max_latency_ms: int) -> int | None:
    """The time from which on records may not have been read."""
    return None if consumed.time_ms is None else max(0, consumed.time_ms - max_latency_ms)


def latest_credible(rows: Iterable[tuple[int, int | None]], now_ms: int) -> int | None:
    """Of (claimed time, arrival or None) the latest time that is not after its arrival.

    An arrival may be told too late and never too early. Times below zero are none.
    """
    credible = (
        claimed
        for claimed, arrival in rows
        if 0 <= claimed <= (now_ms if arrival is None else arrival)
    )
    return max(credible, default=None)


def compare(
    read: Iterable[Any], unread: Iterable[Any], before: Iterable[Any], after: Iterable[Any]
) -> tuple[int, int]:
    """How many records come twice, and how many never.

    Of the first cluster what the consumer had `read` and what not; of the other what lies `before`
    the offset and from it on. Records are told by what a producer gave them. Equal ones count.
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
