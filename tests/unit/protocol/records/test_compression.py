"""One bounded way to unpack: right bytes, whole frames only, and never past the limit."""

import gzip
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import cramjam
import lz4.frame
import pytest
import zstandard

from protocol.records import compression
from protocol.records.compression import (
    CHUNK_BYTES,
    Codec,
    CorruptCompression,
    InflateLimit,
    UnknownCodec,
    deflate,
    deflate_lz4_pieces,
    inflate,
)

PACKED = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
STREAMS = (Codec.GZIP, Codec.LZ4, Codec.ZSTD)
MIB = 1024 * 1024
ROOT = Path(__file__).resolve().parents[4]


def text_of(size: int) -> bytes:
    """Text that packs about two to one, so that it crosses the slices of every codec."""
    lines = b"".join(b'{"id": %d, "name": "%s"}\n' % (at, os.urandom(9).hex().encode())
                     for at in range(size // 40 + 1))  # fmt: skip
    return lines[:size]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("size", [1, 100, 32 * 1024, 200_000, 3 * MIB + 7])
def test_what_was_packed_comes_back(codec: Codec, size: int) -> None:
    text = text_of(size)

    assert bytes(inflate(codec, deflate(codec, text), limit_bytes=size)) == text


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(codec: Codec, kind: type) -> None:
    packed = kind(deflate(codec, kind(b"text" * 99)))

    assert bytes(inflate(codec, packed)) == b"text" * 99


@pytest.mark.parametrize(
    ("codec", "low", "high"), [(Codec.GZIP, 1, 9), (Codec.LZ4, 1, 12), (Codec.ZSTD, 1, 19)]
)
def test_a_level_is_obeyed(codec: Codec, low: int, high: int) -> None:
    text = text_of(300_000)

    assert len(deflate(codec, text, high)) < len(deflate(codec, text, low))
    assert bytes(inflate(codec, deflate(codec, text, high))) == text


def test_what_other_writers_make_is_unpacked() -> None:
    text = text_of(500_000)
    no_size = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    linked = lz4.frame.compress(text, content_checksum=True, block_linked=True, store_size=True)

    assert inflate(Codec.GZIP, gzip.compress(text)) == text
    assert inflate(Codec.LZ4, linked) == text
    assert inflate(Codec.ZSTD, no_size.compress(text)) == text
    assert inflate(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(text))) == text


@pytest.mark.parametrize("codec", STREAMS)
def test_members_in_a_row_are_one_text(codec: Codec) -> None:
    first, second = text_of(300_000), text_of(90_000)
    packed = deflate(codec, first) + deflate(codec, second)

    assert bytes(inflate(codec, packed, limit_bytes=390_000)) == first + second
    with pytest.raises(InflateLimit):
        inflate(codec, packed, limit_bytes=389_999)


def test_a_skippable_zstd_frame_is_skipped() -> None:
    skippable = bytes.fromhex("50 2a 4d 18 03 00 00 00 61 62 63")

    assert inflate(Codec.ZSTD, skippable + deflate(Codec.ZSTD, b"text")) == b"text"


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("size", [10, 70_000, 2 * MIB])
def test_the_limit_is_exact_and_named(codec: Codec, size: int) -> None:
    packed = deflate(codec, text_of(size))

    assert len(inflate(codec, packed, limit_bytes=size)) == size
    with pytest.raises(InflateLimit, match=f"{codec.name.lower()}.*{size - 1}") as caught:
        inflate(codec, packed, limit_bytes=size - 1)
    assert caught.value.limit_bytes == size - 1


def test_plain_records_have_the_limit_too() -> None:
    assert inflate(Codec.NONE, b"12345", limit_bytes=5) == b"12345"
    with pytest.raises(InflateLimit):
        inflate(Codec.NONE, b"12345", limit_bytes=4)


@pytest.mark.parametrize("codec", PACKED)
def test_every_truncation_is_refused(codec: Codec) -> None:
    packed = deflate(codec, text_of(700))

    for size in range(len(packed)):
        if codec is Codec.SNAPPY and size == 16:
            continue  # a stream of no blocks, whose emptiness the record count tells
        with pytest.raises(CorruptCompression):
            inflate(codec, packed[:size])


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("tail", [b"\0", b"garbage!", b"\xff" * 100])
def test_bytes_after_the_end_are_refused(codec: Codec, tail: bytes) -> None:
    with pytest.raises(CorruptCompression):
        inflate(codec, deflate(codec, text_of(70_000)) + tail)


@pytest.mark.parametrize("codec", PACKED)
def test_another_codecs_bytes_are_refused(codec: Codec) -> None:
    for other in PACKED:
        if other is not codec:
            with pytest.raises(CorruptCompression):
                inflate(codec, deflate(other, text_of(5000)))


@pytest.mark.parametrize("bits", [5, 6, 7])
def test_bits_that_name_no_codec_are_refused(bits: int) -> None:
    with pytest.raises(UnknownCodec, match=str(bits)):
        compression.codec_of(bits)


@pytest.mark.parametrize("claim", [2**31 - 1, 2**32 - 1, 65 * MIB])
def test_a_snappy_claim_is_judged_before_memory_is_taken(claim: int) -> None:
    varint = bytearray()
    rest = claim
    while rest > 127:
        varint.append(rest & 127 | 128)
        rest >>= 7
    block = bytes((*varint, rest)) + b"\0" * 8

    tracemalloc.start()
    try:
        with pytest.raises(InflateLimit):
            inflate(Codec.SNAPPY, block)
        with pytest.raises(CorruptCompression, match="cannot hold"):
            inflate(Codec.SNAPPY, block, limit_bytes=2**40)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [-1, 0, 10_000])
def test_a_snappy_block_size_that_lies_is_refused(size: int) -> None:
    packed = bytearray(deflate(Codec.SNAPPY, b"text"))
    packed[16:20] = size.to_bytes(4, "big", signed=True)

    with pytest.raises(CorruptCompression):
        inflate(Codec.SNAPPY, packed)


def test_a_zstd_window_that_needs_real_memory_is_refused() -> None:
    window = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    packed = zstandard.ZstdCompressor(compression_params=window).compress(bytes(32 * MIB))
    small = zstandard.ZstdCompressor(compression_params=window).compress(b"text" * 1000)

    with pytest.raises(CorruptCompression, match="window"):
        inflate(Codec.ZSTD, packed)
    assert inflate(Codec.ZSTD, small) == b"text" * 1000


def test_a_content_size_that_lies_is_refused() -> None:
    packed = bytearray(zstandard.ZstdCompressor().compress(text_of(100_000)))
    assert packed[4] >> 6 == 2, "a content size of four bytes"
    packed[5:9] = (200_000).to_bytes(4, "little")

    with pytest.raises(CorruptCompression):
        inflate(Codec.ZSTD, packed)


def bomb_of(codec: Codec, size: int) -> bytes:
    """Zeros, packed as hard as the codec can."""
    level = {Codec.GZIP: 9, Codec.ZSTD: 19}.get(codec)
    return deflate(codec, bytes(size), level)


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_takes_no_more_than_the_limit_and_a_chunk(codec: Codec) -> None:
    limit = 8 * MIB
    bomb = bomb_of(codec, 16 * limit)
    inflate(codec, deflate(codec, b"warm"))

    tracemalloc.start()
    try:
        with pytest.raises(InflateLimit):
            inflate(codec, bomb, limit_bytes=limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak <= limit + limit // 8 + 3 * CHUNK_BYTES


BOMB = """
import sys
from pathlib import Path
from protocol.records.compression import Codec, InflateLimit, deflate, inflate

def peak():
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1]) * 1024

codec, bomb = Codec(int(sys.argv[1])), sys.stdin.buffer.read()
inflate(codec, deflate(codec, b"warm"))
before = peak()
try:
    inflate(codec, bomb, limit_bytes=int(sys.argv[2]))
except InflateLimit:
    print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read there")
@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_takes_no_memory_behind_pythons_back(codec: Codec) -> None:
    limit = 8 * MIB
    command = [sys.executable, "-c", BOMB, str(int(codec)), str(limit)]

    ran = subprocess.run(
        command, input=bomb_of(codec, 16 * limit), capture_output=True, check=True, cwd=ROOT
    )

    # Beside the result: growth of an eighth, chunks, and a zstd window of up to 8 MiB.
    assert 0 <= int(ran.stdout) <= limit + limit // 8 + 8 * MIB + 4 * CHUNK_BYTES


def test_gzip_pieces_do_not_depend_on_where_the_input_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = bytes(5000) + text_of(3000)
    packed = gzip.compress(text) + gzip.compress(b"") + gzip.compress(text[::-1])
    monkeypatch.setattr(compression, "CHUNK_BYTES", 37)

    for slice_bytes in (1, 2, 3, 10, 64):
        monkeypatch.setattr(compression, "GZIP_SLICE_BYTES", slice_bytes)
        assert inflate(Codec.GZIP, packed) == text + text[::-1]


def test_lz4_pieces_do_not_depend_on_where_the_input_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = bytes(5000) + text_of(3000)
    packed = lz4.frame.compress(text) + lz4.frame.compress(b"") + lz4.frame.compress(text[::-1])
    monkeypatch.setattr(compression, "CHUNK_BYTES", 37)

    for slice_bytes in (1, 2, 3, 10, 64):
        monkeypatch.setattr(compression, "LZ4_SLICE_BYTES", slice_bytes)
        assert inflate(Codec.LZ4, packed) == text + text[::-1]


def test_a_checksum_that_fails_is_refused() -> None:
    packed = bytearray(gzip.compress(b"text" * 100))
    packed[-8] ^= 1

    with pytest.raises(CorruptCompression, match="gzip"):
        inflate(Codec.GZIP, packed)


def test_a_zstd_block_of_no_known_kind_is_refused() -> None:
    packed = bytearray(deflate(Codec.ZSTD, b"text" * 100))
    first_block = 4 + 1 + 2
    assert packed[4] >> 5 == 0b011, "one segment, a content size of two bytes"
    packed[first_block] |= 0b110

    with pytest.raises(CorruptCompression, match="kind"):
        inflate(Codec.ZSTD, packed)


def test_zstd_frames_that_are_all_skippable_hold_no_records() -> None:
    with pytest.raises(CorruptCompression):
        inflate(Codec.ZSTD, bytes.fromhex("50 2a 4d 18 00 00 00 00"))


def test_gzip_output_that_waits_behind_consumed_input_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = gzip.compress(bytes(1000))

    for chunk in range(1, 300):
        monkeypatch.setattr(compression, "CHUNK_BYTES", chunk)
        assert inflate(Codec.GZIP, packed) == bytes(1000)
        with pytest.raises(CorruptCompression):
            inflate(Codec.GZIP, packed[:-8])
        with pytest.raises(CorruptCompression):
            inflate(Codec.GZIP, packed[:-9])


@pytest.mark.parametrize("size", [0, 1, 65_536, 262_144, 262_145, 1_000_000])
@pytest.mark.parametrize("level", [-10, 0, 9])
def test_lz4_in_pieces_is_one_frame(size: int, level: int) -> None:
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    packed = b"".join(deflate_lz4_pieces(memoryview(data), level))
    assert bytes(inflate(Codec.LZ4, packed)) == data
    assert packed[4:6] == deflate(Codec.LZ4, data)[4:6], "the frame's flags are as Kafka has them"
