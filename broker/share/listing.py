"""Records of a share partition, range by range: what state each is in, whose it is, until when.

Read from any thread: lists are copied before they are walked, and runs never change.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from broker.share.served_partition import ServedPartition
from broker.share.standing import NAMES, state_of
from broker.share.state.remembered import SharePartitionState
from broker.share.states import ACQUIRED, AVAILABLE, Run

WAITING = "waiting"
"""State of records that are not due yet, or for which there is no room."""
FINISHED = frozenset({"acknowledged", "archived"})
BACKING_OFF = "backing_off"
"""State of records that nobody gets before their next delivery."""


class ListedRange(NamedTuple):
    """Neighbouring offsets, both ends included, that are alike; times in ms."""

    first: int
    last: int
    state: str
    deliveries: int
    member: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


def listed(
    served: ServedPartition | None, state: SharePartitionState | None, begin: int
) -> Iterator[ListedRange]:
    """Ranges from `begin` on, in order; `state`: what is stored, for one that is not in memory.

    What no member ever got, and what nobody has taken in yet, is in none of them.
    """
    records = None if served is None else served.in_memory
    if records is None:
        batches = () if state is None else state.batches
        stored = (
            ListedRange(each.first, each.last, NAMES[each.state], each.deliveries)
            for each in batches
        )
        return _behind(stored, begin)
    runs = (run for batch in list(records.window.batches) for run in batch.runs)
    found = map(_listed, runs)
    if records.delayed is None:
        return _behind(found, begin)
    start = max(records.window.start, begin)
    return _behind(_with_waiting(found, start, records.delayed.cursor), begin)


def _behind(ranges: Iterable[ListedRange], begin: int) -> Iterator[ListedRange]:
    for each in ranges:
        if each.last >= begin:
            yield each._replace(first=max(each.first, begin))


def _with_waiting(ranges: Iterable[ListedRange], start: int, cursor: int) -> Iterator[ListedRange]:
    """The ranges, and what waits between them and behind, up to the cursor."""
    at = start
    for each in ranges:
        if at < each.first:
            yield ListedRange(at, each.first - 1, WAITING, 0)
        yield each
        at = max(at, each.last + 1)
    if at < cursor:
        yield ListedRange(at, cursor - 1, WAITING, 0)


def _listed(run: Run) -> ListedRange:
    name, lock, wait = state_of(run), run.lock, run.wait
    if run.state == ACQUIRED and lock is not None:
        times = lock.member, lock.since_ms, lock.until_ms
        return ListedRange(run.first, run.last, name, run.deliveries, *times)
    if run.state == AVAILABLE and wait is not None and not wait.is_over:
        times_of_wait = None, wait.since_ms, wait.until_ms
        return ListedRange(run.first, run.last, BACKING_OFF, run.deliveries, *times_of_wait)
    return ListedRange(run.first, run.last, name, run.deliveries)
