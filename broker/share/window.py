"""The window of a share partition: its unfinished records, and the finished ones between them.

Batches as they were acquired (suspects and ranges depend on them, as in Kafka), inside them runs of
equal offsets, no object per record. From `start` (SPSO) to `end` (SPEO) every offset has a state,
but in a group with a delay those that wait for their time. Below `start` are only records that a
member holds although the log has lost them.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator

from broker.share.states import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE, Run

Change = Callable[[Run], Run]
"""The new run in place of a part of an old one, of the same offsets; the same one for no change."""


class InFlightBatch:
    """Offsets that were first acquired together. Its runs may begin later: what is finished at the
    window's start is dropped.
    """

    __slots__ = ("first", "last", "runs")

    def __init__(self, first: int, last: int, runs: list[Run]) -> None:
        """`runs` lie between the two offsets, in order and without holes."""
        self.first = first
        self.last = last
        self.runs = runs

    @property
    def size(self) -> int:
        """Number of offsets, dropped ones included."""
        return self.last - self.first + 1


class InFlightWindow:
    """Batches in order of offsets, and what is counted of them."""

    def __init__(self, start: int) -> None:
        """Nothing was acquired; the first offset to acquire is `start`."""
        self.start = start
        self.batches: list[InFlightBatch] = []
        self.finished = 0
        """Number of offsets from `start` on whose state is final, or will be after a write."""
        self.known = 0
        """Number of offsets from `start` on that have a state here; all of them without a delay."""
        self.run_count = 0
        """Number of runs in all batches: no fewer than the ranges of its stored state."""
        self.freed: list[tuple[int, int]] | None = None
        """Ranges that became free, both ends included; None for who asks `next_fetch`."""
        self._firsts: list[int] = []
        self._free_from = start
        """No offset below is free."""

    @property
    def end(self) -> int:
        """The last offset that was taken in; below `start` when there is none."""
        return self.batches[-1].last if self.batches else self.start - 1

    @property
    def first(self) -> int:
        """The first offset that has a state here; below `start` if a member holds it."""
        return self.batches[0].runs[0].first if self.batches else self.start

    @property
    def next_new(self) -> int:
        """The first offset that was never taken in."""
        return max(self.end + 1, self.start)

    @property
    def in_flight(self) -> int:
        """Number of offsets from start to end that have a state, finished ones included."""
        return self.known

    def index_of(self, offset: int) -> int:
        """The place of the last batch that begins at the offset or before, at least 0."""
        return max(bisect_right(self._firsts, offset) - 1, 0)

    def next_fetch(self) -> int:
        """The first free offset, else the first new one."""
        for batch in self.between(self._free_from, self.end):
            for run in batch.runs:
                if run.is_free and run.last >= self._free_from:
                    self._free_from = max(run.first, self._free_from)
                    return self._free_from
        self._free_from = self.next_new
        return self._free_from

    def first_free(self, first: int, last: int) -> int | None:
        """The first free offset of a range."""
        for batch in self.between(first, last):
            for run in batch.runs:
                if run.is_free and run.last >= first:
                    return max(run.first, first) if run.first <= last else None
        return None

    def became_free(self, first: int, last: int) -> None:
        """Remembers that offsets may be free now."""
        self._free_from = max(min(self._free_from, first), self.start)
        if self.freed is not None:
            self.freed.append((first, last))

    def holes(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The parts of a range that have no state here, both ends included."""
        at = first
        for batch in self.between(first, last):
            if at < batch.first:
                yield at, batch.first - 1
            at = max(at, batch.last + 1)
        if at <= last:
            yield at, last

    def between(self, first: int, last: int) -> Iterator[InFlightBatch]:
        """Batches that have offsets of the range."""
        for index in range(self.index_of(first), len(self.batches)):
            batch = self.batches[index]
            if batch.first > last:
                return
            if batch.last >= first:
                yield batch

    def put(self, index: int, count: int, batches: list[InFlightBatch]) -> None:
        """Puts batches in the place of `count` old ones. What was counted stays right only if no
        finished offset comes or goes.
        """
        old = self.batches[index : index + count]
        self.run_count += _runs_in(batches) - _runs_in(old)
        self.batches[index : index + count] = batches
        self._firsts[index : index + count] = [batch.first for batch in batches]

    def set_runs(self, batch: InFlightBatch, runs: list[Run]) -> None:
        """Gives a batch of the window other runs."""
        self.run_count += len(runs) - len(batch.runs)
        batch.runs = runs

    def append(self, batch: InFlightBatch) -> None:
        """Takes a batch in behind all others."""
        self.run_count += len(batch.runs)
        self.batches.append(batch)
        self._firsts.append(batch.first)
        self._count(batch)

    def insert(self, batch: InFlightBatch) -> None:
        """Takes a batch in whose offsets have no state here."""
        index = bisect_right(self._firsts, batch.first)
        self.run_count += len(batch.runs)
        self.batches.insert(index, batch)
        self._firsts.insert(index, batch.first)
        self._count(batch)

    def forget_new(self) -> None:
        """Leaves out what nobody ever acquired; says of what else is free that it became so."""
        kept = [part for batch in self.batches for part in _without_new(batch)]
        self.put(0, len(self.batches), kept)
        self.cut(self.start)
        for run in (run for batch in kept for run in batch.runs):
            if run.is_free:
                self.became_free(run.first, run.last)

    def join_finished(self, first: int, last: int) -> None:
        """Makes one batch of neighbours that are finished in one way: each hole beside one that was
        due leaves a batch by itself.
        """
        index = self.index_of(first - 1)
        while index + 1 < len(self.batches) and self.batches[index].first <= last:
            one, two = self.batches[index].runs, self.batches[index + 1].runs
            together = merged([one[0], two[0]]) if len(one) == len(two) == 1 else ()
            if len(together) == 1 and together[0].is_finished:
                batch = InFlightBatch(self.batches[index].first, together[0].last, [*together])
                self.put(index, 2, [batch])
            else:
                index += 1

    def _count(self, batch: InFlightBatch) -> None:
        """Counts the offsets of a batch."""
        self.known += self._counted(batch.runs[0].first, batch.last)
        self.finished += sum(
            self._counted(run.first, run.last) for run in batch.runs if run.state >= ACKNOWLEDGED
        )

    def change(self, first: int, last: int, change: Change) -> list[Run]:
        """Changes runs in a range, split at its ends. Returns the new ones in order."""
        changed: list[Run] = []
        for batch in self.between(first, last):
            runs: list[Run] = []
            before = len(changed)
            for run in batch.runs:
                if run.last < first or run.first > last:
                    runs.append(run)
                    continue
                old = _part(run, max(run.first, first), min(run.last, last))
                new = change(old)
                if new is old:
                    runs.append(run)
                    continue
                changed.append(new)
                self._account(old, new)
                _add_parts(runs, run, new)
            if len(changed) > before:
                self.set_runs(batch, merged(runs))
        return changed

    def advance(self) -> None:
        """Moves `start` over what is finished, and drops it."""
        start, passed = self.start, 0
        for run in (run for batch in self.batches for run in batch.runs):
            if run.last < start:
                continue
            if run.first > start or not run.is_finished:
                break
            passed += run.last - max(run.first, start) + 1
            start = run.last + 1
        self.finished -= passed
        self.known -= passed
        self.start = start
        self._drop()

    def cut(self, start: int) -> None:
        """Moves `start` to where the log begins now: what nobody holds below is dropped."""
        self.start = start
        self.finished = self.known = 0
        for batch in self.batches:
            self._count(batch)
        self._drop()

    def _drop(self) -> None:
        """Removes records below `start` that nobody holds."""
        self._free_from = max(self._free_from, self.start)
        passed = self.index_of(self.start) + 1
        kept = []
        for batch in self.batches[:passed]:
            left = [run for run in batch.runs if run.last >= self.start or _is_held(run)]
            self.set_runs(batch, left)
            if batch.runs:
                kept.append(batch)
        self.put(0, passed, kept)

    def _account(self, old: Run, new: Run) -> None:
        is_final = new.state >= ACKNOWLEDGED
        if (old.state >= ACKNOWLEDGED) != is_final:
            counted = self._counted(new.first, new.last)
            self.finished += counted if is_final else -counted
        if new.state == AVAILABLE:
            self.became_free(new.first, new.last)

    def _counted(self, first: int, last: int) -> int:
        """Number of offsets of a range from `start` on."""
        return max(last - max(first, self.start) + 1, 0)


def _runs_in(batches: list[InFlightBatch]) -> int:
    return sum(len(batch.runs) for batch in batches)


def _without_new(batch: InFlightBatch) -> list[InFlightBatch]:
    """The parts of a batch between runs that nobody ever acquired."""
    is_new = [run.is_free and not run.deliveries for run in batch.runs]
    if not any(is_new):
        return [batch]
    parts: list[list[Run]] = [[]]
    for run, leaves_out in zip(batch.runs, is_new, strict=True):
        if leaves_out:
            parts.append([])
        else:
            parts[-1].append(run)
    return [InFlightBatch(runs[0].first, runs[-1].last, runs) for runs in parts if runs]


def _is_held(run: Run) -> bool:
    return run.state == ACQUIRED or run.is_pending


def _part(run: Run, first: int, last: int) -> Run:
    if (first, last) == (run.first, run.last):
        return run
    return run._replace(first=first, last=last)


def _add_parts(runs: list[Run], old: Run, new: Run) -> None:
    """Adds the new run, and what is left of the old one on both sides of it."""
    if old.first < new.first:
        runs.append(old._replace(last=new.first - 1))
    runs.append(new)
    if new.last < old.last:
        runs.append(old._replace(first=new.last + 1))


def merged(runs: list[Run]) -> list[Run]:
    """The runs, equal neighbours as one."""
    out = [_settled(runs[0])]
    for each in runs[1:]:
        run = _settled(each)
        before = out[-1]
        if before.last + 1 == run.first and before[2:] == run[2:]:
            out[-1] = before._replace(last=run.last)
        else:
            out.append(run)
    return out


def _settled(run: Run) -> Run:
    """The run without the write that is done, and without the lock of before it."""
    if run.write is None or not run.write.done:
        return run
    return Run(run.first, run.last, run.state, run.deliveries, wait=run.wait)


def archived(run: Run) -> Run:
    """The run, given up."""
    return Run(run.first, run.last, ARCHIVED, run.deliveries)
