"""The offset index: Kafka's bytes, Kafka's refusals, and a naive model beside it."""

import struct
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptIndex, InvalidOffset
from storage.index.offset_index import OffsetIndex, OffsetPosition
from tests.support.disk.simdisk import SimFileSystem

PATH = "/00000000000000000045.index"
BASE = 45


def new_index(max_bytes: int = 30 * 8, fs: SimFileSystem | None = None) -> OffsetIndex:
    index = OffsetIndex(fs or SimFileSystem(), PATH, BASE, max_bytes)
    index.reset()
    return index


def stored(fs: SimFileSystem) -> list[tuple[int, int]]:
    return list(struct.iter_unpack(">ii", fs.read_bytes(PATH)))


def test_an_empty_index_points_at_the_begin_of_the_segment() -> None:
    index = new_index()
    assert index.entries == 0
    assert index.last_entry == (BASE, 0)
    assert index.lookup(BASE) == (BASE, 0)
    assert index.lookup(92) == (BASE, 0)


def test_a_lookup_finds_the_greatest_entry_that_is_not_above() -> None:
    index = new_index()
    for offset, position in [(49, 400), (52, 900), (60, 1000)]:
        index.append(offset, position)
    assert index.lookup(48) == OffsetPosition(BASE, 0)
    assert index.lookup(49) == OffsetPosition(49, 400)
    assert index.lookup(51) == OffsetPosition(49, 400)
    assert index.lookup(52) == OffsetPosition(52, 900)
    assert index.lookup(2**62) == OffsetPosition(60, 1000)
    assert index.lookup(0) == OffsetPosition(BASE, 0)
    assert index.entry(1) == OffsetPosition(52, 900)


def test_offsets_that_do_not_rise_are_refused_and_nothing_changes() -> None:
    index = new_index()
    index.append(51, 0)
    for offset in (50, 51):
        with pytest.raises(InvalidOffset):
            index.append(offset, 1)
    assert index.entries == 1


@pytest.mark.parametrize("offset", [BASE - 1, BASE + 2**31])
def test_an_offset_outside_of_the_segment_is_refused(offset: int) -> None:
    index = new_index()
    with pytest.raises(InvalidOffset):
        index.append(offset, 0)
    index.append(BASE + 2**31 - 1, 7)
    assert index.last_entry == (BASE + 2**31 - 1, 7)


def test_a_full_index_refuses_more() -> None:
    index = new_index(max_bytes=3 * 8 + 7)
    for offset in (46, 47, 48):
        assert not index.is_full
        index.append(offset, offset)
    assert index.is_full
    with pytest.raises(ValueError, match="full"):
        index.append(49, 49)


def test_room_for_less_than_one_entry_is_no_index() -> None:
    with pytest.raises(ValueError, match="cannot hold one entry"):
        OffsetIndex(SimFileSystem(), PATH, BASE, 7)


def test_the_upper_bound_of_a_fetch_is_the_first_entry_at_its_end() -> None:
    index = new_index()
    for offset, position in [(46, 100), (50, 200), (55, 300)]:
        index.append(offset, position)
    assert index.first_at_position(0) == (46, 100)
    assert index.first_at_position(101) == (50, 200)
    assert index.first_at_position(300) == (55, 300)
    assert index.first_at_position(301) is None


def test_truncation_keeps_what_lies_below_in_memory_and_in_the_file() -> None:
    fs = SimFileSystem()
    index = new_index(fs=fs)
    for offset in (46, 47, 48, 49):
        index.append(offset, (offset - BASE) * 10)
    index.flush()
    index.truncate_to(60)
    assert index.entries == 4
    index.truncate_to(48)
    assert index.last_entry == (47, 20)
    assert stored(fs) == [(1, 10), (2, 20)]
    index.append(50, 99)
    index.flush()
    assert stored(fs) == [(1, 10), (2, 20), (5, 99)]
    index.truncate_to(BASE)
    assert stored(fs) == []


def test_entries_reach_the_file_at_flush_and_only_entries_do() -> None:
    fs = SimFileSystem()
    index = new_index(fs=fs, max_bytes=10485760)
    index.append(46, 4096)
    assert not fs.exists(PATH)
    index.flush()
    index.append(47, 8192)
    index.flush()
    assert stored(fs) == [(1, 4096), (2, 8192)]
    assert index.size_bytes == 16


def test_an_index_without_entries_still_gets_its_file() -> None:
    fs = SimFileSystem()
    new_index(fs=fs).flush()
    assert fs.read_bytes(PATH) == b""


def test_a_new_index_replaces_left_over_bytes() -> None:
    fs = SimFileSystem()
    fs.write_atomically(PATH, b"stale bytes")
    index = new_index(fs=fs)
    index.append(46, 1)
    index.flush()
    assert stored(fs) == [(1, 1)]


def test_flushing_twice_touches_the_disk_once() -> None:
    fs = SimFileSystem()
    index = new_index(fs=fs)
    index.append(46, 1)
    index.flush()
    calls = fs.calls
    index.flush()
    assert fs.calls == calls


def test_what_was_synced_survives_a_power_cut() -> None:
    fs = SimFileSystem()
    index = new_index(fs=fs)
    index.append(46, 1)
    index.sync()
    fs.sync_dir("/")
    for seed in range(20):
        assert stored(fs.after_crash(seed)) == [(1, 1)]


def test_an_unloaded_index_comes_back_on_use() -> None:
    fs = SimFileSystem()
    index = new_index(fs=fs)
    index.append(46, 10)
    index.unload()
    assert not index.is_loaded
    assert index.lookup(50) == (46, 10)
    index.append(47, 20)
    index.unload()
    reopened = OffsetIndex(fs, PATH, BASE, 80)
    assert not reopened.is_loaded
    assert [reopened.entry(0), reopened.entry(1)] == [(46, 10), (47, 20)]
    with pytest.raises(IndexError):
        reopened.entry(2)


@pytest.mark.parametrize(
    "data",
    [
        b"1234567",
        struct.pack(">ii", 1, 1) + b"xyz",
        struct.pack(">iiii", 5, 10, 5, 20),
        struct.pack(">iiii", 5, 10, 6, 10),
        struct.pack(">iiii", 5, 10, 4, 20),
        struct.pack(">ii", -3, 10),
        struct.pack(">ii", 3, -10),
        struct.pack(">ii", 5, 10) + bytes(8),
        struct.pack(">ii", 5, 10) + bytes(800),
    ],
    ids=["cut", "torn", "same offset", "same position", "backwards", "before the base",
         "before the file", "one zero", "a zero tail"],
)  # fmt: skip
def test_contents_that_contradict_themselves_are_found(data: bytes) -> None:
    fs = SimFileSystem()
    fs.write_atomically(PATH, data)
    index = OffsetIndex(fs, PATH, BASE, 8000)
    with pytest.raises(CorruptIndex):
        index.check()
    with pytest.raises(CorruptIndex):
        index.lookup(50)
    index.reset()
    index.append(46, 0)
    index.flush()
    assert stored(fs) == [(1, 0)]


def test_a_missing_file_is_an_index_without_entries() -> None:
    index = OffsetIndex(SimFileSystem(), PATH, BASE, 80)
    index.check()
    assert index.entries == 0


steps = st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 5000)), max_size=60)


@given(steps, st.lists(st.integers(0, 60_000)), st.integers(0, 60_000), st.integers(0, 60))
def test_it_agrees_with_a_list(
    gaps: list[tuple[int, int]], wanted: list[int], cut: int, flush_after: int
) -> None:
    fs = SimFileSystem()
    index = new_index(max_bytes=8000, fs=fs)
    model = [OffsetPosition(BASE, 0)]
    for number, (offset_gap, position_gap) in enumerate(gaps):
        model.append(
            OffsetPosition(model[-1].offset + offset_gap, model[-1].position + position_gap)
        )
        index.append(*model[-1])
        if number == flush_after:
            index.flush()
    for kept in (model, [model[0], *(e for e in model[1:] if e.offset < cut)]):
        if kept is not model:
            index.truncate_to(cut)
        index.flush()
        again = OffsetIndex(fs, PATH, BASE, 8000)
        for offset in (*wanted, *(e.offset for e in kept)):
            expected = kept[max(0, bisect_right(kept, (offset, 2**40)) - 1)]
            assert index.lookup(offset) == again.lookup(offset) == expected
        assert index.entries == again.entries == len(kept) - 1
