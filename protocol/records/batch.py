"""The header of a v2 record batch: reading it, checking its CRC, and patching it in place.

Owns the 61 bytes before the records (semantics.md 7.2). The base offset and the leader epoch are
outside of the CRC, so giving a batch its place in the log changes no checksum; the timestamp type
and the maximum timestamp are inside of it, so changing them needs a new one. Nothing here looks at
the records themselves (`walk`), unpacks them (`compression`) or knows of files and topics.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from protocol.checksum import crc32c
from protocol.errors import DecodeError
from protocol.records.compression import Codec, codec_of

HEADER_BYTES = 61
LENGTH_ENDS = 12  # the length field counts what follows it
CRC_STARTS = 21  # the CRC covers everything from the attributes on
NO_TIMESTAMP = -1
MAX_INT64 = (1 << 63) - 1
MIN_INT64 = -(1 << 63)

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

HEADER = Struct(">qiibIhiqqqhii")
_OFFSET = Struct(">q")
_EPOCH = Struct(">i")
_CRC = Struct(">I")
_CRC_AT = CRC_STARTS - _CRC.size
_ATTRIBUTES = Struct(">h")
_SEQUENCES = 1 << 31
_make = tuple.__new__


class CorruptBatch(DecodeError):  # noqa: N818 - the state it found
    """A batch whose size, format or CRC is wrong: CORRUPT_MESSAGE (2) on the wire."""


class InvalidRecords(DecodeError):  # noqa: N818 - the state it found
    """A sound batch around unsound records: INVALID_RECORD (87) on the wire."""


class BatchHeader(NamedTuple):
    """The header's fields in the order of the bytes; times in ms, `length` in bytes after it."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch, offset and length fields included."""
        return self.length + LENGTH_ENDS

    @property
    def last_offset(self) -> int:
        """Offset of the last record that was appended; compaction may have removed it since."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> Codec:
        """Codec of the records; UnknownCodec when the bits name none of Kafka's."""
        return codec_of(self.attributes & CODEC_MASK)

    @property
    def is_log_append_time(self) -> bool:
        """True when every record's time is `max_timestamp`, which the broker stamped."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """True when the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """True when the records are the broker's markers instead of a client's data."""
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """True when `base_timestamp` is the time from which the cleaner may drop tombstones."""
        return bool(self.attributes & DELETE_HORIZON)

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, which wraps after 2^31 - 1; -1 without sequences."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCES


def read_header(data: memoryview | bytes | bytearray, position: int = 0) -> BatchHeader:
    """Read the header at `position`; the records need not be there.

    CorruptBatch when fewer than 61 bytes are left, when the length cannot hold a header, or when
    the magic is not 2.
    """
    if position < 0 or len(data) - position < HEADER_BYTES:
        raise CorruptBatch("fewer bytes than a batch header has", position)
    header: BatchHeader = _make(BatchHeader, HEADER.unpack_from(data, position))
    if header.magic != 2:
        raise CorruptBatch(f"record format {header.magic} is not 2", position)
    if header.length < HEADER_BYTES - LENGTH_ENDS:
        raise CorruptBatch(f"a batch length of {header.length} cannot hold a header", position)
    return header


def crc_matches(data: memoryview, position: int, header: BatchHeader) -> bool:
    """True when the bytes of the batch have the CRC-32C that the header states."""
    end = position + header.length + LENGTH_ENDS
    if end > len(data):
        return False
    matches: bool = crc32c(data[position + CRC_STARTS : end]) == header.crc
    return matches


def stated_crc(data: memoryview | bytes, position: int = 0) -> int:
    """The CRC-32C that the header of a batch states."""
    crc: int = _CRC.unpack_from(data, position + _CRC_AT)[0]
    return crc


def payload_of(data: memoryview, position: int, header: BatchHeader) -> memoryview:
    """The records of the batch as stored, packed or not; CorruptBatch when cut off."""
    end = position + header.length + LENGTH_ENDS
    if end > len(data):
        raise CorruptBatch(f"the batch ends {end - len(data)} bytes after the data", position)
    return data[position + HEADER_BYTES : end]


def patch_offset_and_epoch(
    data: memoryview | bytearray, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Give the batch its place in the log; no CRC changes."""
    _OFFSET.pack_into(data, position, base_offset)
    _EPOCH.pack_into(data, position + 12, leader_epoch)


def stamp_log_append_time(
    data: memoryview | bytearray, position: int, size_bytes: int, now_ms: int
) -> None:
    """Make `now_ms` the time of every record (semantics.md 6.5).

    Base time and deltas stay, so the claimed times remain in the bytes.
    """
    _restamp(data, position, size_bytes, now_ms, _attributes_at(data, position) | LOG_APPEND_TIME)


def set_max_timestamp(
    data: memoryview | bytearray,
    position: int,
    size_bytes: int,
    max_timestamp: int,
    *,
    create_time: bool = True,
) -> None:
    """Correct a wrong largest record time in a header (semantics.md 12a).

    With `create_time` a claim of LogAppendTime is withdrawn as well (semantics.md 6.2).
    """
    attributes = _attributes_at(data, position)
    if create_time:
        attributes &= ~LOG_APPEND_TIME
    _restamp(data, position, size_bytes, max_timestamp, attributes)


def seal(data: memoryview | bytearray, position: int, size_bytes: int) -> None:
    """Write the CRC that the batch's bytes call for."""
    with memoryview(data) as view, view[position + CRC_STARTS : position + size_bytes] as covered:
        _CRC.pack_into(data, position + _CRC_AT, crc32c(covered))


def iter_headers(data: memoryview | bytes, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Each whole batch's position and header, CRC unchecked.

    A last batch that is cut off ends the walk quietly, as a fetch may cut it; CorruptBatch for a
    header that no batch can have.
    """
    while len(data) - position >= HEADER_BYTES:
        header = read_header(data, position)
        end = position + header.length + LENGTH_ENDS
        if end > len(data):
            return
        yield position, header
        position = end


def _attributes_at(data: memoryview | bytearray, position: int) -> int:
    attributes: int = _ATTRIBUTES.unpack_from(data, position + 21)[0]
    return attributes


def _restamp(
    data: memoryview | bytearray,
    position: int,
    size_bytes: int,
    max_timestamp: int,
    attributes: int,
) -> None:
    _ATTRIBUTES.pack_into(data, position + 21, attributes)
    _OFFSET.pack_into(data, position + 35, max_timestamp)
    seal(data, position, size_bytes)
