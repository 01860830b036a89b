"""Transactions in one log as their producers have sent them, and a reader of what is committed."""

from collections import Counter
from collections.abc import Collection, Iterator

from protocol.records.batch import read_header
from protocol.records.markers import ABORT, marker_of
from protocol.records.record import read_records
from protocol.records.scan import scan_batches
from storage.index.txn_index import AbortedTxn
from storage.log.log import Log
from storage.log.settled_read import read_settled

PRODUCERS = (10, 11)


class Transactions:
    """The model: what is open, and what does not count."""

    def __init__(self) -> None:
        """None."""
        self.open: dict[int, tuple[int, ...]] = {}
        """Offsets of records of transactions that have not ended, by producer."""
        self.sent = Counter[int]()
        self.uncounted: set[int] = set()
        """Offsets of markers, and of records that were aborted."""

    def copy(self) -> "Transactions":
        """Its state of now."""
        other = Transactions()
        other.open, other.sent = dict(self.open), Counter(self.sent)
        other.uncounted = set(self.uncounted)
        return other

    def written(self, producer: int, offset: int, count: int) -> None:
        """Records were appended from this offset on."""
        had = self.open.get(producer, ())
        self.open[producer] = (*had, *range(offset, offset + count))
        self.sent[producer] += count

    def ended(self, producer: int, offset: int, kind: int) -> None:
        """A marker was."""
        records = self.open.pop(producer)
        self.uncounted.add(offset)
        if kind == ABORT:
            self.uncounted.update(records)

    @property
    def undecided(self) -> frozenset[int]:
        """Offsets of records that may count one day."""
        return frozenset(each for records in self.open.values() for each in records)

    def stable_ends(self, start: int, end: int) -> frozenset[int]:
        """Last stable offsets that a log from `start` to `end` may have.

        A leader who has not seen a transaction that began before the start, and has no records of
        it, cannot know that it is open.
        """
        opened = [max(start, records[0]) for records in self.open.values()]
        left = [each for each in self.undecided if each >= start]
        return frozenset((min(opened, default=end), min(left, default=end)))


def check_committed(log: Log, transactions: Transactions, wanted: Collection[int] | None) -> None:
    """A reader of committed records has `wanted`, or if that is None all that count, and no others.

    `wanted`: of a compacted log, those that must be there.
    """
    snapshot = log.snapshot
    begin, end = snapshot.log_start_offset, snapshot.last_stable_offset
    assert end in transactions.stable_ends(begin, snapshot.log_end_offset), f"stable up to {end}"
    found = set(_committed(log, begin, end))
    allowed = set(range(begin, end)) - transactions.uncounted
    assert found <= allowed, f"{sorted(found - allowed)} do not count"
    missing = (allowed if wanted is None else allowed & set(wanted)) - found
    assert not missing, f"{sorted(missing)} are not read"


def _committed(log: Log, begin: int, end: int) -> Iterator[int]:
    """Offsets, in answers as a fetch gives them."""
    while begin < end:
        data = read_settled(log, begin, 300, end)
        view = memoryview(data.read())
        if not view:
            return  # compaction has left nothing behind
        answer = list(_of_answer(view, log.search.aborted_in(begin, data)))
        yield from (offset for offset, _ in answer if offset is not None and offset >= begin)
        begin = answer[-1][1] + 1


def _of_answer(
    view: memoryview, aborted: Collection[AbortedTxn]
) -> Iterator[tuple[int | None, int]]:
    """As clients read: a list of aborted transactions counts from their first offset to a marker.

    Offsets, and the end of the batch; None for a batch without records that count.
    """
    waiting = sorted(aborted, key=lambda each: each.first_offset)
    left_out = set[int]()
    for row in scan_batches(view).batches:
        batch = view[row[0] : row[0] + row[5]]
        while waiting and waiting[0].first_offset <= row[2]:
            left_out.add(waiting.pop(0).producer_id)
        yield from _of_batch(batch, row[2], left_out)


def _of_batch(batch: memoryview, last: int, left_out: set[int]) -> Iterator[tuple[int | None, int]]:
    header = read_header(batch)
    if header.is_control:
        marker = marker_of(batch)  # compaction may have left the batch alone
        if marker is not None and marker.kind == ABORT:
            left_out.discard(header.producer_id)
    elif not (header.is_transactional and header.producer_id in left_out):
        for record in read_records(batch):
            yield record.offset, last
    yield None, last
