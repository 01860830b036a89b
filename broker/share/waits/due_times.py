"""Due times of the records of a log for a share group, by their batches' bounds if that is enough.

A record is due at the time that it asks for, and not before `horolog.share.delay.ms` after its
arrival; but at most `horolog.share.delay.max.ms` after that, so that a client's clock of 2055 pins
nothing. Arrival is the last that its zone allows for. A batch that is due as a whole, or whose
records are all due at one time, is not opened. Milliseconds.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.share.waits.delayed import TakenIn
from broker.share.waits.wheel import Due
from config.resources.group import DELAY_BY_HEADER, DELAY_BY_RECORD_TIME, NO_DELAY
from protocol.records.batch import BatchHeader, CorruptBatch, read_header
from protocol.records.named_header import ABSENT, take_numbers
from storage.env import Buffer
from storage.files.file_slice import FileSlice
from storage.scan.batch_bounds import BatchBounds, batch_bounds
from storage.scan.batch_walk import Readable
from storage.scan.located_records import located, numbers
from storage.search.arrivals import ArrivalSpan
from storage.search.log_search import LogSearch
from storage.search.segment_access import CachedFile, SegmentAccess
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.validation.unpacking import TooMuchWork, Work

HEADER_NAME = b"horolog-deliver-at"


class DelayTerms(NamedTuple):
    """Settings of a group that say when a record is due; times in ms."""

    by: str = NO_DELAY
    delay_ms: int = 0
    max_ms: int = 0

    @property
    def is_on(self) -> bool:
        """False where every record is due when it comes."""
        return self.by != NO_DELAY or self.delay_ms > 0


@dataclass(slots=True)
class DueTimes:
    """Due times of the record batches in a piece of a log."""

    terms: DelayTerms
    now_ms: int
    batches: list[TakenIn] = field(default_factory=list)
    bounded: int = 0
    """Records that ask for a later time than they may."""
    unusable: int = 0
    """Headers that say no time."""


class DueReader:
    """Reads due times of one piece. Blocks if it may wait; any thread."""

    def __init__(self, search: LogSearch, piece: FileSlice, work: Work | None) -> None:
        """`work`: what it may unpack where it may wait; None where it may not."""
        may_wait = work is not None
        self._look: SegmentAccess = search.look(may_wait=may_wait, work=work)
        self._search = search
        self._piece = piece
        self._may_wait = may_wait
        file = piece.file
        self._file: Readable = file if may_wait else CachedFile(file, self._look)
        self._spans: Sequence[ArrivalSpan] | None = None
        self._span = 0
        self._bounds: list[BatchBounds] = []

    def read(self, terms: DelayTerms, now_ms: int) -> DueTimes:
        """The due times. NotInMemory if it may not wait and would have to; StorageError,
        DecodeError; TooMuchWork when the first batch takes more than is allowed.
        """
        found = DueTimes(terms, now_ms)
        self._bounds = batch_bounds(self._read_at, self._piece.size, INT64_MAX)
        for each in self._bounds:
            try:
                later = self._later(each, found)
            except TooMuchWork:
                if not found.batches:
                    raise
                break
            found.batches.append(TakenIn(each.first, each.last, later))
        return found

    def _read_at(self, position: int, size: int) -> Buffer:
        return self._file.read_at(self._piece.position + position, size)

    def _later(self, batch: BatchBounds, found: DueTimes) -> Sequence[Due]:
        """The offsets of a batch that are not due."""
        terms, now_ms = found.terms, found.now_ms
        by_header = terms.by == DELAY_BY_HEADER
        asked = batch.max_timestamp if terms.by == DELAY_BY_RECORD_TIME else INT64_MIN
        if batch.is_control or not (by_header or terms.delay_ms or asked > now_ms):
            return ()
        arrival_ms = self._arrival(batch, now_ms)
        floor, cap = arrival_ms + terms.delay_ms, arrival_ms + terms.max_ms
        if cap <= now_ms or not (by_header or max(asked, floor) > now_ms):
            return ()
        if by_header or (asked > floor and not batch.is_stamped):
            return self._by_record(batch, floor, cap, found)
        found.bounded += (asked > cap) * (batch.last - batch.first + 1)
        return (Due(min(max(asked, floor), cap), batch.first, batch.last),)

    def _arrival(self, batch: BatchBounds, now_ms: int) -> int:
        """Latest possible arrival of a batch, which is in one zone."""
        if self._spans is None:
            first, end = self._bounds[0].first, self._bounds[-1].last + 1
            self._spans = self._search.arrivals_between(first, end, may_wait=self._may_wait)
        spans = self._spans
        if not spans:  # the log was cut meanwhile
            return now_ms
        while self._span + 1 < len(spans) and spans[self._span].end_offset <= batch.first:
            self._span += 1
        _, first_ms, last_ms = spans[self._span]
        if batch.is_stamped:
            return min(max(batch.max_timestamp, first_ms), last_ms)
        return last_ms

    def _by_record(
        self, batch: BatchBounds, floor: int, cap: int, found: DueTimes
    ) -> Sequence[Due]:
        size = batch.end_position - batch.position
        raw = memoryview(self._read_at(batch.position, size))
        header = read_header(raw)
        place = self._piece.position + batch.position
        records = self._look.records_of(raw, header, self._piece.file.path, place)
        if found.terms.by == DELAY_BY_HEADER:
            offsets, asked, unusable = _asked_in_headers(records, header)
            found.unusable += unusable
        else:
            offsets, asked = located(records, header, places=False)[:2]
        found.bounded += sum(time > cap for time in asked)
        return _later_of(offsets, asked, found.now_ms, (floor, cap))


def _later_of(
    offsets: "Sequence[int]", asked: "Sequence[int]", now_ms: int, bounds: tuple[int, int]
) -> list[Due]:
    """Offsets that are due later, neighbours of one time together."""
    later: list[Due] = []
    floor, cap = bounds
    before = INT64_MIN
    first = last = -2
    for offset, time in zip(offsets, asked, strict=True):
        at_ms = min(max(time, floor), cap)
        if at_ms == before and offset == last + 1:
            last = offset
            continue
        if offset <= last:
            raise CorruptBatch("the offsets of its records do not rise")
        if before > now_ms:
            later.append(Due(before, first, last))
        before, first, last = at_ms, offset, offset
    if before > now_ms:
        later.append(Due(before, first, last))
    return later


def _asked_in_headers(records: Buffer, header: BatchHeader) -> "tuple[array[int], array[int], int]":
    """Offsets, the times that headers ask for, and the number of headers that say none."""
    offsets, _, places, ends = located(records, header, places=True)
    asked = numbers(len(offsets))
    unusable = take_numbers(records, places, ends, HEADER_NAME, asked)
    assert ABSENT == INT64_MIN, "no time is before all others"
    return offsets, asked, unusable
