"""Transaction markers: the control records that end a transaction in a partition.

A control batch holds one record. Its key is a version (int16) and a kind (int16: 0 abort, 1
commit), its value a version (int16) and the epoch of the coordinator (int32); both versions are 0
in all that Kafka has shipped. The producer's id and epoch stand in the batch's header.
"""

import struct
from struct import Struct
from typing import NamedTuple

from protocol.errors import DecodeError
from protocol.records.builder import build_batch
from protocol.records.record import Record, read_records

_KEY = Struct(">hh")  # version, kind
_VALUE = Struct(">hi")  # version, coordinator epoch
_VERSION = 0
ABORT, COMMIT = 0, 1


class Marker(NamedTuple):
    """Contents of a transaction marker."""

    kind: int
    """`ABORT` or `COMMIT`."""
    coordinator_epoch: int


def build_marker(
    marker: Marker, producer_id: int, producer_epoch: int, timestamp_ms: int
) -> bytearray:
    """The control batch, as a coordinator appends it."""
    row = (
        timestamp_ms,
        _KEY.pack(_VERSION, marker.kind),
        _VALUE.pack(_VERSION, marker.coordinator_epoch),
    )
    return build_batch(
        [row],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
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
        _, kind = _KEY.unpack_from(record.key or b"")
        _, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
    except struct.error:
        return None
    return Marker(kind, coordinator_epoch) if kind in {ABORT, COMMIT} else None
