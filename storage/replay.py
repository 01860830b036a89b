"""Feeds batches of the log to what is remembered of producers and epochs (semantics 9.3, 10)."""

import struct
from struct import Struct

from protocol.errors import DecodeError
from protocol.records.batch import CONTROL, read_header
from protocol.records.record import read_records
from protocol.records.scan import BatchRow
from storage.leader_epochs import LeaderEpochs
from storage.log_scan import LogScan
from storage.producer_state import ProducerStates
from storage.segment import Segment

_MARKER_KEY = Struct(">hh")  # version, type
_MARKER_VALUE = Struct(">hi")  # version, coordinator epoch
_ABORT, _COMMIT = 0, 1


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
    try:
        marker = read_records(data[row[0] : row[0] + row[5]])[0]
        _, kind = _MARKER_KEY.unpack_from(marker.key or b"")
        _, coordinator_epoch = _MARKER_VALUE.unpack_from(marker.value or b"")
    except (DecodeError, IndexError, struct.error):
        return  # a control batch of a kind that says nothing of producers
    if kind in (_ABORT, _COMMIT):
        producers.end_transaction(
            row[8], row[9], coordinator_epoch, row[1], row[4], is_aborted=kind == _ABORT
        )
