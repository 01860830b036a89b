"""Sets of formats 0 and 1 under random records and damage: round trips, or a decode error."""

import contextlib
import zlib

from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records.batch import read_header, seal
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.old_formats.convert import down_convert, up_convert
from protocol.records.old_formats.legacy import read_messages
from protocol.records.old_formats.legacy_builder import build_message, build_set, wrap
from protocol.records.record import Record, read_records

TIMES = st.integers(-(2**62), 2**62 - 1)  # less than 2^63 apart: so much fits into one batch
FIELDS = st.none() | st.binary(max_size=300)
ROWS = st.lists(st.tuples(TIMES, FIELDS, FIELDS), min_size=1, max_size=6)
CODECS = st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
MAGIC = st.integers(0, 1)
LIMIT = 1 << 20

Rows = list[tuple[int, bytes | None, bytes | None]]


def read_all(data: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [
        (m.offset, m.timestamp, None if m.key is None else bytes(m.key),
         None if m.value is None else bytes(m.value))
        for m in read_messages(memoryview(data), limit_bytes=LIMIT)
    ]  # fmt: skip


@given(ROWS, MAGIC, CODECS, st.integers(0, 2**62))
def test_up_and_down_again(rows: Rows, magic: int, codec: Codec, base: int) -> None:
    numbered = [(base + n, time if magic else -1, *rest) for n, (time, *rest) in enumerate(rows)]
    old = build_set(numbered, magic, codec=codec)
    assert read_all(old) == numbered

    batch = up_convert(memoryview(old))
    expected = [(n, *row[1:]) for n, row in enumerate(numbered)]
    assert read_records(memoryview(batch)) == [Record(*row) for row in expected]

    back = down_convert(
        memoryview(batch), read_header(batch), magic, from_offset=0, room=LIMIT
    ).messages
    assert read_all(bytes(back)) == expected


@given(st.binary(max_size=200))
def test_arbitrary_bytes(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        up_convert(memoryview(data), limit_bytes=LIMIT)


@given(ROWS, MAGIC, CODECS, st.data())
def test_damage_behind_right_checksums(
    rows: Rows, magic: int, codec: Codec, data: st.DataObject
) -> None:
    """Inside of the first message, or of the wrapper, or of the set in the wrapper."""
    numbered = [(n, *row) for n, row in enumerate(rows)]
    first = bytearray(build_message(*numbered[0][:1], magic, *numbered[0][1:]))
    _damage(first, data)
    inner = bytes(first) + build_set(numbered[1:], magic)
    candidates = [inner]
    if codec:
        wrapper = bytearray(
            wrap(inner, magic, codec, last_offset=data.draw(st.integers(0, 9)), timestamp=1)
        )
        candidates.append(bytes(wrapper))
        _damage(wrapper, data)
        candidates.append(bytes(wrapper))
    for candidate in candidates:
        with contextlib.suppress(DecodeError):
            up_convert(memoryview(candidate), limit_bytes=LIMIT)


def _damage(message: bytearray, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(message) - 1))
    message[at] = data.draw(st.integers(0, 255))
    message[12:16] = zlib.crc32(message[16:]).to_bytes(4, "big")


@given(ROWS, MAGIC, CODECS, st.data())
def test_damaged_batches_on_their_way_down(
    rows: Rows, magic: int, codec: Codec, data: st.DataObject
) -> None:
    batch = build_batch(rows, codec=codec)
    at = data.draw(st.integers(21, len(batch) - 1) | st.integers(0, 7))
    batch[at] = data.draw(st.integers(0, 255))
    seal(batch, 0, len(batch))
    with contextlib.suppress(DecodeError):
        down_convert(
            memoryview(batch), read_header(batch), magic,
            from_offset=0, room=data.draw(st.integers(0, 500)), limit_bytes=LIMIT,
        )  # fmt: skip
