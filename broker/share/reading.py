"""Records read for a share partition: bounds of their batches, and the part that is delivered."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.share.acquire import Acquired, Fetched, Range
from broker.share.partition import SharePartition
from broker.share.served_partition import ServedPartition
from storage.env import Buffer
from storage.files.file_slice import FetchData, FileSlice
from storage.scan.batch_bounds import BatchBounds, batch_bounds


class NotCached(Exception):  # noqa: N818 - no error: it is read on a lane
    """The headers of batches would have to be read from the disk."""

    def __init__(self, reading: "ShareReading") -> None:
        """`reading`: the one that waits for the disk."""
        super().__init__()
        self.reading = reading


class ShareReading(NamedTuple):
    """Data of a log from the first offset on that may be acquired; not acquired yet."""

    served: ServedPartition
    records: SharePartition
    at: int
    data: FetchData
    committed: bool

    @property
    def piece(self) -> FileSlice:
        """The bytes, from a batch's begin on."""
        return self.data.slices[0]

    def bounds(self, max_records: int, *, may_wait: bool) -> list[BatchBounds]:
        """The batches of which so many records may be acquired. NotCached unless it `may_wait`,
        DiskError, CorruptBatch.
        """
        last = self.at + self.records.window.in_flight + max_records
        read_at = self._read_at if may_wait else self._read_cached
        return batch_bounds(read_at, self.piece.size, last)

    def _read_at(self, position: int, size: int) -> Buffer:
        return self.piece.file.read_at(self.piece.position + position, size)

    def _read_cached(self, position: int, size: int) -> Buffer:
        buffer = memoryview(bytearray(size))
        count = self.piece.file.read_into_if_cached(self.piece.position + position, buffer)
        if count is None:
            raise NotCached(self)
        return buffer[:count]

    def fetched(self, bounds: Sequence[BatchBounds]) -> Fetched:
        """The batches as an acquisition takes them."""
        return Fetched(self.at, [(each.first, each.last) for each in bounds], self._aborted(bounds))

    def _aborted(self, bounds: Sequence[BatchBounds]) -> list[Range]:
        """Batches that readers of committed records are not to see."""
        if not self.committed or not any(each.has_data_of_transaction for each in bounds):
            return []
        aborted = self.served.partition.log.search.aborted_in(self.at, self.data)
        return [
            (each.first, each.last)
            for each in bounds
            if each.has_data_of_transaction
            and any(
                txn.producer_id == each.producer_id
                and txn.first_offset <= each.first <= txn.last_offset
                for txn in aborted
            )
        ]

    def cut(self, bounds: Sequence[BatchBounds], got: Sequence[Acquired]) -> FileSlice:
        """The batches from the first acquired offset to the last."""
        first, last = got[0].first, got[-1].last
        begin = next(each.position for each in bounds if each.last >= first)
        end = next(each.end_position for each in reversed(bounds) if each.first <= last)
        piece = self.piece
        return FileSlice(piece.file, piece.position + begin, end - begin)
