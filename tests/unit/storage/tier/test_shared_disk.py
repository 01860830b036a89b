"""The cache on a disk that the logs need as well: it takes what is left, and gives it back."""

import random
import sys
from collections.abc import Callable
from functools import partial

import pytest

from storage.env import parent_of
from storage.errors import DirectoryLocked, DiskError
from storage.tier.object_cache import BLOCK_BYTES, LOCK_FILE, ObjectCache, least_bytes
from tests.support.disk.simdisk import SimFileSystem

DISK_BLOCKS, FREE_BLOCKS = 64, 16


class SharedDisk:
    """A disk of 64 blocks, of which 16 are to be left free, and a cache of any size."""

    def __init__(self, limit_blocks: int = 1000) -> None:
        self.fs = SimFileSystem(capacity_bytes=DISK_BLOCKS * BLOCK_BYTES)
        self.fs.make_dir("/data")
        self.logs = self.fs.open("/data/log", create=True)
        self.cache = ObjectCache(self.fs, "/cache", limit_blocks * BLOCK_BYTES)
        self.cache.open()
        self.look()

    def look(self, disk_bytes: int = DISK_BLOCKS * BLOCK_BYTES) -> None:
        self.cache.leave_free(FREE_BLOCKS * BLOCK_BYTES, disk_bytes)

    def read(self, *keys: int) -> None:
        """Brings objects of a block."""
        for key in keys:
            cached = self.cache.make(str(key), BLOCK_BYTES)
            self.cache.fill(cached, 0, b"x" * BLOCK_BYTES)

    def write(self, blocks: int) -> None:
        """The logs grow."""
        self.logs.write_at(self.logs.size(), b"x" * (blocks * BLOCK_BYTES))

    @property
    def here(self) -> list[int]:
        return [key for key in range(200) if self.cache.find(str(key)) is not None]

    @property
    def free_blocks(self) -> int:
        return self.fs.free_bytes("/") // BLOCK_BYTES


def test_it_takes_no_more_than_is_to_spare() -> None:
    disk = SharedDisk()
    disk.read(*range(100))
    assert disk.free_blocks == FREE_BLOCKS
    assert disk.here == list(range(100 - DISK_BLOCKS + FREE_BLOCKS, 100)), "the oldest went first"


def test_it_gives_back_what_the_logs_come_to_need() -> None:
    disk = SharedDisk()
    disk.read(*range(40))
    disk.cache.find("0")
    disk.write(20)
    disk.look()
    assert disk.free_blocks == FREE_BLOCKS
    assert disk.here == [0, *range(13, 40)], "the one that was used last stays"


@pytest.mark.parametrize(
    ("disk_mib", "least_mib"), [(32, 8), (64, 16), (100, 16), (128, 16), (256, 32), (8000, 1000)]
)
def test_an_eighth_of_the_disk_is_for_readers_but_of_a_small_one_more(
    disk_mib: int, least_mib: int
) -> None:
    assert least_bytes(disk_mib << 20) == least_mib << 20


def test_it_keeps_some_of_the_disk_for_its_readers() -> None:
    disk = SharedDisk()
    disk.read(*range(20))
    disk.write(42)
    disk.look()
    least = least_bytes(DISK_BLOCKS * BLOCK_BYTES) // BLOCK_BYTES
    assert len(disk.here) == least
    disk.read(50, 51)
    assert len(disk.here) == least
    assert {50, 51} <= set(disk.here)


def test_its_own_limit_holds_as_well() -> None:
    disk = SharedDisk(limit_blocks=4)
    disk.read(*range(9))
    assert disk.here == [5, 6, 7, 8]


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_disk_of_its_own_is_filled_to_the_limit(is_shared: bool) -> None:
    disk = SharedDisk(limit_blocks=60)
    disk.look(DISK_BLOCKS * BLOCK_BYTES + (0 if is_shared else 4096))
    disk.read(*range(70))
    assert len(disk.here) == (DISK_BLOCKS - FREE_BLOCKS if is_shared else 60)


def test_an_object_that_is_being_read_stays_whatever_others_need() -> None:
    disk = SharedDisk()
    cached = disk.cache.make("large", 20 * BLOCK_BYTES)
    disk.read(1)
    disk.cache.fill(cached, 0, b"x" * (20 * BLOCK_BYTES))
    disk.cache.find("large")
    disk.write(43)
    disk.look()
    assert disk.here == []
    assert disk.cache.find("large") is cached


@pytest.mark.parametrize("other", ["meta.properties", "orders-0/00000000000000000000.log", "7/1"])
def test_a_directory_with_anything_else_in_it_is_refused_and_all_of_it_stays(other: str) -> None:
    """A slip in `horolog.tier.cache.dir` must not cost the files that are there."""
    fs = SimFileSystem()
    fs.make_dir(parent_of(f"/cache/{other}"))
    for path in ("/cache/1", f"/cache/{other}"):
        fs.open(path, create=True)
    with pytest.raises(DiskError, match="which is no cache's"):
        ObjectCache(fs, "/cache", 1 << 30).open()
    assert fs.exists(f"/cache/{other}")
    assert fs.exists("/cache/1")


def test_a_directory_that_is_a_disk_of_its_own_is_emptied_and_used() -> None:
    fs = SimFileSystem()
    fs.make_dir("/cache/lost+found")
    for name in ("1", "20"):
        fs.open(f"/cache/{name}", create=True)
    ObjectCache(fs, "/cache", 1 << 30).open()
    assert sorted(each.name for each in fs.list_dir("/cache")) == [LOCK_FILE, "lost+found"]


def test_a_directory_is_one_broker_s_and_goes_to_the_next_when_it_ends() -> None:
    """Both would number their files alike, and serve what the other one wrote."""
    fs = SimFileSystem()
    first, second = (ObjectCache(fs, "/cache", 1 << 30) for _ in range(2))
    first.open()
    kept = first.make("an object", BLOCK_BYTES).path
    with pytest.raises(DirectoryLocked, match="another process"):
        second.open()
    assert fs.exists(kept)
    first.close()
    second.open()
    assert not fs.exists(kept)


def test_small_objects_are_bounded_by_their_number() -> None:
    """Each has an open file, and without one more the whole broker stands."""
    cache = ObjectCache(SimFileSystem(), "/cache", 1 << 30, most_files=10)
    cache.open()
    for key in range(50):
        cache.fill(cache.make(str(key), 100), 0, b"x" * 100)
        assert len(cache._files) <= 10
    assert [key for key in range(50) if cache.find(str(key)) is not None] == list(range(40, 50))


@pytest.mark.parametrize("limit_blocks", [1000, 40], ids=["with room", "full"])
def test_a_block_takes_as_many_steps_beside_many_objects_as_beside_few(limit_blocks: int) -> None:
    steps = []
    for objects in (41, 400):
        cache = ObjectCache(SimFileSystem(), "/cache", limit_blocks * 1000)
        cache.open()
        for key in range(objects):
            cache.fill(cache.make(str(key), 1000), 0, bytes(1000))
        last = cache.make("last", 1000)
        steps.append(steps_of(partial(cache.fill, last, 0, bytes(1000))))
    assert steps[0] == steps[1]


def steps_of(work: Callable[[], None]) -> int:
    """Calls that some work takes, of generators too."""
    count = 0

    def heard(*_: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(heard)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_what_it_has_is_counted_through_all_that_comes_and_goes() -> None:
    cache = ObjectCache(SimFileSystem(), "/cache", 8 * BLOCK_BYTES)
    cache.open()
    dice = random.Random(7)
    for _ in range(200):
        key = str(dice.randrange(12))
        match dice.randrange(4):
            case 0:
                cache.forget(key)
            case 1:
                gone = cache.make(key, 3 * BLOCK_BYTES)
                cache.forget(key)
                cache.fill(gone, 0, bytes(BLOCK_BYTES))
            case _:
                block = dice.randrange(3)
                cached = cache.make(key, 3 * BLOCK_BYTES)
                cache.fill(cached, block * BLOCK_BYTES, bytes(BLOCK_BYTES))
        there = [cache.find(str(each)) for each in range(12)]
        blocks = [(each, at) for each in there if each is not None for at in range(3)]
        here = sum(each.has(at * BLOCK_BYTES, 1) for each, at in blocks)
        assert cache.bytes_here == here * BLOCK_BYTES
        assert here <= 8
