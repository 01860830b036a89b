"""Records that a share group gets at their time: `horolog.share.delay`.

Offsets are taken in from the log in order, each with the time at which it is due. What is due goes
into the window of the share partition, where members acquire it; the others wait in a wheel, and
are not in flight. Nothing of it is stored: a record that waits is one that nobody has acquired, and
is taken in again after a restart. Pure: events in, changes of the window out.
"""

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from broker.share.states import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    Run,
    ShareRules,
    StateWrite,
)
from broker.share.waits.wheel import Due, DueWheel
from broker.share.window import InFlightBatch, InFlightWindow

MOST_RUNS: Final = 45_000
"""Runs in a window, and so ranges in its stored state; 1 MiB has room for 52,400.
Beyond, a record comes only when nobody holds another."""
NEARBY: Final = 8
"""Record batches without a free record that a fetch passes over, and sends, to come to the next."""
MOST_STALE: Final = 1000


class TakenIn(NamedTuple):
    """One record batch of the log: its offsets, both ends included, and those that are not due."""

    first: int
    last: int
    later: Sequence[Due]
    """In order of offsets; all others are due."""


class DelayedRecords:
    """The records of one share partition by their time. Used from the event loop only."""

    def __init__(self, window: InFlightWindow, now_ms: int) -> None:
        """Nothing waits; from the window's next new offset on nothing was taken in."""
        self.cursor = window.start
        """The first offset that was not taken in; some behind it may be finished already."""
        self.waiting = 0
        """Number of offsets that are not due."""
        self._window = window
        self._wheel = DueWheel(now_ms)
        self._due: list[Due] = []
        """A heap of what may be free in the window."""
        self._now_ms = now_ms
        self._ending: dict[StateWrite, int] = {}
        self._ending_count = 0
        window.freed = []

    def room(self, rules: ShareRules) -> int:
        """Number of offsets that may come into the window: what waits is not in flight, and neither
        is what is finished behind it, durably: writes that fail give back what others were taken in
        for.
        """
        window = self._window
        unfinished = window.known - window.finished + self._ending_count
        if unfinished and window.run_count + 2 * rules.max_record_locks >= MOST_RUNS:
            return 0  # each record in flight may yet part a run in three
        return rules.max_record_locks - unfinished

    def write_begins(self, write: StateWrite) -> None:
        """Counts what a write ends as unfinished, until `write_ends`."""
        count = sum(
            each.last - each.first + 1 for each in write.batches if each.state >= ACKNOWLEDGED
        )
        if count:
            self._ending[write] = count
            self._ending_count += count

    def write_ends(self, write: StateWrite) -> None:
        """Goes by the window again: the write is durable, or was undone."""
        self._ending_count -= self._ending.pop(write, 0)

    def next_intake(self, rules: ShareRules) -> int | None:
        """The offset to take in from; None when no more may be taken in now."""
        if self.waiting >= rules.max_pending or self.room(rules) <= 0:
            return None
        self.cursor = max(self.cursor, self._window.start)
        return self.cursor

    def take_in(self, at: int, batches: Iterable[TakenIn], rules: ShareRules) -> None:
        """Takes in record batches that were read from the cursor on, as many as there is room for.

        The log has nothing between them. Nothing is done when the cursor is not `at` any more.
        """
        if at != self.cursor:
            return
        window = self._window
        for batch in batches:
            if batch.last < self.cursor:
                continue
            if self.next_intake(rules) is None:
                break
            first = max(batch.first, self.cursor)
            self._put(self.cursor, first - 1, ARCHIVED)
            for due in batch.later:
                if due.last >= first:
                    self._put_due(first, due.first - 1)
                    self._wait(due._replace(first=max(due.first, first)))
                    first = due.last + 1
            self._put_due(first, batch.last)
            self.cursor = batch.last + 1
        window.advance()

    def come_due(self, now_ms: int, rules: ShareRules) -> None:
        """Time has passed: what is due by now comes into the window, as far as there is room."""
        self._now_ms = now_ms
        while (room := self.room(rules)) > 0:
            taken = self._wheel.take(now_ms, min(room, rules.max_record_locks))
            if not taken:
                return
            for first, last in _joined(sorted((each.first, each.last) for each in taken)):
                begin = max(first, self._window.start)
                self.waiting -= max(last - begin + 1, 0)
                self._put(begin, last, AVAILABLE)
            for due in taken:
                heapq.heappush(self._due, due)

    def next_ms(self, rules: ShareRules) -> int | None:
        """Time to look again for what comes due; None when nothing waits, or nothing has room."""
        return self._wheel.next_ms() if self.room(rules) > 0 else None

    def next_free(self) -> int | None:
        """The first offset that is free of what was due first; None when nothing is free."""
        window, due = self._window, self._due
        assert window.freed is not None
        for first, last in window.freed:
            heapq.heappush(due, Due(self._now_ms, first, last))
        window.freed.clear()
        while due:
            at_ms, first, last = due[0]
            free = window.first_free(max(first, window.start), last)
            if free is None:
                heapq.heappop(due)
                continue
            if free != first:
                heapq.heapreplace(due, Due(at_ms, free, last))
            return free
        return None

    @property
    def late_ms(self) -> int:
        """Time for which what `next_free` gave has been due."""
        return max(self._now_ms - self._due[0].at_ms, 0) if self._due else 0

    def spans(self, batches: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Ranges of offsets in some record batches that may be free, in order, as far as a fetch
        should reach: the bytes of batches without a free record are sent for nothing.
        """
        low, high = batches[0][0], batches[-1][1]
        found = _joined(
            sorted(
                (max(first, low), min(last, high))
                for _, first, last in self._due
                if last >= low and first <= high
            )
        )
        before = 0
        for index, (first, last) in enumerate(found):
            at = bisect_right(batches, first, key=_base)
            if index and at - before > NEARBY:
                return found[:index]
            before = max(before, bisect_right(batches, last, key=_base))
        return found

    def log_starts_at(self, offset: int) -> int:
        """The log loses what is below an offset; before the window is cut. How many waited."""
        window = self._window
        gone = window.holes(window.start, min(offset, self.cursor) - 1)
        lost = sum(last - first + 1 for first, last in gone)
        self.waiting -= lost
        self.cursor = max(self.cursor, offset)
        if lost and len(self._wheel) > 2 * self.waiting + MOST_STALE:
            self._wheel.keep(lambda due: due.last >= offset)
        return lost

    def _wait(self, due: Due) -> None:
        for first, last in list(self._window.holes(due.first, due.last)):
            self._wheel.add(Due(due.at_ms, first, last))
            self.waiting += last - first + 1

    def _put_due(self, first: int, last: int) -> None:
        if first <= last:
            self._put(first, last, AVAILABLE)
            heapq.heappush(self._due, Due(self._now_ms, first, last))

    def _put(self, first: int, last: int, state: int) -> None:
        """Takes offsets into the window that have no state there."""
        if first > last:
            return
        for low, high in list(self._window.holes(first, last)):
            self._window.insert(InFlightBatch(low, high, [Run(low, high, state, 0)]))


def _base(batch: tuple[int, int]) -> int:
    return batch[0]


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ordered ranges, those that touch as one."""
    joined: list[tuple[int, int]] = []
    for first, last in ranges:
        if joined and joined[-1][1] + 1 >= first:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined
