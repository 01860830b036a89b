"""The time index: what it takes, what it ignores, what it refuses, and the golden numbers."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptIndex, InvalidOffset
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex, TimestampEntry
from tests.support.disk.simdisk import SimFileSystem

PATH = "/00000000000000000045.timeindex"
BASE = 45


def new_index(max_bytes: int = 30 * 12, fs: SimFileSystem | None = None) -> TimeIndex:
    index = TimeIndex(fs or SimFileSystem(), PATH, BASE, max_bytes)
    index.reset()
    return index


def stored(fs: SimFileSystem, path: str = PATH) -> list[tuple[int, int]]:
    return list(struct.iter_unpack(">qi", fs.read_bytes(path)))


def filled() -> TimeIndex:
    index = new_index()
    for n in range(1, 6):
        assert index.maybe_append(n * 10, BASE + n * 10)
    return index


def test_an_empty_index_knows_no_time() -> None:
    index = new_index()
    assert index.last_entry == (-1, BASE)
    assert index.lookup(100) == (-1, BASE)


def test_a_lookup_finds_the_greatest_timestamp_that_is_not_above() -> None:
    index = filled()
    assert index.lookup(9) == (-1, BASE)
    assert index.lookup(10) == TimestampEntry(10, BASE + 10)
    assert index.lookup(29) == TimestampEntry(20, BASE + 20)
    assert index.lookup(2**62) == TimestampEntry(50, BASE + 50)
    assert index.entry(0) == TimestampEntry(10, BASE + 10)
    assert index.last_entry == TimestampEntry(50, BASE + 50)


def test_only_a_later_time_becomes_an_entry() -> None:
    index = filled()
    assert not index.maybe_append(50, BASE + 60)
    assert index.entries == 5
    assert index.maybe_append(51, BASE + 60)


def test_no_timestamp_never_becomes_an_entry() -> None:
    index = new_index()
    assert not index.maybe_append(-1, BASE + 1)
    assert index.entries == 0


def test_time_and_offset_must_not_go_backwards() -> None:
    index = filled()
    with pytest.raises(ValueError, match="before the last"):
        index.maybe_append(49, BASE + 60)
    with pytest.raises(InvalidOffset):
        index.maybe_append(60, BASE + 49)
    with pytest.raises(InvalidOffset):
        index.maybe_append(49, BASE + 49)
    assert index.maybe_append(60, BASE + 50), "the same offset may have a later time"


def test_an_offset_outside_of_the_segment_is_refused() -> None:
    for offset in (BASE - 1, BASE + 2**31):
        with pytest.raises(InvalidOffset):
            new_index().maybe_append(5, offset)


def test_one_slot_stays_free_for_the_entry_at_roll() -> None:
    index = new_index(max_bytes=3 * 12)
    index.maybe_append(1, BASE)
    assert not index.is_full
    index.maybe_append(2, BASE)
    assert index.is_full
    with pytest.raises(ValueError, match="full"):
        index.maybe_append(3, BASE)
    assert index.maybe_append(3, BASE, skip_full_check=True)
    assert index.last_entry == (3, BASE)


def test_a_single_slot_is_full_from_the_start() -> None:
    assert new_index(max_bytes=23).is_full
    with pytest.raises(ValueError, match="cannot hold"):
        new_index(max_bytes=11)


def test_truncation_goes_by_offset() -> None:
    index = filled()
    index.truncate_to(BASE + 51)
    assert index.entries == 5
    index.truncate_to(BASE + 30)
    assert index.last_entry == (20, BASE + 20)
    assert index.lookup(1000) == (20, BASE + 20)
    index.truncate_to(0)
    assert index.entries == 0


def test_the_file_holds_twelve_bytes_an_entry() -> None:
    fs = SimFileSystem()
    index = new_index(fs=fs)
    index.maybe_append(1_700_000_000_123, BASE)
    index.maybe_append(2**63 - 1, BASE + 2**31 - 1)
    index.flush()
    assert stored(fs) == [(1_700_000_000_123, 0), (2**63 - 1, 2**31 - 1)]
    again = TimeIndex(fs, PATH, BASE, 120)
    assert again.lookup(2**63 - 1) == (2**63 - 1, BASE + 2**31 - 1)
    assert again.lookup(1_700_000_000_123) == (1_700_000_000_123, BASE)


@pytest.mark.parametrize(
    "data",
    [
        bytes(13),
        struct.pack(">qiqi", 5, 1, 4, 2),
        struct.pack(">qiqi", 5, 1, 5, 2),
        struct.pack(">qiqi", 5, 2, 6, 1),
        struct.pack(">qi", 5, -1),
        struct.pack(">qi", -1, 0),
        struct.pack(">qi", 5, 1) + bytes(1200),
    ],
    ids=["cut", "time backwards", "same time", "offset backwards", "before the base", "no time",
         "a zero tail"],
)  # fmt: skip
def test_contents_that_contradict_themselves_are_found(data: bytes) -> None:
    fs = SimFileSystem()
    fs.write_atomically(PATH, data)
    with pytest.raises(CorruptIndex):
        TimeIndex(fs, PATH, BASE, 1200).check()


def run_appends(timestamp_of: Callable[[int], int]) -> tuple[SimFileSystem, str, str]:
    """200 appends of one 72-byte batch each, indexed every 4096 bytes, then closed."""
    fs = SimFileSystem()
    offsets = OffsetIndex(fs, "/i", 0, 10485760)
    times = TimeIndex(fs, "/t", 0, 10485760)
    offsets.reset()
    times.reset()
    largest, since = (-1, 0), 0
    for offset in range(200):
        if timestamp_of(offset) > largest[0]:
            largest = (timestamp_of(offset), offset)
        if since > 4096:
            offsets.append(offset, offset * 72)
            times.maybe_append(*largest)
            since = 0
        since += 72
    times.maybe_append(*largest, skip_full_check=True)
    offsets.flush()
    times.flush()
    return fs, "/i", "/t"


@pytest.mark.parametrize(
    ("timestamp_of", "expected"),
    [
        (lambda offset: 1000 + offset, [(1057, 57), (1114, 114), (1171, 171), (1199, 199)]),
        (lambda offset: 3000 - offset, [(3000, 0)]),
        (lambda offset: 1000 + offset if offset < 100 else 500, [(1057, 57), (1099, 99)]),
        (lambda offset: -1, []),
    ],
    ids=["rising", "falling", "rising to 99", "no time"],
)
def test_the_golden_numbers(
    timestamp_of: Callable[[int], int], expected: list[tuple[int, int]]
) -> None:
    fs, offset_path, time_path = run_appends(timestamp_of)
    assert list(struct.iter_unpack(">ii", fs.read_bytes(offset_path))) == [
        (57, 4104), (114, 8208), (171, 12312),
    ]  # fmt: skip
    assert stored(fs, time_path) == expected


@given(
    st.lists(st.tuples(st.integers(-1, 300), st.integers(0, 20)), max_size=50),
    st.lists(st.integers(-5, 2000), max_size=20),
    st.integers(0, 1500),
)
def test_it_agrees_with_a_list(offered: list[tuple[int, int]], wanted: list[int], cut: int) -> None:
    fs = SimFileSystem()
    index = new_index(max_bytes=12000, fs=fs)
    model: list[TimestampEntry] = []
    running, offset = -1, BASE
    for timestamp, gap in offered:
        offset += gap
        running = max(running, timestamp)
        if index.maybe_append(running, offset):
            model.append(TimestampEntry(running, offset))
    index.flush()
    index.truncate_to(cut)
    model = [entry for entry in model if entry.offset < cut]
    index.flush()
    again = TimeIndex(fs, PATH, BASE, 12000)
    for timestamp in wanted:
        expected = max((e for e in model if e.timestamp <= timestamp), default=(-1, BASE))
        assert index.lookup(timestamp) == again.lookup(timestamp) == expected
