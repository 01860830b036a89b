"""The window of a share partition: its unfinished records, and the finished ones between them.

Batches as they were acquired (suspects and ranges depend on them, as in Kafka), inside them runs of
equal offsets, no object per record. From `start` (SPSO) to `end` (SPEO) every offset has a state.
Below `start` are only records that a member holds although the log has lost them.
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
        """Number of offsets from start to end, finished ones included."""
        return self.next_new - self.start

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

    def free_from(self, offset: int) -> None:
        """Remembers that this offset became free."""
        self._free_from = max(min(self._free_from, offset), self.start)

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
        self.batches[index : index + count] = batches
        self._firsts[index : index + count] = [batch.first for batch in batches]

    def append(self, batch: InFlightBatch) -> None:
        """Takes a batch in behind all others."""
        self.batches.append(batch)
        self._firsts.append(batch.first)
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
                batch.runs = merged(runs)
        return changed

    def advance(self) -> None:
        """Moves `start` over what is finished, and drops it."""
        start, passed = self.start, 0
        for run in (run for batch in self.batches for run in batch.runs):
            if run.last < start:
                continue
            if not run.is_finished:
                break
            passed += run.last - max(run.first, start) + 1
            start = run.last + 1
        self.finished -= passed
        self.start = start
        self._drop()

    def cut(self, start: int) -> None:
        """Moves `start` to where the log begins now: what nobody holds below is dropped."""
        self.start = start
        self.finished = 0
        self.finished = sum(
            self._counted(run.first, run.last)
            for batch in self.batches
            for run in batch.runs
            if run.state >= ACKNOWLEDGED
        )
        self._drop()

    def _drop(self) -> None:
        """Removes records below `start` that nobody holds."""
        self._free_from = max(self._free_from, self.start)
        passed = self.index_of(self.start) + 1
        kept = []
        for batch in self.batches[:passed]:
            batch.runs = [run for run in batch.runs if run.last >= self.start or _is_held(run)]
            if batch.runs:
                kept.append(batch)
        self.put(0, passed, kept)

    def _account(self, old: Run, new: Run) -> None:
        is_final = new.state >= ACKNOWLEDGED
        if (old.state >= ACKNOWLEDGED) != is_final:
            counted = self._counted(new.first, new.last)
            self.finished += counted if is_final else -counted
        if new.state == AVAILABLE:
            self.free_from(new.first)

    def _counted(self, first: int, last: int) -> int:
        """Number of offsets of a range from `start` on."""
        return max(last - max(first, self.start) + 1, 0)


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
