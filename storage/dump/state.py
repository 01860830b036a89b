"""Dumps the small files of a partition or data directory: producers, epochs, checkpoints.

They are read whole, up to a limit, and shown whole or not at all: a snapshot stands or falls with
its CRC, a checkpoint with its count.
"""

from collections.abc import Iterator

from storage.dump.rows import Damage, Dumped, Row, Value
from storage.env import FileSystem
from storage.errors import CorruptCheckpoint
from storage.files.checkpoints import decode_offsets, decode_rows, numbers
from storage.producers import producer_snapshots
from storage.producers.producer_state import ProducerEntry

MAX_BYTES = 256 * 1024 * 1024


def dump_snapshot(fs: FileSystem, path: str, size: int) -> Iterator[Dumped]:
    """State of each producer (semantics.md 9.2)."""
    if size > MAX_BYTES:
        yield _too_large(size)
        return
    try:
        entries = producer_snapshots.decode(path, fs.read_bytes(path))
    except CorruptCheckpoint as error:
        yield Damage(0, error.message)
        return
    for producer_id, entry in entries:
        yield Row("producer", _producer(producer_id, entry))


def dump_epochs(fs: FileSystem, path: str, size: int) -> Iterator[Dumped]:
    """Leader epochs and the first offset of each."""
    yield from _checkpoint(fs, path, size, ("epoch", "startOffset"))


def dump_offsets(fs: FileSystem, path: str, size: int) -> Iterator[Dumped]:
    """Partitions and an offset of each: what it is, the name of the file says."""
    yield from _checkpoint(fs, path, size, ("topic", "partition", "offset"))


def _checkpoint(fs: FileSystem, path: str, size: int, names: tuple[str, ...]) -> Iterator[Dumped]:
    if size > MAX_BYTES:
        yield _too_large(size)
        return
    words = [name for name in names if name == "topic"]
    try:
        text = fs.read_text(path)
        rows = decode_offsets(path, text) if words else decode_rows(path, text, columns=len(names))
        for row in rows:
            values: list[Value] = [*row[: len(words)], *numbers(path, row[len(words) :])]
            yield Row("checkpoint", dict(zip(names, values, strict=True)))
    except CorruptCheckpoint as error:
        yield Damage(0, error.message)


def _producer(producer_id: int, entry: ProducerEntry) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "producerId": producer_id,
        "producerEpoch": entry.epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "currentTxnFirstOffset": entry.txn_first_offset if entry.has_open_transaction else None,
        "lastTimestamp": entry.last_timestamp,
    }
    if entry.batches:
        batch = entry.batches[-1]
        fields.update(
            firstSequence=batch.base_sequence,
            lastSequence=batch.last_sequence,
            lastOffset=batch.last_offset,
            offsetDelta=batch.offset_delta,
            timestamp=batch.timestamp,
        )
    return fields


def _too_large(size: int) -> Damage:
    return Damage(0, f"{size} bytes are more than any such file has")
