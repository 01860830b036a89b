"""Leader epochs: which one wrote what, and where each of them ended."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.producers.leader_epochs import LeaderEpochs
from tests.support.disk.simdisk import SimFileSystem

PATH = "/leader-epoch-checkpoint"


def epochs(*entries: tuple[int, int], fs: SimFileSystem | None = None) -> LeaderEpochs:
    cache = LeaderEpochs(fs or SimFileSystem(), PATH)
    for epoch, start_offset in entries:
        assert cache.assign(epoch, start_offset)
    return cache


def test_the_text_is_kafkas() -> None:
    fs = SimFileSystem()
    epochs((0, 0), (3, 42), fs=fs).save()
    assert fs.read_text(PATH) == "0\n2\n0 0\n3 42\n"


def test_what_was_saved_is_loaded() -> None:
    fs = SimFileSystem()
    epochs((2, 6), (3, 10), fs=fs).save()
    cache = epochs(fs=fs)
    cache.load()
    assert cache.entries == ((2, 6), (3, 10))
    assert (cache.earliest, cache.latest, cache.damage) == ((2, 6), (3, 10), None)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_missing_or_empty_file_means_no_epochs(is_there: bool) -> None:
    fs = SimFileSystem()
    if is_there:
        fs.open(PATH, create=True).close()
    cache = epochs(fs=fs)
    cache.load()
    assert (cache.entries, cache.damage, cache.earliest, cache.latest) == ((), None, None, None)


@pytest.mark.parametrize(
    "text",
    ["0\n1\n0\n", "0\n2\n1 5\n1 6\n", "0\n2\n1 5\n2 5\n", "0\n2\n2 5\n1 9\n", "0\n1\nx 1\n"],
)
def test_a_file_that_makes_no_sense_is_absent_and_told(text: str) -> None:
    fs = SimFileSystem()
    fs.write_atomically(PATH, text.encode())
    cache = epochs((9, 9), fs=fs)
    cache.load()
    assert cache.entries == ()
    assert cache.damage is not None


def test_only_news_change_anything() -> None:
    cache = epochs((2, 6))
    assert not cache.assign(2, 7)
    assert not cache.assign(-1, 10)
    assert not cache.assign(3, -1)
    assert cache.assign(3, 6), "the later epoch begins there: the earlier wrote nothing"
    assert cache.entries == ((3, 6),)


def test_a_new_entry_removes_those_that_contradict_it() -> None:
    cache = epochs((1, 10), (3, 20), (5, 30))
    assert cache.assign(4, 25)
    assert cache.entries == ((1, 10), (3, 20), (4, 25))
    assert cache.assign(6, 15)
    assert cache.entries == ((1, 10), (6, 15))
    assert cache.assign(6, 12)
    assert cache.entries == ((1, 10), (6, 12))


def test_the_epoch_of_an_offset() -> None:
    cache = epochs((1, 10), (3, 20))
    assert [cache.epoch_at(offset) for offset in (9, 10, 19, 20, 99)] == [None, 1, 1, 3, 3]


def test_where_an_epoch_ended() -> None:
    cache = epochs((2, 5), (3, 10), (6, 20))
    assert cache.end_offset_of(6, 33) == (6, 33)
    assert cache.end_offset_of(2, 33) == (2, 10)
    assert cache.end_offset_of(4, 33) == (3, 20), "of an unknown one: the next smaller"
    assert cache.end_offset_of(0, 33) == (0, 5), "before all: where the first known began"
    assert cache.end_offset_of(7, 33) == (-1, -1)
    assert cache.end_offset_of(-1, 33) == (-1, -1)
    assert epochs().end_offset_of(0, 33) == (-1, -1)


def test_truncating_the_end() -> None:
    cache = epochs((2, 6), (3, 8), (4, 11))
    assert not cache.truncate_to(12)
    assert cache.truncate_to(11)
    assert cache.entries == ((2, 6), (3, 8))
    assert cache.truncate_to(0)
    assert cache.entries == ()


def test_moving_the_start() -> None:
    cache = epochs((2, 6), (3, 8), (4, 11))
    assert not cache.start_at(3)
    assert not cache.start_at(6)
    assert cache.start_at(7)
    assert cache.entries == ((2, 7), (3, 8), (4, 11))
    assert cache.start_at(8)
    assert cache.entries == ((3, 8), (4, 11))
    assert cache.start_at(50)
    assert cache.entries == ((4, 50),)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_it_agrees_with_the_epoch_of_every_record(steps: list[int]) -> None:
    """Each record is written in an epoch some steps later than the one before."""
    cache, written, epoch = epochs(), [], 0
    for offset, step in enumerate(steps):
        epoch += step
        cache.assign(epoch, offset)
        written.append(epoch)
    assert [cache.epoch_at(offset) for offset in range(len(written))] == written
    for wanted in range(epoch + 2):
        end = cache.end_offset_of(wanted, len(written))
        if wanted > epoch:
            assert end == (-1, -1)
        else:
            assert end.end_offset == sum(e <= wanted for e in written)
