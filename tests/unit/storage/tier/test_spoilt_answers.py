"""Answers of the store that are lost or spoilt: an error, or the right thing, and it heals."""

import random
from collections.abc import Iterator

import pytest

from storage.env import Buffer
from storage.errors import CorruptCheckpoint, CorruptLog
from storage.search.search_clock import EARLIER
from storage.tier.carrying import NotAsSent
from storage.tier.names import RECORDS, SIDE
from storage.tier.port import StoreError
from storage.tier.single_writer import WriterReplaced
from storage.tier.tiered_log import TierMismatch
from tests.support.records.logs import append
from tests.support.tier.faulty_store import Fault, FaultyStore, always, in_order, of_calls
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.tier_life import NOW, TierLife


class World:
    """A log with times in disorder, its store, and what the store does to its callers."""

    def __init__(self) -> None:
        self.objects = MemoryStore()
        self.store = FaultyStore(self.objects, in_order())
        self.life = TierLife(self.store)
        self.life.create()
        dice = random.Random(1)
        self.times = [NOW + dice.randrange(-9000, 9000) for _ in range(60)]
        for at in self.times:
            append(self.life.log, at, value=dice.randbytes(60))
        self.life.sync()

    def moved(self) -> None:
        """All but the active segment is in the store alone."""
        self.life.copy_all()
        self.life.drop()

    def names(self, ending: str) -> list[str]:
        return [key for key in self.objects.objects if key.endswith(ending)]


def test_local_segments_stay_until_the_log_reads_them_from_the_store() -> None:
    world = World()
    life, tiered = world.life, world.life.tiered
    world.store.script = of_calls("put_new", Fault.LOST_AFTER)
    with pytest.raises(StoreError):
        life.copy_next()
    world.store.script = always(Fault.LOST_BEFORE, "put_file")
    with pytest.raises(StoreError):
        life.copy_next()  # finds that the first copy counts, and fails with the second
    assert tiered.uploaded_end > 0
    life.drop()
    world.store.script = in_order()
    assert life.log.snapshot.segments[0].base_offset == 0
    assert life.read(0)


def test_a_copy_that_arrived_with_another_bit_does_not_count() -> None:
    for ending in (RECORDS, SIDE):
        world = World()
        put = world.objects.put_file

        def spoils(key: str, parts: Iterator[Buffer], size: int, ending: str = ending) -> None:
            put(key, parts, size)  # noqa: B023 - called within this round
            if key.endswith(ending):
                data = world.objects.objects[key]  # noqa: B023 - as above
                world.objects.objects[key] = data[:-1] + bytes((data[-1] ^ 1,))  # noqa: B023

        world.objects.put_file = spoils  # type: ignore[method-assign]
        with pytest.raises(NotAsSent):
            world.life.copy_next()
        assert not world.names(".json")


def test_a_spoilt_answer_is_no_other_writer() -> None:
    world = World()
    world.store.script = of_calls("put_new", Fault.LOST_AFTER)
    with pytest.raises(StoreError):
        world.life.copy_next()
    world.store.script = of_calls("get", Fault.OTHER_BYTES)
    try:
        world.life.copy_next()
    except WriterReplaced:
        pytest.fail("its own manifest, spoilt on the way, counts as another writer's")
    except CorruptCheckpoint:
        world.life.copy_all()
    assert world.life.tiered.uploaded_end == world.life.log.snapshot.active.base_offset


def test_a_list_that_lacked_the_newest_manifest_is_looked_at_again() -> None:
    world = World()
    world.moved()
    world.life.restart()
    name = world.names(".json")[-1]
    content = world.objects.objects.pop(name)
    with pytest.raises(TierMismatch):
        world.life.tiered.settle()
    world.objects.objects[name] = content
    world.life.tiered.settle()


@pytest.mark.parametrize("fault", [Fault.OTHER_BYTES, Fault.HALF])
def test_an_answer_that_was_spoilt_once_is_asked_for_again(fault: Fault) -> None:
    for call in range(4):
        world = World()
        world.moved()
        world.store.script = of_calls("get_range", *[None] * call, fault)
        for wanted in range(NOW - 9000, NOW + 9000, 500):
            found = world.life.log.search.first_at_or_after(wanted)
            expected = next((n for n, at in enumerate(world.times) if at >= wanted), None)
            assert (found and found.offset) == expected


@pytest.mark.parametrize("at", [30, 38, 50])
def test_a_search_never_believes_a_batch_whose_head_was_changed(at: int) -> None:
    world = World()
    world.moved()
    for key in world.names(RECORDS):
        data = bytearray(world.objects.objects[key])
        data[at] ^= 0x40  # in the largest time, or beside it
        world.objects.objects[key] = bytes(data)
    with pytest.raises(CorruptLog):
        world.life.log.search.first_at_or_after(min(world.times[:5]))
    with pytest.raises(CorruptLog):
        world.life.read(0)


def test_damage_heals_with_the_object() -> None:
    world = World()
    world.moved()
    key = world.names(RECORDS)[0]
    whole = world.objects.objects[key]
    world.objects.objects[key] = bytes(len(whole))
    for _ in range(3):
        with pytest.raises(CorruptLog):
            world.life.read(0)
    world.objects.objects[key] = whole
    assert world.life.read(0)


def test_lost_side_files_are_made_again_with_arrivals_that_are_marked_as_estimates() -> None:
    world = World()
    world.moved()
    for key in world.names(SIDE):
        del world.objects.objects[key]
    search = world.life.log.search
    for wanted in range(NOW - 9000, NOW + 9000, 500):
        found = search.first_at_or_after(wanted)
        expected = next((n for n, at in enumerate(world.times) if at >= wanted), None)
        assert (found and found.offset) == expected
    at = search.times_at(0)
    assert at is not None
    assert at.is_estimated
    assert search.first_at_or_after(0, clock=EARLIER) is not None
    assert world.life.read(0)


def test_of_a_segment_that_is_gone_nothing_is_read_as_empty() -> None:
    world = World()
    world.moved()
    tiered, log = world.life.tiered, world.life.log
    segment = log.snapshot.segments[0]
    tiered.forget(tiered.manifest.segments[:1])
    assert segment.away is not None
    indexes, rules = log.search.lookup
    with pytest.raises(CorruptLog, match="gone"):
        indexes.of(segment, segment.size_bytes, rules)
