"""One record as a value, for tools and tests; the broker's own paths never make one.

Reading unpacks under the bound of `compression` and lets the walk check every byte first, so the
loop here meets sound records only. Rules: semantics.md 6.5 (whose time counts) and 7.2.
"""

from collections.abc import Iterator
from typing import NamedTuple

from protocol.records.batch import (
    MAX_INT64,
    MIN_INT64,
    BatchHeader,
    CorruptBatch,
    payload_of,
    read_header,
)
from protocol.records.compression import DEFAULT_LIMIT_BYTES, inflate
from protocol.records.numbers import walked_zigzag
from protocol.records.walk import check_records

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    """A record of the log: its offset, its time in ms (-1: none), and what the client gave it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def read_records(batch: memoryview, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> list[Record]:
    """All records of the one batch that `batch` begins with, as `iter_records` gives them."""
    return list(iter_records(batch, limit_bytes=limit_bytes))


def iter_records(batch: memoryview, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Iterator[Record]:
    """Read the records of the one batch that `batch` begins with; its CRC is not looked at.

    DecodeError of the kind that fits, before the first record: CorruptBatch, InvalidRecords,
    UnknownCodec, CorruptCompression, or InflateLimit past `limit_bytes` of unpacked records. Header
    keys that are not UTF-8 keep their odd bytes as surrogates.
    """
    header = read_header(batch)
    payload = inflate(header.codec, payload_of(batch, 0, header), limit_bytes=limit_bytes)
    count = header.record_count
    check_records(payload, count, header.base_timestamp, MIN_INT64, MAX_INT64)
    if header.base_offset > MAX_INT64 - 0x7FFF_FFFF:
        raise CorruptBatch("the base offset leaves no room for the records")
    return _records(memoryview(payload), header)


def _records(data: memoryview, header: BatchHeader) -> Iterator[Record]:
    stamped = header.max_timestamp if header.is_log_append_time else None
    position = 0
    for _ in range(header.record_count):
        _, position = walked_zigzag(data, position)
        delta, position = walked_zigzag(data, position + 1)
        offset_delta, position = walked_zigzag(data, position)
        key, position = _field(data, position)
        value, position = _field(data, position)
        headers, position = _headers(data, position)
        timestamp = header.base_timestamp + delta if stamped is None else stamped
        yield Record(header.base_offset + offset_delta, timestamp, key, value, headers)


def _field(data: memoryview, position: int) -> tuple[bytes | None, int]:
    size, position = walked_zigzag(data, position)
    if size < 0:
        return None, position
    return bytes(data[position : position + size]), position + size


def _headers(data: memoryview, position: int) -> tuple[tuple[Header, ...], int]:
    count, position = walked_zigzag(data, position)
    headers = []
    for _ in range(count):
        key, position = _field(data, position)
        value, position = _field(data, position)
        headers.append(((key or b"").decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position
