"""Bounds of packed records: xerial's snappy stream and zstd's frames, walked unopened.

Two libraries leave that to us. Snappy knows blocks only, and Kafka's clients wrap them in xerial's
stream (semantics.md 7.6). The zstd reader takes a frame that is cut off for the end of its input,
so the blocks are counted first (RFC 8878, 3.1), which also bounds what they can unpack to.
"""

from collections.abc import Iterator
from typing import NamedTuple

from protocol.errors import DecodeError

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"

ZSTD_MAGIC = 0xFD2FB528
ZSTD_SKIPPABLE = 0x184D2A50
ZSTD_BLOCK_BYTES = 128 * 1024  # the most that one block unpacks to
_SINGLE_SEGMENT, _CHECKSUM = 0x20, 0x04
_DICTIONARY_BYTES = (0, 1, 2, 4)
_CONTENT_BYTES = (0, 2, 4, 8)
_RAW, _RLE, _RESERVED = 0, 1, 3


class CorruptCompression(DecodeError):  # noqa: N818 - the state it found
    """Packed records that do not unpack, are cut off, or have bytes after their end."""


class TooManyParts(Exception):  # noqa: N818 - the state it found
    """Packed records have more parts than their reader allows for."""


class PackedParts:
    """Frames, members and blocks of packed records: each takes time, whatever comes out of it."""

    __slots__ = ("most", "seen")

    def __init__(self, most: int = 1 << 62) -> None:
        """None was seen. `most` may be."""
        self.most = most
        self.seen = 0

    def one_more(self) -> None:
        """Counts one. Raises TooManyParts."""
        if self.seen >= self.most:
            raise TooManyParts
        self.seen += 1


class ZstdBounds(NamedTuple):
    """Sizes that whole frames state about themselves, unopened: bytes."""

    largest_window: int
    unpacked_at_most: int


def snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    """Each raw block of a xerial stream; the data itself when it is a bare block. Raises
    CorruptCompression.
    """
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield data
        return
    position = len(XERIAL_HEADER)
    if len(data) < position:
        raise CorruptCompression("snappy: the stream's header is cut off", len(data))
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        start = position + 4
        position = start + size
        if size <= 0 or position > len(data):
            raise CorruptCompression(f"snappy: a block of {size} bytes runs past the data", start)
        yield data[start:position]


def zstd_bounds(data: memoryview, parts: PackedParts) -> ZstdBounds:
    """Walk every frame; CorruptCompression unless `data` is whole frames, at least one.

    TooManyParts for more blocks, and frames to be skipped, than `parts` allows for.
    """
    position = window = unpacked = frames = 0
    while position < len(data):
        magic = _number(data, position, 4)
        if magic & 0xFFFFFFF0 == ZSTD_SKIPPABLE:
            parts.one_more()
            position += 8 + _number(data, position + 4, 4)
            continue
        if magic != ZSTD_MAGIC:
            raise CorruptCompression("zstd: no frame starts here", position)
        descriptor = _number(data, position + 4, 1)
        position, frame_window = _zstd_frame_header(data, position + 5, descriptor)
        position, frame_unpacked = _zstd_blocks(data, position, parts)
        position += 4 if descriptor & _CHECKSUM else 0
        window, unpacked = max(window, frame_window), unpacked + frame_unpacked
        frames += 1
    if position > len(data) or not frames:
        raise CorruptCompression("zstd: the last frame is cut off", len(data))
    return ZstdBounds(window, unpacked)


def _zstd_frame_header(data: memoryview, position: int, descriptor: int) -> tuple[int, int]:
    """Position of the first block, and the window."""
    window = 0
    content_bytes = _CONTENT_BYTES[descriptor >> 6]
    if descriptor & _SINGLE_SEGMENT:
        content_bytes = content_bytes or 1
    else:
        exponent_mantissa = _number(data, position, 1)
        base = 1 << (10 + (exponent_mantissa >> 3))
        window = base + (base >> 3) * (exponent_mantissa & 7)
        position += 1
    position += _DICTIONARY_BYTES[descriptor & 3]
    content = _number(data, position, content_bytes)
    return position + content_bytes, window or content


def _zstd_blocks(data: memoryview, position: int, parts: PackedParts) -> tuple[int, int]:
    """Position after the last block, and the most that the blocks can unpack to."""
    unpacked = 0
    while True:
        parts.one_more()
        header = _number(data, position, 3)
        kind, size = header >> 1 & 3, header >> 3
        if kind == _RESERVED:
            raise CorruptCompression("zstd: a block of an unknown kind", position)
        position += 3 + (1 if kind == _RLE else size)
        unpacked += size if kind in (_RAW, _RLE) else ZSTD_BLOCK_BYTES
        if header & 1:
            return position, unpacked


def _number(data: memoryview, position: int, size: int) -> int:
    if position + size > len(data):
        raise CorruptCompression("zstd: the frame is cut off", len(data))
    return int.from_bytes(data[position : position + size], "little")
