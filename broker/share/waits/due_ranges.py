"""Due times of records that wait, read from the log again for those who look.

One piece of the log at a time. Blocks: it runs on a thread that may wait. Milliseconds.
"""

from collections.abc import Iterator
from typing import NamedTuple

from broker.share.waits.due_times import DelayTerms, DueReader
from broker.share.waits.wheel import Due
from protocol.errors import DecodeError, KafkaError
from storage.errors import StorageError
from storage.log.log import Log
from storage.log.settled_read import read_settled
from storage.validation.unpacking import TooMuchWork, Work

PIECE_BYTES = 1024 * 1024
UNPACKED_BYTES = 16 * 1024 * 1024
UNPACKED_RECORDS = 200_000
BEFORE_ALL_MS = -1
"""By this time nothing is due: so every record says when it will be."""


class DueRanges(NamedTuple):
    """Due times of some offsets."""

    ranges: list[Due]
    """In order; offsets of none of them are due at once, or cannot be read."""
    next_offset: int
    """The first offset that was not looked at."""
    fault: StorageError | None = None
    """Fault of the disk or the tier's store, because of which nothing was read."""


def due_ranges(log: Log, first: int, last: int, terms: DelayTerms) -> DueRanges:
    """Due times of offsets, both ends included, as many as a piece of the log has.

    What cannot be read now has none.
    """
    try:
        end = log.snapshot.high_watermark
        data = read_settled(log, first, PIECE_BYTES, end)
        if not data.slices:
            return DueRanges([], last + 1)
        work = Work(UNPACKED_BYTES, UNPACKED_RECORDS)
        found = DueReader(log.search, data.slices[0], work).read(terms, BEFORE_ALL_MS)
    except StorageError as fault:
        return DueRanges([], last + 1, fault)
    except (DecodeError, KafkaError, TooMuchWork):
        return DueRanges([], last + 1)
    seen = found.batches[-1].last + 1 if found.batches else last + 1
    later = (due for batch in found.batches for due in batch.later)
    return DueRanges(list(_within(later, first, last)), min(max(seen, first + 1), last + 1))


def _within(ranges: Iterator[Due], first: int, last: int) -> Iterator[Due]:
    for each in ranges:
        if each.first <= last and each.last >= first:
            yield Due(each.at_ms, max(each.first, first), min(each.last, last))
