"""Acquisition: which of the records that were read a member gets (KIP-932, KIP-1206).

What is free comes first, then what is new. In batch mode the limit of records is rounded up to the
end of a record batch, and ranges are cut near the wanted size; in record mode it is exact. Records
that were delivered often are suspects: they come alone, in ever smaller parts, so that one bad
record does not take its neighbours with it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.share.states import ACQUIRED, AVAILABLE, AcquisitionLock, Run, ShareRules
from broker.share.window import InFlightBatch, InFlightWindow, archived, merged

Range = tuple[int, int]
"""First and last offset."""
ANY = 1 << 62


class Fetched(NamedTuple):
    """Records that were read from the log for a share partition."""

    at: int
    """The offset from which was read: the log has nothing between it and the first batch."""
    batches: Sequence[Range]
    """The record batches, in order; not empty."""
    aborted: Sequence[Range] = ()
    """Batches of aborted transactions, for a group that reads committed records."""


class Ask(NamedTuple):
    """Limits that a member sets."""

    max_records: int
    batch_size: int
    by_record: bool = False
    """Record mode: never more than `max_records`, in place of whole record batches."""


class Acquired(NamedTuple):
    """Offsets that the member holds now, and how often they were delivered, this time included."""

    first: int
    last: int
    deliveries: int


class Acquisition:
    """One acquisition under way: what it got, and what it may still get."""

    def __init__(
        self, window: InFlightWindow, fetched: Fetched, ask: Ask, lock: AcquisitionLock
    ) -> None:
        """Nothing was acquired."""
        self.got: list[Acquired] = []
        self._window = window
        self._batches = fetched.batches
        self._ask = ask
        self._lock = lock
        self._taken = 0
        self._is_alone = False
        """True when nothing more may come along."""

    def run_parts(self, parts: Sequence[Range], ask: Ask, rules: ShareRules) -> None:
        """Takes what is free in some parts of the window, and nothing new; parts below its start
        are gone.
        """
        end = self._window.end
        for first, last in parts:
            if self._taken >= ask.max_records or self._is_alone:
                return
            begin, last_here = max(first, self._window.start), min(last, end)
            if begin <= last_here:
                self.run(begin, last_here, ask.max_records, rules.delivery_count_limit)

    def run(self, first: int, last: int, most: int, limit: int) -> None:
        """Takes at most `most` offsets of a range, as far as they are free or new."""
        window, index = self._window, self._window.index_of(first)
        while index < len(window.batches) and window.batches[index].first <= last:
            if self._taken >= most:
                return
            batch = window.batches[index]
            if batch.last < first:
                index += 1
            elif _is_fresh(batch):
                index = self._take_fresh(index, first, last, most)
            elif self._take_known(batch, (first, last), most, limit):
                self._is_alone = True
                return
            else:
                index += 1
        if self._taken < most and window.next_new <= last:
            first_new = max(window.next_new, first)
            for batch in self._new_batches(first_new, last, most - self._taken):
                window.append(batch)

    def withdraw(self, ranges: Sequence[Range]) -> None:
        """Gives up what the member is not to see: batches of aborted transactions."""
        for first, last in ranges:
            self._window.change(first, last, self._given_up)
        if ranges:
            self.got = list(_without(self.got, ranges))

    def _given_up(self, run: Run) -> Run:
        return archived(run) if run.state == ACQUIRED and run.lock is self._lock else run

    def _take_known(self, batch: InFlightBatch, bounds: Range, most: int, limit: int) -> bool:
        """Takes of a batch what is free. True when nothing more may come along with it."""
        free = [_clipped(run, bounds) for run in batch.runs if _is_free_in(run, bounds)]
        if not free:
            return False
        highest = max(run.deliveries for run in free)
        is_suspect = highest >= suspect_from(limit)
        if is_suspect and self.got:
            return True
        room = most - self._taken if self._ask.by_record else ANY
        parts = _unsuspected(free, room)
        if is_suspect:
            parts = suspects(free, room, batch.size, limit)
        self._take(batch, parts)
        return is_suspect

    def _take(self, batch: InFlightBatch, parts: list[Run]) -> None:
        """Marks parts of a batch's free runs as acquired."""
        runs: list[Run] = []
        rest = iter(parts)
        part = next(rest, None)
        for run in batch.runs:
            at = run.first
            while part is not None and run.first <= part.first <= run.last:
                if at < part.first:
                    runs.append(run._replace(first=at, last=part.first - 1))
                runs.append(self._acquired(part))
                at = part.last + 1
                part = next(rest, None)
            if at <= run.last:
                runs.append(run if at == run.first else run._replace(first=at))
        self._window.set_runs(batch, merged(runs))

    def _take_fresh(self, index: int, first: int, last: int, most: int) -> int:
        """Takes of offsets that a restart lost sight of, as of new ones. Returns the place behind
        what was taken.
        """
        window, batch = self._window, self._window.batches[index]
        (run,) = batch.runs
        first, last = max(run.first, first, window.start), min(run.last, last)
        parts = list(self._new_batches(first, last, most - self._taken))
        before = [_free(run.first, first - 1)] if run.first < first else []
        end = parts[-1].last
        behind = [_free(end + 1, run.last)] if end < run.last else []
        window.put(index, 1, before + parts + behind)
        return index + len(before) + len(parts)

    def _new_batches(self, first: int, last: int, most: int) -> Iterator[InFlightBatch]:
        """Batches of offsets that nobody acquired before, at least one."""
        end = last
        if most < last - first + 1:
            end = min(self._end_of_batch(first + most - 1), last)
        if self._ask.by_record:
            yield self._by_record(first, end, most)
            return
        for base in self._cuts(first, end):
            yield self._whole(first, base - 1)
            first = base
        yield self._whole(first, end)

    def _cuts(self, first: int, end: int) -> Iterator[int]:
        """Bases of record batches at which a range has reached the wanted size."""
        if end - first + 1 <= self._ask.batch_size:
            return
        for base, _ in self._batches:
            if base > end:
                return
            if base - first >= self._ask.batch_size:
                yield base
                first = base

    def _whole(self, first: int, last: int) -> InFlightBatch:
        return InFlightBatch(first, last, [self._acquired(Run(first, last, AVAILABLE, 0))])

    def _by_record(self, first: int, end: int, most: int) -> InFlightBatch:
        last = min(end, first + most - 1)
        batch = self._whole(first, last)
        if last < end:
            batch.last = end
            batch.runs.append(Run(last + 1, end, AVAILABLE, 0))
            self._window.became_free(last + 1, end)
        return batch

    def _end_of_batch(self, offset: int) -> int:
        """The end of the record batch that has the offset; the offset itself if none has."""
        for base, last in self._batches:
            if base <= offset <= last:
                return last
        return offset

    def _acquired(self, run: Run) -> Run:
        """The run as the member's; it is noted as taken."""
        self._taken += run.last - run.first + 1
        self._add(Acquired(run.first, run.last, run.deliveries + 1))
        return Run(run.first, run.last, ACQUIRED, run.deliveries + 1, self._lock)

    def _add(self, part: Acquired) -> None:
        self.got.append(part)


def bounds_of(
    window: InFlightWindow, fetched: Fetched, ask: Ask, rules: ShareRules
) -> tuple[int, int]:
    """The last offset to take, and how many at most; 0 when nothing may be taken.

    New offsets are taken in while the window is below its limit; what is free may be taken always.
    """
    last, room = fetched.batches[-1][1], rules.max_record_locks - window.in_flight
    most = min(ask.max_records, room)
    if most > 0:
        return last, most
    if fetched.at <= window.end:
        return min(last, window.end), min(ask.max_records, window.end - fetched.at + 1)
    return last, 0


def suspect_from(limit: int) -> int:
    """The number of deliveries from which on a record is a suspect."""
    return max(2, (limit + 1) // 2)


def suspects(free: Sequence[Run], room: int, size: int, limit: int) -> list[Run]:
    """The part of a suspected batch's free runs that is delivered, at most `room` offsets.

    The first suspect halves the batch once for each delivery from the first suspicious one on. A
    record whose last delivery it is comes by itself.
    """
    parts: list[Run] = []
    taken, most = 0, room
    is_halved = False
    for run in free:
        is_last = limit > 2 and run.deliveries >= limit - 1
        if is_last and parts:
            break
        if run.deliveries >= suspect_from(limit) and not is_halved:
            most = min(room, max(1, size >> (run.deliveries - suspect_from(limit) + 1)))
            is_halved = True
        count = 1 if is_last else min(run.last - run.first + 1, max(most - taken, 1))
        parts.append(run._replace(last=run.first + count - 1))
        taken += count
        if is_last or taken >= most:
            break
    return parts


def _unsuspected(free: Sequence[Run], room: int) -> list[Run]:
    """Free runs, at most `room` offsets of them."""
    parts: list[Run] = []
    for run in free:
        if room <= 0:
            break
        parts.append(run._replace(last=min(run.last, run.first + room - 1)))
        room -= run.last - run.first + 1
    return parts


def _is_fresh(batch: InFlightBatch) -> bool:
    """True when nobody ever acquired any of it."""
    return len(batch.runs) == 1 and batch.runs[0].deliveries == 0 and batch.runs[0].is_free


def _free(first: int, last: int) -> InFlightBatch:
    return InFlightBatch(first, last, [Run(first, last, AVAILABLE, 0)])


def _is_free_in(run: Run, bounds: Range) -> bool:
    return run.is_free and run.last >= bounds[0] and run.first <= bounds[1]


def _clipped(run: Run, bounds: Range) -> Run:
    """The part of a run within bounds; settled, for what a free run once waited for is done."""
    return Run(max(run.first, bounds[0]), min(run.last, bounds[1]), AVAILABLE, run.deliveries)


def _without(got: Sequence[Acquired], ranges: Sequence[Range]) -> Iterator[Acquired]:
    """The parts of what was acquired that lie outside of ordered ranges."""
    for each in got:
        at = each.first
        for first, last in ranges:
            if last < at or first > each.last:
                continue
            if at < first:
                yield each._replace(first=at, last=first - 1)
            at = max(at, last + 1)
        if at <= each.last:
            yield each._replace(first=at)
