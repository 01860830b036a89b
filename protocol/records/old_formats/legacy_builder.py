"""Writes messages and sets of formats 0 and 1: for old clients that fetch, and for tests.

Inner offsets of a wrapper are absolute in format 0 and relative to its first message in format 1;
the wrapper has the last one's (semantics.md 7.1). Broker time is stated by the wrapper and, as
Kafka does, by every message in it.
"""

import zlib
from collections.abc import Iterable
from struct import Struct

from protocol.records.batch import LOG_APPEND_TIME, NO_TIMESTAMP
from protocol.records.compression import Buffer, Codec, deflate
from protocol.records.old_formats.legacy import CRC_STARTS, OFFSET_AND_SIZE_BYTES
from protocol.records.old_formats.lz4_header import with_wrong_checksum

_V0 = Struct(">qiIbb")
_V1 = Struct(">qiIbbq")
_SIZE = Struct(">i")
_CRC = Struct(">I")
_NULL = _SIZE.pack(-1)

# Offset, time in ms, key, value.
Row = tuple[int, int, Buffer | None, Buffer | None]


def build_set(
    rows: Iterable[Row],
    magic: int,
    *,
    codec: Codec = Codec.NONE,
    log_append_time: int | None = None,
    level: int | None = None,
) -> bytes:
    """Messages of format `magic` with the offsets given; in a wrapper when there is a codec."""
    listed = list(rows)
    stamp = LOG_APPEND_TIME if log_append_time is not None and magic else 0
    base = listed[0][0] if listed and codec and magic else 0
    body = b"".join(
        build_message(
            offset - base,
            magic,
            timestamp if log_append_time is None else log_append_time,
            key,
            value,
            attributes=stamp,
        )
        for offset, timestamp, key, value in listed
    )
    if codec is Codec.NONE:
        return body
    latest = max((row[1] for row in listed), default=NO_TIMESTAMP)
    return wrap(
        body,
        magic,
        codec,
        last_offset=listed[-1][0],
        timestamp=latest if log_append_time is None else log_append_time,
        attributes=stamp,
        level=level,
    )


def wrap(
    inner: Buffer,
    magic: int,
    codec: Codec,
    *,
    last_offset: int,
    timestamp: int,
    attributes: int = 0,
    level: int | None = None,
) -> bytes:
    """The one message that holds the set `inner`."""
    packed = deflate(codec, inner, level)
    if codec is Codec.LZ4 and magic == 0:
        packed = with_wrong_checksum(packed)
    return build_message(last_offset, magic, timestamp, None, packed, attributes=attributes | codec)


def build_message(
    offset: int,
    magic: int,
    timestamp: int,
    key: Buffer | None,
    value: Buffer | None,
    *,
    attributes: int = 0,
) -> bytes:
    """One message with its CRC; `timestamp` is left out in format 0."""
    parts: list[Buffer] = [
        _NULL if key is None else _SIZE.pack(len(key)) + key,
        _NULL if value is None else _SIZE.pack(len(value)),
        b"" if value is None else value,
    ]
    size = sum(map(len, parts))
    head = bytearray((_V1 if magic else _V0).size)
    length = len(head) - OFFSET_AND_SIZE_BYTES + size
    if magic:
        _V1.pack_into(head, 0, offset, length, 0, 1, attributes, timestamp)
    else:
        _V0.pack_into(head, 0, offset, length, 0, 0, attributes)
    crc = zlib.crc32(memoryview(head)[CRC_STARTS:])
    for part in parts:
        crc = zlib.crc32(part, crc)
    _CRC.pack_into(head, 12, crc)
    return b"".join((head, *parts))
