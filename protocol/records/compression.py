"""The one place where records are packed and unpacked, and the bound on what unpacking may take.

A MiB from the network can claim 32 GiB of records (zstd; gzip 1 GiB, lz4 0.24, snappy 0.02), so
every reader goes through `inflate`: produce, time search, tools. It stops at the limit and never
holds more than the limit, an eighth for growth, and a chunk or two. Input must be whole frames to
its last byte. Libraries are imported on first use. Framing: semantics.md 7.6.
"""

import enum
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from protocol.errors import DecodeError
from protocol.records.blank import blank
from protocol.records.framing import (
    XERIAL_HEADER,
    CorruptCompression,
    PackedParts,
    TooManyParts,
    snappy_blocks,
    zstd_bounds,
)

__all__ = [
    "Codec",
    "CorruptCompression",
    "InflateLimit",
    "PackedParts",
    "TooManyParts",
    "UnknownCodec",
    "codec_of",
    "deflate",
    "expected_bytes",
    "inflate",
]

DEFAULT_LIMIT_BYTES = 64 * 1024 * 1024  # of one batch's unpacked records
_LZ4_PIECE = 256 * 1024
CHUNK_BYTES = 1024 * 1024  # the most that one call of a library may add
# Input is fed in slices, since after each of many small members the rest of one is copied.
GZIP_SLICE_BYTES = 16 * 1024
LZ4_SLICE_BYTES = 64 * 1024
ZSTD_WINDOW_BYTES = 8 * 1024 * 1024  # of memory that a window may really take
ZSTD_WINDOW_MOST_BYTES = 128 * 1024 * 1024  # as Kafka's own reader
GZIP_LEAST_BYTES = 18  # header and trailer; the last four bytes are the unpacked size
SNAPPY_BLOCK_BYTES = 32 * 1024
SNAPPY_WORST_RATIO = 22  # a copy element of three bytes yields 64

Buffer = bytes | bytearray | memoryview


class Codec(enum.IntEnum):
    """Bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_CODECS = tuple(Codec)


class UnknownCodec(DecodeError):  # noqa: N818 - the state it found
    """Attribute bits that name no codec: UNSUPPORTED_COMPRESSION_TYPE (76) on the wire."""


class InflateLimit(DecodeError):  # noqa: N818 - the state it found
    """Records that would unpack to more than the limit, which the message names."""

    def __init__(self, codec: Codec, limit_bytes: int) -> None:
        super().__init__(f"{codec.name.lower()} records unpack to more than {limit_bytes} bytes")
        self.codec = codec
        self.limit_bytes = limit_bytes


def codec_of(bits: int) -> Codec:
    """Give the codec of attribute bits 0-2; UnknownCodec for 5 to 7."""
    if bits < len(_CODECS):
        return _CODECS[bits]
    raise UnknownCodec(f"no codec has the number {bits}")


def inflate(
    codec: Codec,
    data: Buffer,
    *,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    parts: PackedParts | None = None,
) -> Buffer:
    """Unpack the records of one batch; with Codec.NONE, give `data` back.

    InflateLimit when more than `limit_bytes` come out, CorruptCompression when `data` is not
    whole frames of the codec from its first byte to its last. `parts` counts what it is made of:
    TooManyParts.
    """
    if codec is Codec.NONE:
        if len(data) > limit_bytes:
            raise InflateLimit(codec, limit_bytes)
        return data
    return _INFLATERS[codec](memoryview(data), limit_bytes, parts or PackedParts())


def expected_bytes(codec: Codec, data: Buffer, parts: PackedParts) -> int:
    """About what `data` unpacks to, by what it states itself; 0 where it does not.

    It may be wrong: a zstd frame tells the most that its blocks can hold, gzip what its sender
    wrote there. CorruptCompression when it cannot be read, TooManyParts.
    """
    if codec is Codec.ZSTD:
        return zstd_bounds(memoryview(data), parts).unpacked_at_most
    if codec is Codec.GZIP and len(data) >= GZIP_LEAST_BYTES:
        return int.from_bytes(data[-4:], "little")
    return 0


def deflate(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Pack records as Kafka's own clients frame them; None takes the codec's usual level."""
    return _DEFLATERS[codec](data, level)


def deflate_lz4_pieces(data: memoryview, level: int) -> Iterator[bytes]:
    """Pack records as `deflate` does with LZ4, in pieces that are made one after the other.

    For much data at a low level: what a piece takes is memory that was used just before.
    """
    import lz4.frame

    with lz4.frame.LZ4FrameCompressor(
        block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, compression_level=level
    ) as packer:
        yield packer.begin()
        for at in range(0, len(data), _LZ4_PIECE):
            yield packer.compress(data[at : at + _LZ4_PIECE])
        yield packer.flush()


def _collect(codec: Codec, pieces: Iterator[bytes], limit_bytes: int) -> Buffer:
    """Join pieces, none larger than a chunk; InflateLimit before the limit is passed."""
    joined = bytearray()
    for piece in pieces:
        if len(joined) + len(piece) > limit_bytes:
            joined.clear()  # the error's traceback holds this frame
            raise InflateLimit(codec, limit_bytes)
        joined += piece
    return joined


def _chunk(limit_bytes: int) -> int:
    """Bytes that one call of a library may add: one byte over the limit means that there is
    more.
    """
    return min(CHUNK_BYTES, limit_bytes + 1)


def _slices(data: memoryview, size: int) -> Iterator[memoryview]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def _inflate_gzip(data: memoryview, limit_bytes: int, parts: PackedParts) -> Buffer:
    try:
        return _collect(Codec.GZIP, _gzip_pieces(data, _chunk(limit_bytes), parts), limit_bytes)
    except zlib.error as error:
        raise CorruptCompression(f"gzip: {error}") from None


def _gzip_pieces(data: memoryview, chunk: int, parts: PackedParts) -> Iterator[bytes]:
    parts.one_more()
    stream = zlib.decompressobj(31)
    for piece in _slices(data, GZIP_SLICE_BYTES):
        rest: Buffer = piece
        while len(rest):
            if stream.eof:
                parts.one_more()
                stream = zlib.decompressobj(31)  # the next member
            yield from _some(stream.decompress(rest, chunk))
            rest = stream.unused_data if stream.eof else stream.unconsumed_tail
    while not stream.eof:
        more = stream.decompress(b"", chunk)
        if not more and not stream.eof:
            raise CorruptCompression("gzip: the stream is cut off")
        yield from _some(more)


def _some(piece: bytes) -> tuple[bytes, ...]:
    return (piece,) if piece else ()


def _inflate_lz4(data: memoryview, limit_bytes: int, parts: PackedParts) -> Buffer:
    try:
        return _collect(Codec.LZ4, _lz4_pieces(data, _chunk(limit_bytes), parts), limit_bytes)
    except RuntimeError as error:
        raise CorruptCompression(f"lz4: {error}") from None


def _lz4_pieces(data: memoryview, most: int, parts: PackedParts) -> Iterator[bytes]:
    import lz4.frame

    parts.one_more()
    stream = lz4.frame.LZ4FrameDecompressor()
    chunk = min(most, 4 * len(data) + 4096)
    for piece in _slices(data, LZ4_SLICE_BYTES):
        rest: Buffer = piece
        while len(rest):
            if stream.eof:
                parts.one_more()
                stream = lz4.frame.LZ4FrameDecompressor()
            yield from _some(stream.decompress(rest, max_length=chunk))
            while not stream.eof and not stream.needs_input:
                yield from _some(stream.decompress(b"", max_length=chunk))
            rest = stream.unused_data or b"" if stream.eof else b""
    if not stream.eof:
        raise CorruptCompression("lz4: the frame is cut off")


def _inflate_zstd(data: memoryview, limit_bytes: int, parts: PackedParts) -> Buffer:
    import zstandard

    bounds = zstd_bounds(data, parts)
    # Levels 20 to 22 declare windows of 32 to 128 MiB, but only what is unpacked is ever touched.
    if min(bounds.largest_window, bounds.unpacked_at_most) > ZSTD_WINDOW_BYTES:
        raise CorruptCompression(f"zstd: a window of {bounds.largest_window} bytes is too large")
    reader = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_MOST_BYTES).stream_reader(
        data, read_across_frames=True
    )
    chunk = max(1, min(_chunk(limit_bytes), bounds.unpacked_at_most))
    pieces = iter(lambda: reader.read(chunk), b"")
    try:
        return _collect(Codec.ZSTD, pieces, limit_bytes)
    except zstandard.ZstdError as error:
        raise CorruptCompression(f"zstd: {error}") from None


def _inflate_snappy(data: memoryview, limit_bytes: int, parts: PackedParts) -> Buffer:
    import cramjam

    size_of = cramjam.snappy.decompress_raw_len
    position = 0
    try:
        joined = blank(_snappy_claims(data, limit_bytes, size_of, parts))
        with memoryview(joined) as whole:
            for block in snappy_blocks(data):
                end = position + size_of(block)
                cramjam.snappy.decompress_raw_into(block, whole[position:end])
                position = end
    except cramjam.DecompressionError as error:
        raise CorruptCompression(f"snappy: {error}") from None
    return joined


def _snappy_claims(
    data: memoryview, limit_bytes: int, size_of: Callable[[memoryview], int], parts: PackedParts
) -> int:
    """Add up what the blocks claim, each claim judged before anything is allocated."""
    total = 0
    for block in snappy_blocks(data):
        parts.one_more()
        size = size_of(block)
        total += size
        if total > limit_bytes:
            raise InflateLimit(Codec.SNAPPY, limit_bytes)
        if size > SNAPPY_WORST_RATIO * len(block):
            raise CorruptCompression(f"snappy: {len(block)} bytes cannot hold {size}")
    return total


def _deflate_none(data: Buffer, _level: int | None) -> bytes:
    return bytes(data)


def _deflate_gzip(data: Buffer, level: int | None) -> bytes:
    stream = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    return stream.compress(data) + stream.flush()


def _deflate_snappy(data: Buffer, _level: int | None) -> bytes:
    import cramjam

    parts = [XERIAL_HEADER]
    with memoryview(data) as view:
        for start in range(0, len(view), SNAPPY_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(view[start : start + SNAPPY_BLOCK_BYTES]))
            parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _deflate_lz4(data: Buffer, level: int | None) -> bytes:
    import lz4.frame

    packed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level is None else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return packed


def _deflate_zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=3 if level is None else level).compress(data)


_INFLATERS: dict[Codec, Callable[[memoryview, int, PackedParts], Buffer]] = {
    Codec.GZIP: _inflate_gzip,
    Codec.SNAPPY: _inflate_snappy,
    Codec.LZ4: _inflate_lz4,
    Codec.ZSTD: _inflate_zstd,
}
_DEFLATERS: dict[Codec, Callable[[Any, int | None], bytes]] = {
    Codec.NONE: _deflate_none,
    Codec.GZIP: _deflate_gzip,
    Codec.SNAPPY: _deflate_snappy,
    Codec.LZ4: _deflate_lz4,
    Codec.ZSTD: _deflate_zstd,
}
