"""Between the formats of old clients and the one the log has: up on receipt, down on fetch.

Up: a set of format 0 or 1 becomes one batch, packed with the set's codec, ready for the checks that
every batch meets. No time is invented: what has none keeps -1. Down: a batch becomes messages of
format 0 or 1, which lose headers and producer fields; markers of transactions are left out.
Nothing makes a list of records; what is held is the packed and the unpacked bytes. Rules:
semantics.md 7.4, 7.5.
"""

from collections.abc import Iterator
from typing import NamedTuple

from protocol.records.batch import (
    HEADER,
    HEADER_BYTES,
    LENGTH_ENDS,
    LOG_APPEND_TIME,
    MAX_INT64,
    MIN_INT64,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    InvalidRecords,
    payload_of,
    seal,
)
from protocol.records.compression import (
    DEFAULT_LIMIT_BYTES,
    Codec,
    InflateLimit,
    UnknownCodec,
    deflate,
    inflate,
)
from protocol.records.legacy import Message, read_facts, read_messages
from protocol.records.legacy_builder import build_message, wrap
from protocol.records.varint import read_zigzag, zigzag_bytes
from protocol.records.walk import check_records

_NULL = zigzag_bytes(-1)
_NO_HEADERS = zigzag_bytes(0)


class Converted(NamedTuple):
    """What a batch became for an old client."""

    messages: bytearray
    is_whole: bool
    """False when messages were left out for want of room."""


def up_convert(data: memoryview, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytearray:
    """Make one batch of a set: offsets from 0, times as sent, the set's codec.

    The batch claims LogAppendTime if a message did. Errors as `legacy.read_messages` has them;
    InflateLimit also when the batch's records come to more than `limit_bytes`.
    """
    magic, codec = read_facts(data)
    body = _Body(LOG_APPEND_TIME if magic else 0)
    for message in read_messages(data, limit_bytes=limit_bytes):
        body.add(message)
        if len(body.records) > limit_bytes:
            raise InflateLimit(codec, limit_bytes)
    return _batch(body, codec)


def down_convert(
    batch: memoryview,
    header: BatchHeader,
    magic: int,
    *,
    from_offset: int,
    room: int,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> Converted:
    """Make messages of format `magic` (0 or 1) of one batch, whose CRC is not looked at.

    An uncompressed batch gives those from `from_offset` on, whole ones while there is `room`
    (bytes), and the first whatever its size; a compressed one gives a wrapper with all of them.
    Control batches and emptied ones give nothing. UnknownCodec for zstd, which these formats lack;
    else as `record.read_records`.
    """
    if header.is_control:
        return Converted(bytearray(), is_whole=True)
    codec = header.codec
    if codec is Codec.ZSTD:
        raise UnknownCodec(f"record format {magic} has no codec zstd")
    payload = inflate(codec, payload_of(batch, 0, header), limit_bytes=limit_bytes)
    check_records(payload, header.record_count, header.base_timestamp, MIN_INT64, MAX_INT64)
    if not 0 <= header.base_offset <= MAX_INT64 - 0x7FFF_FFFF:
        raise CorruptBatch("the base offset leaves no room for the records")
    rows = _rows(memoryview(payload), header)
    stamp = LOG_APPEND_TIME if header.is_log_append_time and magic else 0
    if codec is Codec.NONE:
        return _plain(rows, magic, stamp, from_offset, room)
    return _wrapped(rows, magic, stamp, codec)


class _Body:
    """The records of a batch that is being made."""

    __slots__ = ("base", "claims_stamp", "count", "latest", "records", "stamp_bit")

    def __init__(self, stamp_bit: int) -> None:
        self.stamp_bit = stamp_bit
        self.records = bytearray()
        self.count = 0
        self.base = NO_TIMESTAMP
        self.latest = NO_TIMESTAMP
        self.claims_stamp = False

    def add(self, message: Message) -> None:
        _, attributes, timestamp, key, value = message
        if not self.count:
            self.base = timestamp
        self.latest = max(self.latest, timestamp)
        delta = timestamp - self.base
        if not MIN_INT64 <= delta <= MAX_INT64:
            raise InvalidRecords("the times in the set are more than 2^63 ms apart")
        if attributes & self.stamp_bit:
            self.claims_stamp = True
        record = b"".join(
            (
                b"\0",
                zigzag_bytes(delta),
                zigzag_bytes(self.count),
                _NULL if key is None else zigzag_bytes(len(key)),
                key or b"",
                _NULL if value is None else zigzag_bytes(len(value)),
                value or b"",
                _NO_HEADERS,
            )
        )
        self.records += zigzag_bytes(len(record))
        self.records += record
        self.count += 1


def _batch(body: _Body, codec: Codec) -> bytearray:
    batch = bytearray(HEADER_BYTES) + deflate(codec, body.records)
    attributes = codec | (LOG_APPEND_TIME if body.claims_stamp else 0)
    HEADER.pack_into(
        batch, 0, 0, len(batch) - LENGTH_ENDS, -1, 2, 0, attributes, body.count - 1,
        body.base, body.latest, -1, -1, -1, body.count,
    )  # fmt: skip
    seal(batch, 0, len(batch))
    return batch


_Row = tuple[int, int, memoryview | None, memoryview | None]


def _rows(data: memoryview, header: BatchHeader) -> Iterator[_Row]:
    """Offset, time, key, value of each record; its headers are stepped over."""
    stamped = header.max_timestamp if header.is_log_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    position = 0
    for _ in range(header.record_count):
        size, position = read_zigzag(data, position)
        end = position + size
        delta, position = read_zigzag(data, position + 1)
        offset_delta, position = read_zigzag(data, position)
        key = value = None
        size, position = read_zigzag(data, position)
        if size >= 0:
            key = data[position : position + size]
            position += size
        size, position = read_zigzag(data, position)
        if size >= 0:
            value = data[position : position + size]
        timestamp = base_timestamp + delta if stamped is None else stamped
        yield base_offset + offset_delta, timestamp, key, value
        position = end


def _plain(rows: Iterator[_Row], magic: int, stamp: int, from_offset: int, room: int) -> Converted:
    messages = bytearray()
    for offset, timestamp, key, value in rows:
        if offset < from_offset:
            continue
        message = build_message(offset, magic, timestamp, key, value, attributes=stamp)
        if messages and len(messages) + len(message) > room:
            return Converted(messages, is_whole=False)
        messages += message
    return Converted(messages, is_whole=True)


def _wrapped(rows: Iterator[_Row], magic: int, stamp: int, codec: Codec) -> Converted:
    inner = bytearray()
    base = last = None
    latest = NO_TIMESTAMP
    for offset, timestamp, key, value in rows:
        if base is None:
            base = offset if magic else 0
        inner += build_message(offset - base, magic, timestamp, key, value, attributes=stamp)
        last = offset
        latest = max(latest, timestamp)
    if last is None:
        return Converted(inner, is_whole=True)
    wrapper = wrap(inner, magic, codec, last_offset=last, timestamp=latest, attributes=stamp)
    return Converted(bytearray(wrapper), is_whole=True)
