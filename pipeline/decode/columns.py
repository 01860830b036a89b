"""Arrow columns of records, made from the decoder's numbers and from the headers of their batches.

One function a column; its name and type are in `schemas`. Times are UTC in microseconds; those that
do not fit become the nearest that does, and `timestampMs` has them as they are.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.decode.arrays import Mask, Numbers, array_of, repeated
from pipeline.decode.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    LEADER_EPOCH,
    MAX_TIME,
    POSITION,
    PRODUCER,
    PRODUCER_EPOCH,
    SEQUENCE,
)
from pipeline.decode.compiled import Located
from pipeline.decode.schemas import (
    ALL_COLUMNS,
    ARRIVED_FROM,
    BOUNDED,
    EXACT,
    METADATA,
    TIMESTAMP,
    UNKNOWN,
)
from protocol.records.batch import CODEC_MASK, LOG_APPEND_TIME
from protocol.records.compression import Codec

KEPT_CONSTANTS = 16
FURTHEST_MS = (2**63 - 1) // 1000
_SEQUENCES = 1 << 31

NEEDS_BATCH = frozenset(METADATA.names) - {"timestampMs"} | {ARRIVED_FROM.name}
"""Columns that ask which batch a record is of; `timestampType` does where batches differ in it."""


class Arrivals(NamedTuple):
    """Arrivals of a segment's batches (ms), as in its zone map, by position."""

    positions: Numbers
    first_ms: Numbers
    last_ms: Numbers
    is_estimated: "np.ndarray[Any, np.dtype[np.bool_]]"
    is_lifted: "np.ndarray[Any, np.dtype[np.bool_]]"
    """The wall clock had gone back, and both times are later than it was."""


class BatchOrigin(NamedTuple):
    """Origin of the bytes: topic, partition, and their place in a segment's file."""

    topic: str
    partition: int
    segment: int | None = None
    """Base offset; None over the wire."""
    position: int = 0
    """Of the first byte, in the segment's file."""
    arrivals: Arrivals | None = None

    def __str__(self) -> str:
        """For messages."""
        where = "" if self.segment is None else f", segment {self.segment}"
        return f"{self.topic}-{self.partition}{where}"


class Batches(NamedTuple):
    """The headers of the batches that records were decoded from."""

    rows: Numbers
    origin: BatchOrigin


def named(batches: Batches) -> str:
    """The first of the batches, for messages."""
    row, origin = batches.rows[0], batches.origin
    return (
        f"{origin}: the batch at offset {row[BASE_OFFSET]}, byte {origin.position + row[POSITION]}"
    )


def columns_of(
    schema: pa.Schema, located: Located, batches: Batches, taken: Mapping[str, pa.Array]
) -> pa.RecordBatch:
    """A record batch of `schema`; `taken` has the columns of bytes."""
    arrays = [
        taken[name] if name in taken else _COLUMNS[name](located, batches) for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def micros(times_ms: Numbers) -> Numbers:
    """Milliseconds as microseconds."""
    if len(times_ms) and not -FURTHEST_MS <= times_ms.min() <= times_ms.max() <= FURTHEST_MS:
        times_ms = np.clip(times_ms, -FURTHEST_MS, FURTHEST_MS)
    return times_ms * 1000


def _constant(value: str | int | None, name: str, count: int) -> pa.Array:
    return _repeated(value, name, 1 << count.bit_length()).slice(0, count)


@lru_cache(KEPT_CONSTANTS)
def _repeated(value: str | int | None, name: str, count: int) -> pa.Array:
    """Chunk after chunk has the same topic, partition and segment: made once."""
    return repeated(value, ALL_COLUMNS.field(name).type, count)


def _int64(numbers: Numbers) -> pa.Array:
    return array_of(numbers, pa.int64())


def _int32(numbers: Any) -> pa.Array:
    return array_of(numbers.astype(np.int32), pa.int32())


def _time(times_ms: Numbers, is_known: Mask | None = None) -> pa.Array:
    return array_of(micros(times_ms), TIMESTAMP, is_known)


def _of_batch(
    column: int, made: Callable[[Numbers], pa.Array]
) -> Callable[[Located, Batches], pa.Array]:
    def column_of(located: Located, batches: Batches) -> pa.Array:
        return made(batches.rows[located.batches, column])

    return column_of


def _is_stamped(located: Located, batches: Batches) -> Any:
    return batches.rows[located.batches, ATTRIBUTES] & LOG_APPEND_TIME != 0


def _timestamp_type(located: Located, batches: Batches) -> pa.Array:
    if len(located.batches) < len(located.offsets):  # all batches are alike
        is_stamped = int(batches.rows[0, ATTRIBUTES] & LOG_APPEND_TIME != 0)
        return _constant(is_stamped, "timestampType", len(located.offsets))
    return _int32(_is_stamped(located, batches))


def _sequence(located: Located, batches: Batches) -> pa.Array:
    first = batches.rows[located.batches, SEQUENCE]
    return _int32(np.where(first < 0, first, (first + located.deltas) % _SEQUENCES))


def _codec(located: Located, batches: Batches) -> pa.Array:
    codecs = batches.rows[located.batches, ATTRIBUTES] & CODEC_MASK
    return pa.array([codec.name.lower() for codec in Codec]).take(_int64(codecs))


def _position(located: Located, batches: Batches) -> pa.Array:
    if batches.origin.segment is None:
        return _constant(None, "position", len(located.offsets))
    return _int64(batches.rows[located.batches, POSITION] + batches.origin.position)


def _append_times(located: Located, batches: Batches) -> tuple[Numbers, Any, Any]:
    """Of each record: when it came (ms), whether that is known, and whether it is exact."""
    rows, arrivals = batches.rows, batches.origin.arrivals
    is_exact = rows[:, ATTRIBUTES] & LOG_APPEND_TIME != 0
    times, is_known = rows[:, MAX_TIME], is_exact
    if arrivals is not None and len(arrivals.positions):
        places = rows[:, POSITION] + batches.origin.position
        zone = np.searchsorted(arrivals.positions, places, "right") - 1
        times = np.where(is_exact, times, arrivals.last_ms[zone])
        is_known = is_exact | ((zone >= 0) & ~arrivals.is_estimated[zone])
    return times[located.batches], is_known[located.batches], is_exact[located.batches]


def _arrived_from(located: Located, batches: Batches) -> pa.Array:
    rows, arrivals = batches.rows, batches.origin.arrivals
    is_known = rows[:, ATTRIBUTES] & LOG_APPEND_TIME != 0
    times = rows[:, MAX_TIME]
    if arrivals is not None and len(arrivals.positions):
        places = rows[:, POSITION] + batches.origin.position
        zone = np.searchsorted(arrivals.positions, places, "right") - 1
        is_recorded = (zone >= 0) & ~arrivals.is_estimated[zone] & ~arrivals.is_lifted[zone]
        times = np.where(is_known, times, arrivals.first_ms[zone])
        is_known |= is_recorded
    return pa.array(times[located.batches], pa.int64(), mask=~is_known[located.batches])


def _append_time(located: Located, batches: Batches) -> pa.Array:
    times, is_known, _ = _append_times(located, batches)
    return _time(times, is_known)


def _append_time_bound(located: Located, batches: Batches) -> pa.Array:
    _, is_known, is_exact = _append_times(located, batches)
    return pa.array(np.where(is_exact, EXACT, np.where(is_known, BOUNDED, UNKNOWN)), pa.string())


_COLUMNS: dict[str, Callable[[Located, Batches], pa.Array]] = {
    "topic": lambda located, batches: _constant(
        batches.origin.topic, "topic", len(located.offsets)
    ),
    "partition": lambda located, batches: _constant(
        batches.origin.partition, "partition", len(located.offsets)
    ),
    "offset": lambda located, _: _int64(located.offsets),
    "timestamp": lambda located, _: _time(located.times),
    "timestampType": _timestamp_type,
    "timestampMs": lambda located, _: _int64(located.times),
    "createTimeMs": lambda located, _: _int64(located.claimed),
    "createTime": lambda located, _: _time(located.claimed),
    "appendTime": _append_time,
    ARRIVED_FROM.name: _arrived_from,
    "appendTimeBound": _append_time_bound,
    "producerId": _of_batch(PRODUCER, _int64),
    "producerEpoch": _of_batch(PRODUCER_EPOCH, _int32),
    "sequence": _sequence,
    "leaderEpoch": _of_batch(LEADER_EPOCH, _int32),
    "batchBaseOffset": _of_batch(BASE_OFFSET, _int64),
    "codec": _codec,
    "segment": lambda located, batches: _constant(
        batches.origin.segment, "segment", len(located.offsets)
    ),
    "position": _position,
}
