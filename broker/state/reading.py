"""Reads back what a coordinator remembers, batch by batch. Blocks: run it on a lane."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from protocol.records.batch import BatchHeader, CorruptBatch, crc_matches, iter_headers
from storage.log.log import Log

NAMED = 5  # of the records that were left out of one partition


@dataclass(slots=True)
class LeftOut:
    """Records that mean nothing to us: how many, and what was wrong with the first ones."""

    count: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, offset: int, error: Exception) -> None:
        """The record with this offset is left out."""
        self.count += 1
        if len(self.named) < NAMED:
            self.named.append(f"offset {offset}: {error!r}")


def batches_of(log: Log, chunk_bytes: int) -> Iterator[tuple[memoryview, BatchHeader]]:
    """Every batch of a partition in order, read in pieces of about `chunk_bytes`.

    KafkaError when the disk refuses, CorruptBatch when a batch is damaged, StorageError when the
    tier's store does not give what it alone has.
    """
    for data in _chunks(log, chunk_bytes):
        for position, header in iter_headers(data):
            if not crc_matches(data, position, header):
                raise CorruptBatch(f"the CRC of a batch of {log!r} is wrong", position)
            yield data[position : position + header.size_bytes], header


def _read(log: Log, offset: int, chunk_bytes: int, end: int) -> memoryview:
    """Data from an offset on. What the store alone has is brought first: else it seems to end."""
    data = log.read(offset, chunk_bytes, up_to=end, min_one_batch=True)
    while data.unverified is not None and data.unverified.is_away:
        data.unverified.settle()
        data = log.read(offset, chunk_bytes, up_to=end, min_one_batch=True)
    return memoryview(data.read())


def _chunks(log: Log, chunk_bytes: int) -> Iterator[memoryview]:
    snapshot = log.snapshot
    offset, end = snapshot.log_start_offset, snapshot.log_end_offset
    while offset < end:
        data = _read(log, offset, chunk_bytes, end)
        last = offset - 1
        for _, header in iter_headers(data):
            last = header.last_offset
        if last < offset:  # compaction left nothing from here on
            return
        offset = last + 1
        yield data
