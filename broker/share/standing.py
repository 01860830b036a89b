"""Standing of a share partition: who holds which records since when, what waits, what is finished.

Read from any thread: lists are copied before they are walked, and runs never change.
"""

from collections import Counter
from typing import NamedTuple

from broker.share.served_partition import ServedPartition
from broker.share.states import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE, LetterWrite, Run

MAX_HELD = 1000
"""Ranges that are shown of one partition."""
NAMES = {
    AVAILABLE: "available",
    ACQUIRED: "acquired",
    ACKNOWLEDGED: "acknowledged",
    ARCHIVED: "archived",
}


class HeldRange(NamedTuple):
    """Neighbouring records that a member holds, or that nobody gets before a time; times in ms."""

    first: int
    last: int
    deliveries: int
    member: str | None
    """None: nobody holds them, they wait for their next delivery."""
    since_ms: int
    until_ms: int


class QueueStanding(NamedTuple):
    """One share partition, as it is in memory."""

    start: int
    end: int
    """The last offset that was taken in; below `start` when there is none."""
    counts: dict[str, int]
    """Offsets from `start` on by their state; those that wait for dead letters by themselves."""
    waiting: int
    """Records that are not due yet."""
    next_look_ms: int | None
    """No record that waits is due before."""
    held: list[HeldRange]


def standing_of(served: ServedPartition) -> QueueStanding | None:
    """The standing; None while its state is read."""
    records = served.in_memory
    if records is None:
        return None
    window = records.window
    start, counts, held = window.start, Counter[str](), list[HeldRange]()
    for batch in list(window.batches):
        for run in batch.runs:
            if run.last >= start:
                counts[state_of(run)] += run.last - max(run.first, start) + 1
            if len(held) < MAX_HELD:
                held += _held(run)
    shown = {name: counts[name] for name in (*NAMES.values(), "lettering")}
    waiting = 0 if records.delayed is None else records.delayed.waiting
    return QueueStanding(start, window.end, shown, waiting, served.next_look_ms, held)


def state_of(run: Run) -> str:
    """Name of the state of a run: `lettering` while it waits for its dead letters."""
    if run.is_pending and isinstance(run.write, LetterWrite):
        return "lettering"
    return NAMES[run.state]


def _held(run: Run) -> list[HeldRange]:
    lock, wait = run.lock, run.wait
    if run.state == ACQUIRED and lock is not None:
        times = lock.since_ms, lock.until_ms
        return [HeldRange(run.first, run.last, run.deliveries, lock.member, *times)]
    if run.state == AVAILABLE and wait is not None and not wait.is_over:
        return [HeldRange(run.first, run.last, run.deliveries, None, wait.since_ms, wait.until_ms)]
    return []
