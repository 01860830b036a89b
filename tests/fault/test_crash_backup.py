"""A back-up is cut off at every call of its place: a store's, or a disk's that loses its power.

After each: a restore has the last back-up that was complete, whole; a new run comes to its end; and
after its sweep the place has what that back-up names, and nothing else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from storage.backup.directory_store import INCOMING, DirectoryStore
from storage.directory.topics_file import partitions_in
from storage.env import Buffer
from storage.errors import StorageError
from storage.tier.cluster_picture import newest
from storage.tier.manifests.reading import read_newest
from storage.tier.names import RECORDS, SIDE, object_of
from storage.tier.port import ObjectStore
from tests.support.backup.backup_world import (
    KEYED,
    PLAIN,
    TOPICS,
    TRANSACTIONAL,
    BackupWorld,
    LogContent,
    Name,
    content_of,
    restored,
)
from tests.support.disk.simdisk import SimFileSystem, SimulatedCrash
from tests.support.tier.memory_store import MemoryStore

Contents = Mapping[Name, LogContent]


class DyingStore(MemoryStore):
    """Its client dies right before or right after one of its calls that change something."""

    def __init__(self, world: BackupWorld, objects: Mapping[str, bytes], dies_at: int) -> None:
        super().__init__(world.clock.now_ms)
        self.objects = dict(objects)
        self._left = dies_at

    def put_new(self, key: str, data: Buffer) -> None:
        self._step()
        super().put_new(key, data)
        self._step()

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        self._step()
        super().put_file(key, parts, size_bytes)
        self._step()

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:  # some of them may be gone
            self._step()
            super().delete([key])
        self._step()

    def _step(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise SimulatedCrash


def world_of(kinds: Sequence[str]) -> BackupWorld:
    world = BackupWorld({name: TOPICS[name] for name in kinds}, segment_bytes=300)
    world.fill_all(4)
    world.sync()
    return world


def go_on(world: BackupWorld) -> None:
    """Changes between two back-ups."""
    world.clock.advance(1000)
    if KEYED in world.topics:
        world.fill(8, KEYED)
        world.compact()
    world.fill_all(3)
    world.sync()
    if PLAIN in world.topics:
        world.retain_from(2)


def judge(world: BackupWorld, store: ObjectStore, complete: Sequence[Contents]) -> None:
    """`complete`: those that the newest back-up may have, none of them mixed."""
    found = content_of(restored(world, store)[0])
    assert found in complete
    world.back_up(store)
    world.clock.advance(1000)
    world.sweep(store)
    assert content_of(restored(world, store)[0]) == world.content()
    assert segments_in(store) == segments_named(store)


def segments_in(store: ObjectStore) -> set[str]:
    found = (each.key for each in store.list(""))
    return {key for key in found if (name := object_of(key)) is not None and name.unique}


def segments_named(store: ObjectStore) -> set[str]:
    picture = newest(store)
    assert picture is not None
    return {
        keys.segment(row.base_offset, row.unique, suffix)
        for keys in partitions_in(picture.content.files)
        if (manifest := read_newest(store, keys)) is not None
        for row in manifest.segments
        for suffix in (RECORDS, SIDE)
    }


@pytest.mark.parametrize("kinds", [(PLAIN,), (KEYED,), (TRANSACTIONAL, KEYED)])
def test_cut_off_at_every_call_of_a_store(kinds: Sequence[str]) -> None:
    world = world_of(kinds)
    store = MemoryStore(world.clock.now_ms)
    world.back_up(store)
    before = world.content()
    go_on(world)
    number, is_cut = 0, True
    while is_cut:
        number += 1
        dying, is_cut = DyingStore(world, store.objects, number), False
        try:
            world.back_up(dying)
            world.clock.advance(100)
            world.sweep(dying)
        except SimulatedCrash:
            is_cut = True
        left = MemoryStore(world.clock.now_ms)
        left.objects = dict(dying.objects)
        judge(world, left, (before, world.content()))
    assert number > 20


def test_the_first_one_is_cut_off_at_every_call() -> None:
    world = world_of((PLAIN, KEYED))
    for number in range(1, 200):
        dying = DyingStore(world, {}, number)
        try:
            world.back_up(dying)
        except SimulatedCrash:
            left = MemoryStore(world.clock.now_ms)
            left.objects = dict(dying.objects)
            if newest(left) is None:
                with pytest.raises(StorageError):
                    restored(world, left)
                world.back_up(left)
            judge(world, left, (world.content(),))
        else:
            break
    assert 20 < number < 199


def test_what_was_sent_is_not_sent_again() -> None:
    world = world_of((PLAIN,))
    whole = world.back_up(MemoryStore(world.clock.now_ms))
    dying = DyingStore(world, {}, 21)
    with pytest.raises(SimulatedCrash):
        world.back_up(dying)
    rest = world.back_up(dying)
    assert sum(each.sent.segments for each in rest.partitions) > 0
    assert sum(each.sent.segments for each in rest.partitions) < sum(
        each.sent.segments for each in whole.partitions
    )


def on_disk(fs: SimFileSystem) -> DirectoryStore:
    return DirectoryStore.for_writing(fs, "/backup")


@pytest.mark.parametrize("kinds", [(PLAIN,), (KEYED,)])
def test_the_disk_of_the_back_up_loses_its_power_at_every_call(kinds: Sequence[str]) -> None:
    world = world_of(kinds)
    disk = SimFileSystem(clock=world.clock)
    store = on_disk(disk)
    world.back_up(store)
    store.close()
    before = world.content()
    go_on(world)

    def run(fs: SimFileSystem) -> None:
        store = on_disk(fs)
        world.back_up(store)
        world.clock.advance(100)
        world.sweep(store)
        store.close()

    points = 0
    for number in calls_of(disk, run):
        dying = disk.after_kill()
        dying.crash_at = number
        with pytest.raises(SimulatedCrash):
            run(dying)
        points += 1
        for left in (dying.after_crash(number), dying.after_kill()):
            store = on_disk(left)
            judge(world, store, (before, world.content()))
            assert not left.exists(f"/backup/{INCOMING}") or not left.list_dir(
                f"/backup/{INCOMING}"
            )
            store.close()
    assert points > 40


def calls_of(disk: SimFileSystem, run: Callable[[SimFileSystem], None]) -> range:
    """Numbers of the calls that change something."""
    counted = disk.after_kill()
    run(counted)
    return range(1, counted.calls + 1)


@pytest.mark.parametrize("error", ["enospc", "eio"])
def test_every_call_of_the_disk_fails_once(error: str) -> None:
    world = world_of((PLAIN,))
    number = 0
    while True:
        number += 1
        fs = SimFileSystem(clock=world.clock)
        fs.fail_at = number, error
        try:
            store = on_disk(fs)
            world.back_up(store)
        except StorageError:
            fs.fail_at = None
            store = DirectoryStore(fs, "/backup") if fs.exists("/backup") else on_disk(fs)
            world.back_up(store)
            world.clock.advance(1000)
            world.sweep(store)
            assert content_of(restored(world, store)[0]) == world.content()
            assert segments_in(store) == segments_named(store)
        else:
            break
    assert number > 40
