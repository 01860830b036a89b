"""Snapshot files of a partition's producers: `<offset>.snapshot` (semantics.md 9.2, 9.3, 10).

The state as of the offset in the name: int16 version 1, uint32 CRC-32C of all that follows, int32
count, then 46 bytes a producer. Only a producer's last batch is kept, so after a load older
resends are no longer known as duplicates. A snapshot is a short cut past a replay of the log:
a damaged one is removed, the next older one is tried, and the log is replayed from there.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from protocol.checksum import crc32c
from storage.env import FileSystem
from storage.errors import CorruptCheckpoint, FileMissing
from storage.files.layout import SNAPSHOT, segment_name
from storage.producers.producer_state import (
    NO_OFFSET,
    ProducerEntry,
    ProducerStates,
    RememberedBatch,
)

VERSION = 1
UNKNOWN_SEQUENCE = -2
"""In the place of -1, for a producer of which a marker alone is left. Kafka reads no sequence of an
entry without an offset.
"""

_SEAL = Struct(">hI")
_HEAD = Struct(">hIi")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


class SnapshotLoad(NamedTuple):
    """Result of a load. `offset` is None without a usable snapshot: replay from the log's start."""

    offset: int | None
    damaged: tuple[str, ...]


def encode(states: ProducerStates) -> bytes:
    """The snapshot's bytes."""
    body = _COUNT.pack(len(states)) + b"".join(
        _ENTRY.pack(
            producer_id,
            entry.epoch,
            _stored_sequence(entry),
            entry.last_offset,
            entry.batches[-1].offset_delta if entry.batches else 0,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for producer_id, entry in states
    )
    return _SEAL.pack(VERSION, crc32c(body)) + body


def _stored_sequence(entry: ProducerEntry) -> int:
    return UNKNOWN_SEQUENCE if entry.has_unknown_sequence else entry.last_sequence


def decode(path: str, data: bytes) -> list[tuple[int, ProducerEntry]]:
    """Producer ids and entries; CorruptCheckpoint for anything else than a sound snapshot."""
    if len(data) < _HEAD.size:
        raise CorruptCheckpoint(path, f"{len(data)} bytes are no snapshot")
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptCheckpoint(path, f"version {version} is not known")
    if crc32c(data[_SEAL.size :]) != crc:
        raise CorruptCheckpoint(path, "the CRC does not match")
    if count < 0 or len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptCheckpoint(path, f"{len(data)} bytes for {count} producers")
    return [_entry(fields) for fields in _ENTRY.iter_unpack(data[_HEAD.size :])]


def save(fs: FileSystem, directory: str, states: ProducerStates) -> str:
    """Write the snapshot for the state's end offset, unsynced; its path. DiskError.

    A crash may leave it torn, which the CRC tells.
    """
    path = f"{directory}/{segment_name(states.end_offset, SNAPSHOT)}"
    data = encode(states)
    file = fs.open(path, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
    finally:
        file.close()
    return path


def load_newest(
    fs: FileSystem,
    directory: str,
    offsets: Iterable[int],
    states: ProducerStates,
    *,
    at_least: int,
    at_most: int,
) -> SnapshotLoad:
    """Fill `states` (emptied first) from the newest sound snapshot within both bounds, inclusive.

    `offsets` are those of the snapshots that exist; `at_least` is the base of the log's first
    segment, since the batches between an older one and it are gone. Damaged ones are removed and
    named in the answer. Nobody is too old to be restored: `ProducerStates.expire_restored` judges
    that once the clock is believed.
    """
    damaged: list[str] = []
    states.clear(0)
    for offset in sorted((o for o in offsets if at_least <= o <= at_most), reverse=True):
        path = f"{directory}/{segment_name(offset, SNAPSHOT)}"
        try:
            entries = decode(path, fs.read_bytes(path))
        except FileMissing:
            continue
        except CorruptCheckpoint as error:
            damaged.append(str(error))
            fs.remove(path)
            continue
        for producer_id, entry in entries:
            states.restore(producer_id, entry)
        states.end_offset = states.restored_below = offset
        return SnapshotLoad(offset, tuple(damaged))
    return SnapshotLoad(None, tuple(damaged))


def stray_offsets(offsets: Iterable[int], segment_bases: Iterable[int]) -> list[int]:
    """Snapshots that belong to no segment, but for the newest if it is above all of them.

    That one was written at a clean stop.
    """
    bases = set(segment_bases)
    strays = sorted(set(offsets) - bases)
    if strays and strays[-1] > max(bases, default=-1):
        strays.pop()
    return strays


def _entry(fields: tuple[int, ...]) -> tuple[int, ProducerEntry]:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator, first = fields
    batches: tuple[RememberedBatch, ...] = ()
    if last_offset > NO_OFFSET:
        batches = (RememberedBatch(last_sequence, last_offset, delta, timestamp),)
    return producer_id, ProducerEntry(
        epoch,
        batches=batches,
        last_timestamp=timestamp,
        coordinator_epoch=coordinator,
        txn_first_offset=first,
        is_marker_alone=last_sequence == UNKNOWN_SEQUENCE,
    )
