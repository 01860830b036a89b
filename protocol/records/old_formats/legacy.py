"""LegacyMessage formats 0 and 1: what old clients send, read one message at a time.

A set is messages one behind another, or one compressed message, the wrapper, whose value is such a
set. Owns the layout, the CRC-32, the rules of wrappers and the bound on what they unpack to; makes
no list of messages, since a set can hold millions. Rules: semantics.md 7.1, 7.3, 7.6.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from protocol.records.batch import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    CorruptBatch,
    InvalidRecords,
)
from protocol.records.compression import (
    DEFAULT_LIMIT_BYTES,
    Buffer,
    Codec,
    UnknownCodec,
    codec_of,
    inflate,
)
from protocol.records.old_formats.lz4_header import with_right_checksum

OFFSET_AND_SIZE_BYTES = 12
CRC_STARTS = 16
MAGIC_POSITION = 16
OVERHEAD_BYTES = (14, 22)  # by format: what a message takes after offset and size
KEY_POSITION = (18, 26)
OUTER, INNER = "the set", "a compressed set"  # what errors call them

HEAD = Struct(">qiIbb")  # offset, size, CRC, magic, attributes
_TIMESTAMP = Struct(">q")
_SIZE = Struct(">i")
_make = tuple.__new__


class LegacyMessage(NamedTuple):
    """One message as stored; key and value are views of the set."""

    offset: int
    attributes: int
    timestamp: int  # ms; -1 when it has none, as in format 0
    key: memoryview | None
    value: memoryview | None


class SetFacts(NamedTuple):
    """Facts of a set from its first message."""

    magic: int
    codec: Codec


def read_facts(data: memoryview) -> SetFacts:
    """Format and codec of a set, from its first bytes.

    CorruptBatch when it is too short to say or of another format; UnknownCodec for bits that name
    none, or zstd, which is younger than these formats.
    """
    if len(data) < OFFSET_AND_SIZE_BYTES + OVERHEAD_BYTES[0]:
        raise CorruptBatch("fewer bytes than a message has", 0)
    magic, attributes = data[MAGIC_POSITION], data[MAGIC_POSITION + 1]
    if magic > 1:
        raise CorruptBatch(f"record format {magic} is neither 0 nor 1", 0)
    codec = codec_of(attributes & CODEC_MASK)
    if codec is Codec.ZSTD:
        raise UnknownCodec(f"record format {magic} has no codec {codec.name.lower()}")
    return SetFacts(magic, codec)


def read_messages(
    data: memoryview, *, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Iterator[LegacyMessage]:
    """Each message of a set with its final offset and time; wrappers are unpacked.

    For tools and tests; the broker's own paths make no message (`convert`). Errors come with the
    message that has the fault: CorruptBatch (2 on the wire) for sizes, formats and CRCs;
    InvalidRecords (87) for what a sound message may not say; UnknownCodec (76);
    CorruptCompression, or InflateLimit past `limit_bytes`. A set with a wrapper holds nothing else.
    """
    magic, codec = read_facts(data)
    if codec is Codec.NONE:
        yield from plain_messages(data, magic)
        return
    wrapper, inner = unwrap(data, magic, codec, limit_bytes)
    yield from _unpacked(wrapper, inner, magic)


def unwrap(
    data: memoryview, magic: int, codec: Codec, limit_bytes: int
) -> tuple[LegacyMessage, Buffer]:
    """The one wrapper that a compressed set is, and the set in it; errors as `read_messages`."""
    outer = list(_at_most_two(plain_messages(data, magic, wrappers=True)))
    if len(outer) > 1:
        raise InvalidRecords("a compressed set holds more than its one wrapper")
    (wrapper,) = outer
    if wrapper.value is None:
        raise InvalidRecords("a compressed message without a value")
    packed: Buffer = wrapper.value
    if codec is Codec.LZ4 and magic == 0:
        packed = with_right_checksum(wrapper.value)
    inner = inflate(codec, packed, limit_bytes=limit_bytes)
    if not inner:
        raise InvalidRecords("a compressed message without messages in it")
    return wrapper, inner


def plain_messages(
    data: Buffer, magic: int, *, wrappers: bool = False, where: str = OUTER
) -> Iterator[LegacyMessage]:
    """Each message of a set as stored, with the errors named above.

    Only `wrappers` lets a compressed one pass.
    """
    view = memoryview(data)
    position, limit = 0, len(view)
    while position < limit:
        if limit - position < OFFSET_AND_SIZE_BYTES + OVERHEAD_BYTES[0]:
            raise CorruptBatch(f"{where} ends within a message", position)
        offset, size, crc, own_magic, attributes = HEAD.unpack_from(view, position)
        end = position + OFFSET_AND_SIZE_BYTES + size
        if own_magic != magic:
            raise _other_format(own_magic, magic, position)
        if size < OVERHEAD_BYTES[magic] or end > limit:
            raise CorruptBatch(f"a message of {size} bytes does not fit {where}", position)
        if zlib.crc32(view[position + CRC_STARTS : end]) != crc:
            raise CorruptBatch(f"a message does not have the CRC {crc:08x}", position)
        if attributes & CODEC_MASK and not wrappers:
            raise InvalidRecords(f"a compressed message in {where}", position)
        timestamp = _TIMESTAMP.unpack_from(view, position + 18)[0] if magic else NO_TIMESTAMP
        key, value = _key_and_value(view, position + KEY_POSITION[magic], end)
        yield _make(LegacyMessage, (offset, attributes, timestamp, key, value))
        position = end


def claims_log_append_time(magic: int, attributes: int) -> bool:
    """True when a message says that a broker stamped it; format 0 has no such bit."""
    return magic == 1 and bool(attributes & LOG_APPEND_TIME)


def base_offset(wrapper_offset: int, last: int) -> int:
    """Base of a format 1 wrapper's relative offsets, `last` being the last of them.

    0 for a wrapper at 0, an old habit of librdkafka. InvalidRecords for one below `last`.
    """
    if wrapper_offset == 0:
        return 0
    if wrapper_offset < last:
        raise InvalidRecords(f"a wrapper at {wrapper_offset} holds a message at {last}")
    return wrapper_offset - last


def _unpacked(wrapper: LegacyMessage, inner: Buffer, magic: int) -> Iterator[LegacyMessage]:
    """The inner messages; a stamped wrapper's time is theirs (semantics.md 6.5)."""
    base = base_offset(wrapper.offset, _last_offset(memoryview(inner))) if magic else 0
    stamped = claims_log_append_time(magic, wrapper.attributes)
    for message in plain_messages(inner, magic, where=INNER):
        offset, attributes, timestamp, key, value = message
        if stamped:
            attributes |= LOG_APPEND_TIME
            timestamp = wrapper.timestamp
        elif magic:
            attributes &= ~LOG_APPEND_TIME
        yield _make(LegacyMessage, (base + offset, attributes, timestamp, key, value))


def _last_offset(inner: memoryview) -> int:
    """The offset of the last message; where sizes are damaged, the walk that follows says so."""
    position = last = 0
    while 0 <= position <= len(inner) - OFFSET_AND_SIZE_BYTES:
        last = _TIMESTAMP.unpack_from(inner, position)[0]
        size = _SIZE.unpack_from(inner, position + 8)[0]
        if size < OVERHEAD_BYTES[1]:
            break
        position += OFFSET_AND_SIZE_BYTES + size
    return last


def _key_and_value(
    view: memoryview, position: int, end: int
) -> tuple[memoryview | None, memoryview | None]:
    size = _SIZE.unpack_from(view, position)[0]
    position += 4
    key = None
    if size >= 0:
        key = view[position : position + size]
        position += size
    if size < -1 or position + 4 > end:
        raise InvalidRecords(f"a key of {size} bytes runs past its message", position)
    size = _SIZE.unpack_from(view, position)[0]
    position += 4
    if size == -1 and position == end:
        return key, None
    if size < 0 or position + size != end:
        raise InvalidRecords(f"a value of {size} bytes does not end its message", position)
    return key, view[position:end]


def _other_format(magic: int, expected: int, position: int) -> CorruptBatch | InvalidRecords:
    if magic in {0, 1, 2}:
        return InvalidRecords(f"formats {expected} and {magic} in one set", position)
    return CorruptBatch(f"record format {magic} is none", position)


def _at_most_two(messages: Iterator[LegacyMessage]) -> Iterator[LegacyMessage]:
    """Enough to see that there is more than one."""
    for count, message in enumerate(messages, 1):
        yield message
        if count == 2:
            return
