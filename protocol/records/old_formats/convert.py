"""Between the formats of old clients and the one the log has: up on receipt, down on fetch.

Up: a set of format 0 or 1 becomes one batch, packed with the set's codec, ready for the checks of
every batch. No time is invented: records without one keep -1. Down: a batch becomes messages of
format 0 or 1, which lose headers and producer fields; markers of transactions are left out. Nothing
makes a list of records; memory holds the packed and the unpacked bytes, and the records themselves
are walked by `convert_up` and `convert_down`. Rules: semantics.md 7.4, 7.5.
"""

from typing import NamedTuple

from protocol.records.batch import (
    HEADER,
    HEADER_BYTES,
    LENGTH_ENDS,
    LOG_APPEND_TIME,
    MAX_INT64,
    MIN_INT64,
    BatchHeader,
    CorruptBatch,
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
from protocol.records.old_formats.convert_down import messages_of
from protocol.records.old_formats.convert_up import records_of
from protocol.records.old_formats.legacy import (
    INNER,
    OUTER,
    base_offset,
    claims_log_append_time,
    read_facts,
    unwrap,
)
from protocol.records.old_formats.legacy_builder import wrap
from protocol.records.walk import check_records

SURE_BYTES = 80 * 1024 * 1024
"""Messages that a packed batch may become whatever the limit: 16 MiB of the smallest records."""


class Converted(NamedTuple):
    """Result of converting a batch for an old client."""

    messages: bytearray
    is_whole: bool
    """False when messages were left out for want of room."""
    unpacked_bytes: int = 0
    """Of the records that were gone through."""


def up_convert(
    data: memoryview, *, limit_bytes: int = DEFAULT_LIMIT_BYTES, keep_offsets: bool = False
) -> bytearray:
    """Make one batch of a set: offsets from 0, times as sent, the set's codec.

    With `keep_offsets` the offsets stay what they are, which is for sets that lie in a log. The
    batch claims LogAppendTime if a message did. Errors as `legacy.read_messages` has them;
    InflateLimit also when the batch's records come to more than `limit_bytes`; InvalidRecords for
    offsets or times too far apart for one batch.
    """
    magic, codec = read_facts(data)
    if codec is Codec.NONE:
        made = records_of(data, magic, keep_offsets, False, 0, OUTER)
        first, claims_stamp = made.first_offset, made.claims_stamp
    else:
        wrapper, inner = unwrap(data, magic, codec, limit_bytes)
        claims_stamp = claims_log_append_time(magic, wrapper.attributes)
        made = records_of(inner, magic, keep_offsets, claims_stamp, wrapper.timestamp, INNER)
        base = base_offset(wrapper.offset, made.last_offset) if magic else 0
        first = base + made.first_offset
    if len(made.records) > limit_bytes:
        raise InflateLimit(codec, limit_bytes)
    batch = bytearray(HEADER_BYTES) + deflate(codec, made.records)
    HEADER.pack_into(
        batch, 0, first if keep_offsets else 0, len(batch) - LENGTH_ENDS, -1, 2, 0,
        codec | (LOG_APPEND_TIME if claims_stamp else 0),
        made.last_offset - made.first_offset if keep_offsets else made.count - 1,
        made.base_timestamp, made.max_timestamp, -1, -1, -1, made.count,
    )  # fmt: skip
    seal(batch, 0, len(batch))
    return batch


def down_convert(
    batch: memoryview,
    header: BatchHeader,
    magic: int,
    *,
    from_offset: int,
    room: int,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> Converted:
    """Make messages of format `magic` (0 or 1) of one batch, whose CRC is not looked at. Raises
    CorruptBatch and InflateLimit.

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
    fields = (
        payload, header.record_count, header.base_offset, header.base_timestamp,
        header.is_log_append_time, header.max_timestamp, magic,
    )  # fmt: skip
    if codec is Codec.NONE:
        made = messages_of(*fields, from_offset, False, max(room, 0))
        return Converted(_owned(made.messages), made.is_whole, len(payload))
    made = messages_of(*fields, MIN_INT64, magic == 1, max(limit_bytes, SURE_BYTES))
    if not made.count:
        return Converted(bytearray(), is_whole=True, unpacked_bytes=len(payload))
    if not made.is_whole:
        raise InflateLimit(codec, limit_bytes)
    wrapper = wrap(
        made.messages,
        magic,
        codec,
        last_offset=made.last_offset,
        timestamp=made.max_timestamp,
        attributes=LOG_APPEND_TIME if header.is_log_append_time and magic else 0,
    )
    return Converted(bytearray(wrapper), is_whole=True, unpacked_bytes=len(payload))


def _owned(messages: bytearray | memoryview) -> bytearray:
    return messages if isinstance(messages, bytearray) else bytearray(messages)
