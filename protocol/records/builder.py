"""Makes v2 batches: for tools, tests, and for packing a batch again with another codec.

What it builds is what Kafka's own producer sends: base offset 0 unless given, leader epoch -1, base
time the first record's, consecutive offsets unless deltas are given. Rules: semantics.md 7.2.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from protocol.records.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER,
    HEADER_BYTES,
    LENGTH_ENDS,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    payload_of,
    read_header,
    seal,
)
from protocol.records.compression import DEFAULT_LIMIT_BYTES, Buffer, Codec, deflate, inflate
from protocol.records.numbers import zigzag_bytes
from protocol.records.record import Header

_NULL = zigzag_bytes(-1)

# A time in ms, key and value; then headers, when there are any.
NewRecord = (
    tuple[int, bytes | None, bytes | None]
    | tuple[int, bytes | None, bytes | None, Iterable[Header]]
)


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    log_append_time: int | None = None,
    level: int | None = None,
    offset_deltas: Sequence[int] | None = None,
) -> bytearray:
    """Build one batch with its CRC; `log_append_time` (ms) stamps it as a broker would.

    `offset_deltas`, one for each record, makes a batch as compaction or an odd client leaves it.
    """
    rows: list[tuple[Any, ...]] = list(records)
    deltas = range(len(rows)) if offset_deltas is None else offset_deltas
    times = [row[0] for row in rows]
    base_timestamp = times[0] if times else NO_TIMESTAMP
    body = b"".join(
        _record_bytes(row[0] - base_timestamp, delta, *row[1:])
        for delta, row in zip(deltas, rows, strict=True)
    )
    payload = deflate(codec, body, level)
    attributes = codec | (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
    max_timestamp = max(times, default=NO_TIMESTAMP)
    if log_append_time is not None:
        attributes |= LOG_APPEND_TIME
        max_timestamp = log_append_time
    batch = bytearray(HEADER_BYTES) + payload
    HEADER.pack_into(
        batch, 0, base_offset, len(batch) - LENGTH_ENDS, leader_epoch, 2, 0, attributes,
        max(deltas, default=0), base_timestamp, max_timestamp, producer_id, producer_epoch,
        base_sequence, len(rows),
    )  # fmt: skip
    seal(batch, 0, len(batch))
    return batch


def recompress(
    batch: memoryview,
    codec: Codec,
    *,
    level: int | None = None,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> bytearray:
    """Pack the records of a batch with another codec; all else in the header stays.

    InflateLimit, CorruptCompression or UnknownCodec when the batch does not unpack.
    """
    header = read_header(batch)
    body = inflate(header.codec, payload_of(batch, 0, header), limit_bytes=limit_bytes)
    payload = deflate(codec, body, level)
    packed = bytearray(HEADER_BYTES) + payload
    changed = header._replace(
        length=len(packed) - LENGTH_ENDS, attributes=header.attributes & ~CODEC_MASK | codec
    )
    HEADER.pack_into(packed, 0, *changed)
    seal(packed, 0, len(packed))
    return packed


def _record_bytes(
    timestamp_delta: int,
    offset_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Iterable[Header] = (),
) -> bytes:
    rows = list(headers) if headers else ()
    body = b"".join((
        b"\0", zigzag_bytes(timestamp_delta), zigzag_bytes(offset_delta),
        _NULL if key is None else zigzag_bytes(len(key)), key or b"",
        _NULL if value is None else zigzag_bytes(len(value)), value or b"",
        zigzag_bytes(len(rows)), *(_header(*row) for row in rows),
    ))  # fmt: skip
    return zigzag_bytes(len(body)) + body


def _header(name: str, content: Buffer | None) -> bytes:
    key = name.encode("utf-8", "surrogateescape")
    size = _NULL if content is None else zigzag_bytes(len(content))
    return b"".join((zigzag_bytes(len(key)), key, size, content or b""))
