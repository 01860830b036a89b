"""The index of aborted transactions: Kafka's bytes, and what a fetch must be told."""

import struct
import tracemalloc

import pytest

from storage.errors import CorruptIndex, InvalidOffset
from storage.index.txn_index import AbortedTxn, TxnIndex
from tests.support.disk.simdisk import SimFileSystem

PATH = "/00000000000000000000.txnindex"


def index_with(*aborted: tuple[int, int, int, int], fs: SimFileSystem | None = None) -> TxnIndex:
    index = TxnIndex(fs or SimFileSystem(), PATH, 0)
    for entry in aborted:
        index.append(AbortedTxn(*entry))
    index.flush()
    return index


FOUR = ((0, 0, 10, 11), (1, 5, 15, 13), (2, 18, 35, 25), (3, 32, 50, 40))


def test_no_aborts_no_file() -> None:
    fs = SimFileSystem()
    index = index_with(fs=fs)
    assert index.search(0, 100) == ((), False)
    index.sync()
    assert not fs.exists(PATH)


def test_an_entry_is_thirty_four_bytes() -> None:
    fs = SimFileSystem()
    index_with((5, 10, 20, 21), fs=fs)
    assert fs.read_bytes(PATH) == struct.pack(">hqqqq", 0, 5, 10, 20, 21)


def test_entries_are_read_back() -> None:
    fs = SimFileSystem()
    index_with(*FOUR, fs=fs)
    again = TxnIndex(fs, PATH, 0)
    again.check()
    assert again.entries == FOUR


def test_ends_must_rise() -> None:
    index = index_with(*FOUR)
    for last in (50, 49):
        with pytest.raises(InvalidOffset):
            index.append(AbortedTxn(9, 0, last, 60))
    assert index.entries == FOUR


@pytest.mark.parametrize(
    ("fetch", "upper", "found", "is_complete"),
    [
        (0, 100, FOUR, False),
        (0, 32, FOUR[:3], True),
        (0, 35, FOUR, True),
        (10, 35, FOUR, True),
        (11, 35, FOUR[1:], True),
        (20, 41, FOUR[2:], False),
        (20, 40, FOUR[2:], True),
        (51, 100, (), False),
    ],
)
def test_a_fetch_learns_of_what_touches_it(
    fetch: int, upper: int, found: tuple[tuple[int, int, int, int], ...], is_complete: bool
) -> None:
    assert index_with(*FOUR).search(fetch, upper) == (found, is_complete)


def test_truncation_keeps_what_ended_below() -> None:
    fs = SimFileSystem()
    index = index_with(*FOUR, fs=fs)
    index.truncate_to(51)
    assert index.entries == FOUR
    index.truncate_to(35)
    assert index.entries == FOUR[:2]
    assert TxnIndex(fs, PATH, 0).entries == FOUR[:2]


def test_a_reset_removes_the_file() -> None:
    fs = SimFileSystem()
    index = index_with(*FOUR, fs=fs)
    index.reset()
    assert index.entries == ()
    assert not fs.exists(PATH)


@pytest.mark.parametrize(
    ("data", "base"),
    [
        (bytes(33), 0),
        (struct.pack(">hqqqq", 1, 5, 10, 20, 21), 0),
        (struct.pack(">hqqqq", 0, 5, 10, 20, 21), 100),
        (struct.pack(">hqqqq", 0, 5, 10, 20, 21) * 2, 0),
    ],
    ids=["cut", "newer", "before the segment", "not rising"],
)
def test_contents_that_contradict_themselves_are_found(data: bytes, base: int) -> None:
    fs = SimFileSystem()
    fs.write_atomically(PATH, data)
    with pytest.raises(CorruptIndex):
        TxnIndex(fs, PATH, base).check()


def test_many_aborts_take_little_memory_and_each_leaves_those_before_it_alone() -> None:
    """A producer may abort a million times in a segment."""
    index, count = index_with(*FOUR), 5000
    before = index.rows
    tracemalloc.start()
    for number in range(count):
        index.append(AbortedTxn(2**40 + number, 2 * 10**9, 3 * 10**9 + number, 2**33))
    taken, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 * count
    assert taken < 48 * count
    assert index.rows is before, "it was copied"
    assert index.count == len(index.entries) == count + len(FOUR)
