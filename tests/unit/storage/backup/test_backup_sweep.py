"""Removal of old back-ups: what is kept can be restored, and what nothing needs is gone."""

from collections.abc import Sequence
from contextlib import suppress

import pytest

from storage.backup.sweep import Swept
from storage.errors import CorruptLog, StorageError
from storage.tier.names import PartitionKeys, number_of
from storage.tier.port import StoreThrottled
from tests.support.backup.backup_world import (
    DAY_MS,
    HOUR_MS,
    KEYED,
    PLAIN,
    TOPICS,
    BackupWorld,
    content_of,
    restored,
)
from tests.support.tier.memory_store import MemoryStore


@pytest.fixture
def world() -> BackupWorld:
    made = BackupWorld({name: TOPICS[name] for name in (PLAIN, KEYED)})
    made.fill_all(5)
    made.sync()
    return made


@pytest.fixture
def store(world: BackupWorld) -> MemoryStore:
    return MemoryStore(world.clock.now_ms)


def test_a_restore_goes_back_as_far_as_is_kept(world: BackupWorld, store: MemoryStore) -> None:
    history = []
    for _ in range(6):
        world.back_up(store)
        history.append((world.clock.now_ms(), world.content()))
        world.clock.advance(HOUR_MS)
        world.fill(6, KEYED)
        world.compact()
        world.fill(6)
        world.sync()
        world.sweep(store, keep_ms=2 * HOUR_MS + HOUR_MS // 2, orphan_age_ms=DAY_MS)
    for at_ms, content in history[-3:]:
        assert content_of(restored(world, store, at_ms)[0]) == content
        assert content_of(restored(world, store, at_ms + HOUR_MS // 2)[0]) == content
    for at_ms, _ in history[:-3]:
        with pytest.raises(StorageError, match="from that time or before"):
            restored(world, store, at_ms)
    assert content_of(restored(world, store)[0]) == history[-1][1]


def test_many_back_ups_do_not_grow(world: BackupWorld, store: MemoryStore) -> None:
    sizes = []
    for _ in range(150):
        world.back_up(store)
        world.clock.advance(HOUR_MS)
        world.fill(1)
        world.sync()
        world.retain_from(world.log(PLAIN).snapshot.log_end_offset - 3)
        world.sweep(store)
        sizes.append(len(store.objects))
    assert max(sizes) < 140
    world.back_up(store)
    assert content_of(restored(world, store)[0]) == world.content()


def test_a_deleted_topic_goes_with_the_last_back_up_that_has_it(
    world: BackupWorld, store: MemoryStore
) -> None:
    world.back_up(store)
    at_ms, before = world.clock.now_ms(), world.content()
    world.clock.advance(HOUR_MS)
    world.manager.delete_log(KEYED, 0)
    del world.topics[KEYED]
    world.write_top()
    world.back_up(store)
    world.sweep(store, keep_ms=2 * HOUR_MS)
    assert content_of(restored(world, store, at_ms)[0]) == before
    world.clock.advance(2 * DAY_MS)
    world.sweep(store, keep_ms=HOUR_MS, orphan_age_ms=DAY_MS)
    prefix = PartitionKeys(KEYED, TOPICS[KEYED].topic_id, 0).prefix
    assert not [key for key in store.objects if key.startswith(prefix)]


def test_what_another_one_sends_is_spared(world: BackupWorld, store: MemoryStore) -> None:
    world.back_up(store)
    world.clock.advance(1000)
    keys = PartitionKeys(PLAIN, TOPICS[PLAIN].topic_id, 0)
    key = keys.segment(900, "0" * 16, ".log")
    store.put_new(key, b"x")
    assert world.sweep(store, orphan_age_ms=HOUR_MS).objects == 0
    world.clock.advance(2 * HOUR_MS)
    assert world.sweep(store, orphan_age_ms=HOUR_MS).objects == 1
    assert key not in store.objects


def test_nothing_goes_where_manifests_cannot_be_read(
    world: BackupWorld, store: MemoryStore
) -> None:
    world.back_up(store)
    keys = PartitionKeys(PLAIN, TOPICS[PLAIN].topic_id, 0)
    store.objects[keys.manifest(1)] = b"{}"
    world.clock.advance(DAY_MS)
    swept = world.sweep(store)
    assert swept.objects == 0
    assert [each.partition(":")[0] for each in swept.unreadable] == ["plain-0"]
    with pytest.raises(StorageError):
        restored(world, store)


def test_nothing_goes_where_the_manifest_is_lost_that_all_others_need(
    world: BackupWorld, store: MemoryStore
) -> None:
    world.fill(20)
    world.sync()
    world.back_up(store)
    key = PartitionKeys(PLAIN, TOPICS[PLAIN].topic_id, 0).manifest(1)
    lost = store.objects.pop(key)
    world.clock.advance(2 * DAY_MS)
    swept = world.sweep(store, orphan_age_ms=HOUR_MS)
    assert swept.objects == 0
    assert [each.partition(":")[0] for each in swept.unreadable] == ["plain-0"]
    store.objects[key] = lost
    assert content_of(restored(world, store)[0]) == world.content()


class HalfRemovals(MemoryStore):
    """A store that removes every other one of the manifests that it is asked to remove, once."""

    has_failed = False

    def delete(self, keys: Sequence[str]) -> None:
        """As the port has it."""
        if self.has_failed or not keys or "/manifest/" not in keys[0]:
            super().delete(keys)
            return
        self.has_failed = True
        super().delete(keys[1::2])
        raise StoreThrottled(keys[0], "delete", "SlowDown")


def test_a_removal_that_was_done_in_part_is_gone_on_with(world: BackupWorld) -> None:
    store = HalfRemovals(world.clock.now_ms)
    while not store.has_failed:
        world.back_up(store)
        world.clock.advance(HOUR_MS)
        world.fill(1)
        world.sync()
        with suppress(StoreThrottled):
            world.sweep(store, keep_ms=0)
    swept = world.sweep(store, keep_ms=0)
    assert (swept.unreadable, swept.objects > 0) == ((), True)
    keys = PartitionKeys(PLAIN, TOPICS[PLAIN].topic_id, 0)
    numbers = [number_of(each.key) or 0 for each in store.list(keys.manifests)]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    world.back_up(store)
    assert content_of(restored(world, store)[0]) == world.content()


def test_a_lost_object_is_named(world: BackupWorld, store: MemoryStore) -> None:
    world.back_up(store)
    key = next(key for key in store.objects if key.endswith(".log"))
    store.delete([key])
    with pytest.raises(CorruptLog, match="lost this object"):
        restored(world, store)


def test_an_empty_place_has_nothing_to_remove(world: BackupWorld, store: MemoryStore) -> None:
    assert world.sweep(store) == Swept()
