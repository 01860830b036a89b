"""Feeds batches of the log to what is remembered of producers and epochs (semantics 9.3, 10)."""

import struct
from struct import Struct
from typing import NamedTuple

from protocol.errors import DecodeError
from protocol.records.batch import CONTROL, read_header
from protocol.records.record import Record, read_records
from protocol.records.scan import BatchRow
from storage.leader_epochs import LeaderEpochs
from storage.log_scan import LogScan
from storage.producer_state import ProducerStates
from storage.segment import Segment

_MARKER_KEY = Struct(">hh")  # version, type
_MARKER_VALUE = Struct(">hi")  # version, coordinator epoch
ABORT, COMMIT = 0, 1


class Marker(NamedTuple):
    """What a transaction marker says."""

    kind: int
    """`ABORT` or `COMMIT`."""
    coordinator_epoch: int


def replay_rows(
    rows: list[BatchRow], data: memoryview, producers: ProducerStates, epochs: LeaderEpochs | None
) -> None:
    """Take in the batches of a chunk that the producers' state does not know yet."""
    known = producers.end_offset
    epoch = None
    for row in rows:
        if epochs is not None and row[11] != epoch:
            epoch = row[11]
            latest = epochs.latest
            if latest is None or latest.epoch < epoch:
                epochs.assign(epoch, row[1])
        if row[8] >= 0 and row[1] >= known:
            _replay(row, data, producers)


def replay_producers(
    segments: tuple[Segment, ...], producers: ProducerStates, end_offset: int
) -> None:
    """Read the log from where the producers' state ends. DiskError."""
    for index, segment in enumerate(segments):
        following = segments[index + 1].base_offset if index + 1 < len(segments) else end_offset
        if following > producers.end_offset:
            scan = LogScan(segment.file(), limit=segment.size_bytes)
            for chunk in scan.chunks():
                replay_rows(chunk.rows, chunk.data, producers, None)
    producers.end_offset = end_offset


def _replay(row: BatchRow, data: memoryview, producers: ProducerStates) -> None:
    if not row[7] & CONTROL:
        producers.update(read_header(data, row[0]), row[1], row[4])
        return
    marker = marker_of(data[row[0] : row[0] + row[5]])
    if marker is not None:
        producers.end_transaction(
            row[8],
            row[9],
            marker.coordinator_epoch,
            row[1],
            row[4],
            is_aborted=marker.kind == ABORT,
        )


def marker_of(batch: memoryview) -> Marker | None:
    """The marker in a control batch; None for one that says nothing of transactions."""
    try:
        return read_marker(read_records(batch)[0])
    except (DecodeError, IndexError):
        return None


def read_marker(record: Record) -> Marker | None:
    """Likewise, of the control record itself."""
    try:
        _, kind = _MARKER_KEY.unpack_from(record.key or b"")
        _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value or b"")
    except struct.error:
        return None
    return Marker(kind, coordinator_epoch) if kind in {ABORT, COMMIT} else None
