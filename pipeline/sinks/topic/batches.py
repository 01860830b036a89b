"""Columns of one partition's records as v2 batches, ready but for producer and sequence.

Arrow's buffers are handed to the encoder as they are; nothing is made for a single record. It gets
them as views of memory, whose numbers are Python's: numpy's have 8 bits where it is not compiled.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.sinks.topic.columns import Outgoing
from protocol.records.batch import HEADER, HEADER_BYTES, LENGTH_ENDS, seal
from protocol.records.columns import Fields, HeaderRoom
from protocol.records.compression import Codec, deflate
from protocol.records.encode import Columns, encode_records, hash_keys, room_for

MOST_RECORDS = 20_000
_ANY_BYTES = 1 << 62
_NO_HEADERS = 40
"""Bytes that a record takes besides key and value, at most, without headers."""


class Batch(NamedTuple):
    """Records of one partition, encoded; the header's times and counts are known."""

    payload: bytes
    attributes: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    records: Outgoing

    def halves(self) -> Iterator["Batch"]:
        """The same records in their order, in two batches: for a broker that takes less."""
        middle = self.record_count // 2
        for part in (self.records.cut(0, middle), self.records.cut(middle, self.record_count)):
            yield from batches_of(part, Codec(self.attributes), _ANY_BYTES)

    def sealed(self, producer_id: int, producer_epoch: int, sequence: int) -> bytearray:
        """The whole batch as the broker wants it."""
        data = bytearray(HEADER_BYTES) + self.payload
        HEADER.pack_into(
            data, 0, 0, len(data) - LENGTH_ENDS, -1, 2, 0, self.attributes,
            self.record_count - 1, self.base_timestamp, self.max_timestamp, producer_id,
            producer_epoch, sequence, self.record_count,
        )  # fmt: skip
        seal(data, 0, len(data))
        return data


def batches_of(records: Outgoing, codec: Codec, most_bytes: int) -> Iterator[Batch]:
    """The records, all of one partition, in batches of at most so many bytes before packing.

    A record that is larger goes alone; whether it may is the broker's to say.
    """
    columns = _columns(records)
    times = np.asarray(columns.times)
    for first, last in _cuts(columns, most_bytes):
        room = bytearray(room_for(columns, first, last))
        size = encode_records(columns, first, last, room)
        with memoryview(room) as whole:
            payload = deflate(codec, whole[:size])
        largest = int(times[first:last].max())
        yield Batch(
            payload, int(codec), last - first, int(times[first]), largest, records.cut(first, last)
        )


def key_hashes(keys: pa.Array) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """By which Kafka's producers choose a partition; -1 for a null key."""
    hashes = np.empty(len(keys), np.int64)
    hash_keys(_fields(keys), hashes)
    return hashes


def _columns(records: Outgoing) -> Columns:
    headers = records.headers
    room = None
    if headers is not None:
        pairs = headers.values
        ends = np.frombuffer(headers.buffers()[1], np.int32)[
            headers.offset : headers.offset + len(headers) + 1
        ]
        lists = _viewed(ends, np.ones(len(headers), np.uint8), np.empty(0, np.uint8))
        names = pairs.field("key").cast(pa.binary())
        room = HeaderRoom(lists, _fields(names), _fields(pairs.field("value")))
    times = records.times_ms.to_numpy(zero_copy_only=False)
    return Columns(memoryview(times), _fields(records.key), _fields(records.value), room)


def _fields(column: pa.Array) -> Fields:
    count = len(column)
    _, ends, data = column.buffers()
    if ends is None:
        return _viewed(np.zeros(count + 1, np.int32), _there(column), np.empty(0, np.uint8))
    octets = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    numbers = np.frombuffer(ends, np.int32)[column.offset : column.offset + count + 1]
    return _viewed(numbers, _there(column), octets)


def _viewed(*columns: "np.ndarray[Any, Any]") -> Fields:
    return Fields(*(each.data for each in columns))


def _there(column: pa.Array) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    if not column.null_count:
        return np.ones(len(column), np.uint8)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.uint8)


def _cuts(columns: Columns, most_bytes: int) -> Iterator[tuple[int, int]]:
    """From where to where each batch goes."""
    count = len(columns.times)
    sizes = np.full(count, _NO_HEADERS, np.int64)
    for fields in (columns.keys, columns.values):
        sizes += np.diff(fields.ends)
    if columns.headers is not None:
        lists, names, values = columns.headers
        ends = np.asarray(lists.ends)
        for fields in (names, values):
            sizes += np.diff(np.asarray(fields.ends)[ends])
        sizes += 10 * np.diff(ends)
    total = np.cumsum(sizes)
    first = 0
    while first < count:
        begin = int(total[first - 1]) if first else 0
        last = int(np.searchsorted(total, begin + most_bytes, "right"))
        last = min(max(last, first + 1), first + MOST_RECORDS, count)
        yield first, last
        first = last
