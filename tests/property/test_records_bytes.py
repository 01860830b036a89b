"""Round trips of batches, and arbitrary bytes: nothing but a decode error ever comes out."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records.batch import HEADER_BYTES, crc_matches, read_header, seal
from protocol.records.builder import build_batch, recompress
from protocol.records.compression import Codec, InflateLimit, deflate, inflate
from protocol.records.numbers import walked_zigzag, zigzag_bytes
from protocol.records.record import Record, read_records

TIMES = st.integers(-(2**62), 2**62 - 1)  # less than 2^63 apart: so much fits into one batch
FIELDS = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=5), FIELDS), max_size=3)
ROWS = st.lists(st.tuples(TIMES, FIELDS, FIELDS, HEADERS), min_size=1, max_size=6)
CODECS = st.sampled_from(list(Codec))
PACKED = st.sampled_from([codec for codec in Codec if codec])


@given(ROWS, CODECS, CODECS, st.integers(0, 2**62))
def test_records_survive_building_and_packing_anew(
    rows: list[tuple[int, bytes, bytes, list[tuple[str, bytes]]]],
    codec: Codec,
    target: Codec,
    base_offset: int,
) -> None:
    batch = memoryview(build_batch(rows, codec=codec, base_offset=base_offset))
    expected = [
        Record(base_offset + at, time, key, value, tuple(headers))
        for at, (time, key, value, headers) in enumerate(rows)
    ]

    assert crc_matches(batch, 0, read_header(batch))
    assert read_records(batch) == expected
    assert read_records(memoryview(recompress(batch, target))) == expected


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_zigzag_numbers_come_back(number: int, before: bytes) -> None:
    encoded = zigzag_bytes(number)

    assert walked_zigzag(memoryview(before + encoded), len(before)) == (
        number,
        len(before) + len(encoded),
    )


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_records_or_a_decode_error(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        read_records(memoryview(data))


@given(ROWS, CODECS, st.data())
def test_damage_behind_a_right_crc_is_a_decode_error_too(
    rows: list[tuple[int, bytes, bytes, list[tuple[str, bytes]]]],
    codec: Codec,
    data: st.DataObject,
) -> None:
    batch = build_batch(rows, codec=codec)
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(21, len(batch) - 1))] = data.draw(st.integers(0, 255))
    seal(batch, 0, len(batch))

    with contextlib.suppress(DecodeError):
        read_records(memoryview(batch), limit_bytes=100_000)


@given(PACKED, st.binary(max_size=200))
def test_arbitrary_bytes_unpack_or_are_a_decode_error(codec: Codec, data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        assert len(inflate(codec, data, limit_bytes=1000)) <= 1000


@given(PACKED, st.binary(min_size=1, max_size=400), st.integers(1, 300), st.data())
def test_damaged_packing_unpacks_within_the_limit_or_is_a_decode_error(
    codec: Codec, text: bytes, repeats: int, data: st.DataObject
) -> None:
    packed = bytearray(deflate(codec, text * repeats))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))

    with contextlib.suppress(DecodeError):
        assert len(inflate(codec, packed, limit_bytes=50_000)) <= 50_000


@given(PACKED, st.binary(min_size=1, max_size=100), st.integers(1, 3000))
def test_the_limit_is_exact(codec: Codec, text: bytes, repeats: int) -> None:
    whole = text * repeats
    packed = deflate(codec, whole)

    assert bytes(inflate(codec, packed, limit_bytes=len(whole))) == whole
    with pytest.raises(InflateLimit):
        inflate(codec, packed, limit_bytes=len(whole) - 1)


@given(ROWS, CODECS)
def test_every_truncation_of_a_batch_is_refused(
    rows: list[tuple[int, bytes, bytes, list[tuple[str, bytes]]]], codec: Codec
) -> None:
    batch = memoryview(build_batch(rows[:2], codec=codec))
    for size in {0, 60, HEADER_BYTES, (HEADER_BYTES + len(batch)) // 2, len(batch) - 1}:
        if size < len(batch):
            with pytest.raises(DecodeError):
                read_records(batch[:size])
