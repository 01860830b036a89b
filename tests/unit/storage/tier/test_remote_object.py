"""Objects of many blocks: each block is checked as it comes, kept for a while, and fetched once."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from protocol.checksum import crc32c
from storage.errors import CorruptLog, DiskError
from storage.posix import PosixFileSystem
from storage.tier.manifests.manifest import FilePart
from storage.tier.object_cache import BLOCK_BYTES, ObjectCache, sums_of
from storage.tier.port import StoreError
from storage.tier.remote_object import Reach, RemoteObject, sums_anew
from tests.support.disk.mounts import tmpfs
from tests.support.disk.simdisk import SimFileSystem
from tests.support.tier.faulty_store import Fault, FaultyStore, always, in_order, of_calls
from tests.support.tier.memory_store import MemoryStore

SIZE = 5 * BLOCK_BYTES + 12_345
CONTENT = random.Random(1).randbytes(SIZE)
SUMS = sums_of(CONTENT)


class World:
    """One object in a store that fails by a script, and a cache."""

    def __init__(self, limit_bytes: int = 1 << 30, capacity_bytes: int | None = None) -> None:
        self.objects = MemoryStore()
        self.store = FaultyStore(self.objects, in_order())
        self.cache = ObjectCache(
            SimFileSystem(capacity_bytes=capacity_bytes), "/cache", limit_bytes
        )
        self.cache.open()
        self.reach = Reach(self.store, self.cache)
        self.renewed: list[str] = []

    def object(self, key: str = "a", sums: Callable[[], bytes] = lambda: SUMS) -> RemoteObject:
        """One whose content the store has."""
        self.objects.objects[key] = CONTENT
        return RemoteObject(self.reach, key, SIZE, lambda: self.renewed.append(key), sums)


def test_any_range_is_read_as_it_is_in_the_store() -> None:
    dice = random.Random(2)
    for limit in (1, 2 * BLOCK_BYTES, 1 << 30):
        world = World(limit)
        one, other = world.object("a"), world.object("b")
        for _ in range(25):
            at, size = dice.randrange(SIZE + 10), dice.choice((1, 100, BLOCK_BYTES, SIZE))
            file = dice.choice((one, other))
            assert file.read_at(at, size) == CONTENT[at : at + size]


def test_the_sums_of_parts_are_those_of_the_whole() -> None:
    parts = [CONTENT[at : at + 4 * BLOCK_BYTES] for at in range(0, SIZE, 4 * BLOCK_BYTES)]
    assert b"".join(map(sums_of, parts)) == SUMS
    assert len(SUMS) == 4 * 6
    world = World()
    world.object()
    assert sums_anew(world.reach, "a", FilePart(0, SIZE, crc32c(CONTENT))) == SUMS
    with pytest.raises(CorruptLog):
        sums_anew(world.reach, "a", FilePart(0, SIZE, crc32c(CONTENT) ^ 1))


@pytest.mark.parametrize("block", range(6))
def test_damage_of_a_block_is_seen_there_and_nowhere_else(block: int) -> None:
    world = World()
    file = world.object()
    spoilt = bytearray(CONTENT)
    spoilt[min((block + 1) * BLOCK_BYTES, SIZE) - 1] ^= 1
    world.objects.objects["a"] = bytes(spoilt)
    for number in range(6):
        at = number * BLOCK_BYTES
        if number == block:
            with pytest.raises(CorruptLog, match="not what was copied"):
                file.read_at(at, 10)
        else:
            assert file.read_at(at, 10) == CONTENT[at : at + 10]


@pytest.mark.parametrize("fault", [Fault.OTHER_BYTES, Fault.HALF])
def test_a_block_that_was_spoilt_on_its_way_is_asked_for_again(fault: Fault) -> None:
    world = World()
    file = world.object()
    world.store.script = of_calls("get_range", None, fault)
    assert file.read_at(0, SIZE) == CONTENT
    assert len(world.store.happened) == 1


def test_bytes_that_are_here_are_not_asked_for_again() -> None:
    world = World()
    file = world.object()
    assert file.here(0, 10) is None
    file.fetch(BLOCK_BYTES + 5, 10)
    assert file.here(BLOCK_BYTES, BLOCK_BYTES) is not None
    assert file.here(BLOCK_BYTES - 1, 2) is None
    assert world.cache.bytes_here == BLOCK_BYTES
    file.read_at(0, SIZE)
    del world.objects.objects["a"]
    assert file.read_at(0, SIZE) == CONTENT
    assert world.cache.bytes_here == SIZE
    assert world.renewed == ["a"]


def test_the_object_used_longest_ago_leaves_and_its_readers_read_on() -> None:
    world = World(2 * SIZE)
    one, other, third = (world.object(key) for key in "abc")
    slow = one.fetch(0, SIZE)
    other.fetch(0, SIZE)
    one.read_at(0, 1)
    third.fetch(0, SIZE)
    assert other.here(0, 1) is None
    assert one.here(0, SIZE) is slow
    other.fetch(0, SIZE)
    third.fetch(0, SIZE)
    assert one.here(0, 1) is None
    assert slow.read_at(0, SIZE) == CONTENT
    assert one.fetch(0, 1) is not slow
    assert world.renewed.count("a") == 2


def test_objects_of_which_nothing_comes_are_bounded_by_their_number() -> None:
    """Each has an open file: while the store is away, readers go through as many as there are."""
    cache = ObjectCache(SimFileSystem(), "/cache", 1 << 30, most_files=10)
    cache.open()
    objects = MemoryStore()
    store = FaultyStore(objects, always(Fault.LOST_BEFORE))
    reach = Reach(store, cache)
    files = [RemoteObject(reach, str(number), SIZE) for number in range(50)]
    for number, file in enumerate(files):
        objects.objects[str(number)] = CONTENT
        with pytest.raises(StoreError):
            file.read_at(0, 1)
        assert len(cache._files) <= 10
    store.script = in_order()
    assert files[0].read_at(0, SIZE) == CONTENT


def test_a_full_disk_makes_others_leave_and_then_says_so() -> None:
    world = World(capacity_bytes=SIZE + BLOCK_BYTES)
    world.object("a").fetch(0, SIZE)
    other = world.object("b")
    assert other.read_at(0, SIZE) == CONTENT
    assert world.cache.find("a") is None
    small = World(capacity_bytes=BLOCK_BYTES // 2)
    with pytest.raises(DiskError):
        small.object().read_at(0, 1)


def test_what_two_threads_bring_is_counted_once() -> None:
    world = World()
    cached = world.cache.make("a", SIZE)
    for _ in range(2):
        world.cache.fill(cached, 0, CONTENT[: 2 * BLOCK_BYTES])
    world.cache.fill(cached, 5 * BLOCK_BYTES, CONTENT[5 * BLOCK_BYTES :])
    assert world.cache.bytes_here == 2 * BLOCK_BYTES + 12_345


def test_an_object_is_read_through_a_smaller_cache() -> None:
    world = World(2 * BLOCK_BYTES)
    large = world.object()
    for at in range(0, SIZE, BLOCK_BYTES // 2):
        size = min(BLOCK_BYTES // 2, SIZE - at)
        assert large.read_at(at, size) == CONTENT[at : at + size]
        assert world.cache.bytes_here <= 2 * BLOCK_BYTES
    assert len(world.renewed) > 2, "what was known of its bytes is known of these alone"


def test_an_object_is_read_through_a_smaller_disk(tmp_path: Path) -> None:
    """A sparse file takes what it has: a real file system is needed to see it."""
    with tmpfs(tmp_path / "disk", f"{3 * BLOCK_BYTES}") as disk:
        cache = ObjectCache(PosixFileSystem(), str(disk.path / "cache"), 1 << 30)
        cache.open()
        store = MemoryStore()
        store.objects["a"] = CONTENT
        large = RemoteObject(Reach(store, cache), "a", SIZE, sums=lambda: SUMS)
        for at in range(0, SIZE, BLOCK_BYTES // 2):
            size = min(BLOCK_BYTES // 2, SIZE - at)
            assert large.read_at(at, size) == CONTENT[at : at + size]
        assert 0 < cache.bytes_here < 3 * BLOCK_BYTES
        with pytest.raises(DiskError, match="no room"):
            large.read_at(0, 4 * BLOCK_BYTES)
