"""A data directory out of the store alone: the same records and the same answers."""

import random

import pytest

from protocol.errors import KafkaError
from protocol.records.builder import build_batch
from storage.errors import CorruptCheckpoint, CorruptLog, DirectoryLocked
from storage.files.layout import LOCK_FILE, RESTORING_FILE, SNAPSHOT
from storage.log.log import Log
from storage.producers.leader_epochs import EpochStart
from storage.search.search_clock import ARRIVAL, EARLIER, RECORD
from storage.tier.card import ForeignTier, NoTier, claim
from storage.tier.cluster_picture import TOPICS_FILE
from storage.tier.manifests.manifest import Change
from storage.tier.marked_directory import RestoreRefused
from storage.tier.names import CARD, CLUSTER, numbered
from storage.tier.port import StoreError
from storage.tier.tiered_log import TierMismatch
from tests.support.records.aborting_logs import Author
from tests.support.records.cleaning import COMPACT
from tests.support.records.logs import LOG_PATH, append, append_bytes, make_durable, records_of
from tests.support.tier.restore_world import (
    LOG_DIR,
    clock_of,
    fresh_env,
    restore_into,
    restored,
    started,
    take_picture,
)
from tests.support.tier.tier_world import KEYS, TierWorld

T0 = 1_700_000_000_000


def fill(world: TierWorld, count: int = 40, seed: int = 1) -> None:
    """Batches with times in disorder, all of them in closed segments."""
    dice = random.Random(seed)
    for _ in range(count):
        times = [T0 + dice.randrange(-10_000, 10_000) for _ in range(dice.randint(1, 5))]
        append(world.log, *times, value=dice.randbytes(100))
        clock_of(world).advance(50)
    world.log.roll()
    make_durable(world.log)


def copied(seed: int = 1) -> TierWorld:
    """A log of which the store has everything, and a picture of its topics."""
    world = TierWorld()
    fill(world, seed=seed)
    world.copy_all()
    take_picture(world)
    return world


def content(world: TierWorld) -> list[tuple[int, int, bytes]]:
    return [(each.offset, each.timestamp, bytes(each.value or b"")) for each in world.records()]


def damage(world: TierWorld, key: str, position: int = -20) -> None:
    data = bytearray(world.store.objects[key])
    data[position] ^= 1
    world.store.objects[key] = bytes(data)


def test_records_are_read_from_the_store() -> None:
    world = copied()
    again = restored(world)
    snapshot = again.log.snapshot
    assert snapshot.log_start_offset == 0
    assert snapshot.log_end_offset == snapshot.local_start_offset
    assert snapshot.log_end_offset == world.log.snapshot.log_end_offset
    assert content(again) == content(world)


def test_no_record_is_read_before_it_is_asked_for() -> None:
    world = copied()
    world.store.asked.clear()
    restore_into(fresh_env(world), world.store)
    assert world.store.asked.pop("get_range") == 1, "the producers of the end"
    manifests = sum("/manifest/" in key for key in world.store.objects)
    assert world.store.asked.pop("get") == manifests + 2, "and the card, the picture"
    assert world.store.asked == {"list": 3}, "nothing is written"


@pytest.mark.parametrize("clock", [RECORD, ARRIVAL, EARLIER])
def test_searches_by_time_find_the_same(clock: object) -> None:
    world = copied()
    again = restored(world)
    assert again.log.search.first_with_largest() == world.log.search.first_with_largest()
    for wanted in range(T0 - 12_000, T0 + 12_000, 371):
        found = again.log.search.first_at_or_after(wanted, clock=clock)  # type: ignore[arg-type]
        assert found == world.log.search.first_at_or_after(wanted, clock=clock)  # type: ignore[arg-type]


def test_aborted_transactions_are_known() -> None:
    world = TierWorld()
    Author(world.log, random.Random(3)).write(120)
    clock_of(world).advance(50)
    world.copy_all()
    take_picture(world)
    again = restored(world)
    end = world.log.snapshot.log_end_offset
    assert again.log.snapshot.last_stable_offset == end
    for offset in range(end):
        again.read_from(offset)
        assert again.log.search.aborted(offset, end) == world.log.search.aborted(offset, end)


def test_what_was_deleted_stays_deleted() -> None:
    world = copied()
    world.log.delete_records(17)
    world.tiered.expire()
    again = restored(world)
    assert again.log.snapshot.log_start_offset == 17
    assert content(again) == content(world)


def test_offsets_that_were_lost_come_again_in_another_epoch() -> None:
    world = copied()
    end = world.tiered.uploaded_end
    append(world.log, T0, value=b"never copied")
    again = restored(world)
    assert again.log.snapshot.log_end_offset == end
    assert again.log.epochs.entries == (EpochStart(0, 0), EpochStart(1, end))
    assert again.log.leader_epoch == 1
    assert again.log.epochs.end_offset_of(0, end).end_offset == end


def write(log: Log, sequence: int) -> bool:
    """A batch of an idempotent producer; whether it is one that was sent before."""
    batch = build_batch([(T0, None, b"x")], producer_id=5, producer_epoch=0, base_sequence=sequence)
    return append_bytes(log, batch).duplicate


@pytest.mark.parametrize("at_once", [False, True])
def test_producers_go_on_with_their_next_sequence(*, at_once: bool) -> None:
    world = TierWorld()
    for sequence in range(10):
        write(world.log, sequence)
    world.log.roll()
    world.copy_all()
    take_picture(world)
    env = fresh_env(world)
    restore_into(env, world.store, is_local=lambda topic: at_once)
    log = started(env, None if at_once else world.store).logs[KEYS.topic, KEYS.partition]
    assert write(log, 9)
    with pytest.raises(KafkaError, match="11"):
        write(log, 11)
    assert not write(log, 10)


def test_a_restored_log_is_copied_on_and_restored_again() -> None:
    world = copied()
    again = restored(world)
    fill(again, seed=2)
    assert again.copy_all()
    third = restored(again)
    assert content(third) == content(again)
    assert len(content(third)) > len(content(world))


def test_the_topics_are_as_they_were_at_a_time() -> None:
    world = copied()
    first = clock_of(world).now_ms()
    before = content(world)
    clock_of(world).advance(1000)
    fill(world, seed=2)
    world.copy_all()
    assert content(restored(world, first)) == before
    assert content(restored(world, clock_of(world).now_ms())) == content(world)
    assert content(restored(world)) == content(world)
    with pytest.raises(RestoreRefused, match="from that time or before"):
        restored(world, T0 - 1)


def test_a_log_of_an_earlier_time_is_not_copied_over_the_later_one() -> None:
    world = copied()
    first = clock_of(world).now_ms()
    clock_of(world).advance(1000)
    fill(world, seed=2)
    world.copy_all()
    before = dict(world.store.objects)
    again = restored(world, first)
    append(again.log, T0)
    again.log.roll()
    with pytest.raises(TierMismatch):
        again.copy_all()
    assert world.store.objects == before


def test_topics_of_which_nothing_was_copied_are_said_to_be_empty() -> None:
    world = TierWorld()
    append(world.log, T0)
    take_picture(world)
    env = fresh_env(world)
    done = restore_into(env, world.store)
    assert [(each.keys, each.manifest) for each in done.partitions] == [(KEYS, None)]
    assert not env.fs.exists(LOG_PATH)
    assert env.fs.exists(f"{LOG_DIR}/{TOPICS_FILE}")


# --- all of it at once ---


def test_a_directory_with_all_segments_needs_no_store() -> None:
    world = copied()
    world.log.delete_records(3)
    world.tiered.expire()
    env = fresh_env(world)
    restore_into(env, world.store, is_local=lambda topic: True)
    manager = started(env)
    assert manager.damage == []
    log = manager.logs[KEYS.topic, KEYS.partition]
    assert log.corruption is None
    assert log.topic_id == KEYS.topic_id
    assert log.snapshot.log_start_offset == 3
    assert log.snapshot.log_end_offset == world.tiered.uploaded_end
    found = [(each.offset, each.timestamp, bytes(each.value or b"")) for each in records_of(log)]
    assert found == content(world)
    for wanted in range(T0 - 12_000, T0 + 12_000, 371):
        for clock in (RECORD, ARRIVAL, EARLIER):
            expected = world.log.search.first_at_or_after(wanted, clock=clock)
            assert log.search.first_at_or_after(wanted, clock=clock) == expected


def test_aborted_transactions_come_at_once_too() -> None:
    world = TierWorld()
    Author(world.log, random.Random(3)).write(120)
    clock_of(world).advance(50)
    world.copy_all()
    take_picture(world)
    env = fresh_env(world)
    restore_into(env, world.store, is_local=lambda topic: True)
    log, end = started(env).logs[KEYS.topic, KEYS.partition], world.log.snapshot.log_end_offset
    assert log.snapshot.last_stable_offset == log.snapshot.log_end_offset == end
    for offset in range(end):
        assert log.search.aborted(offset, end) == world.log.search.aborted(offset, end)


def test_segments_that_came_at_once_are_known_to_the_tier_again() -> None:
    world = copied()
    env = fresh_env(world)
    restore_into(env, world.store, is_local=lambda topic: True)
    again = TierWorld(env)
    again.store = world.store
    again.open()
    assert again.copy_all() == []
    assert again.tiered.uploaded_end == world.tiered.uploaded_end


def test_segments_that_came_at_once_may_go_to_another_store() -> None:
    world = copied()
    first = clock_of(world).now_ms()
    clock_of(world).advance(1000)
    fill(world, seed=2)
    world.copy_all()
    env = fresh_env(world)
    restore_into(env, world.store, first, is_local=lambda topic: True)
    again = TierWorld(env)
    end = again.log.snapshot.log_end_offset
    assert 0 < end < world.log.snapshot.log_end_offset
    assert again.copy_all()
    assert again.tiered.uploaded_end == end
    assert content(again) == content(world)[:end]


def test_the_end_stays_where_compaction_has_left_no_record() -> None:
    world = copied()
    row = world.tiered.manifest.segments[-1]
    longer = row._replace(last_offset=row.last_offset + 5)
    world.tiered._change(Change((longer,), frozenset((row.unique,))))
    env = fresh_env(world)
    restore_into(env, world.store, is_local=lambda topic: True)
    log = started(env, cleanup_policy=COMPACT).logs[KEYS.topic, KEYS.partition]
    assert log.snapshot.log_end_offset == longer.end_offset


def test_a_changed_byte_of_any_file_is_noticed() -> None:
    world = copied()
    row = world.tiered.manifest.segments[1]
    for suffix, kind in ((".log", ".log"), (".index", ".side"), (".zones", ".side")):
        key = KEYS.segment(row.base_offset, row.unique, kind)
        sound = world.store.objects[key]
        damage(world, key, row.parts[suffix].position)
        with pytest.raises(CorruptLog, match="not what was copied"):
            restore_into(fresh_env(world), world.store, is_local=lambda topic: True)
        world.store.objects[key] = sound


# --- refusals ---


def test_a_changed_byte_of_what_names_the_records_is_noticed() -> None:
    world = copied()
    for key in (CARD, numbered(CLUSTER, 1), KEYS.manifest(1), KEYS.manifest(2)):
        sound = world.store.objects[key]
        damage(world, key)
        with pytest.raises(CorruptCheckpoint):
            restored(world)
        world.store.objects[key] = sound


def test_a_spoilt_answer_is_asked_for_again() -> None:
    world = copied()
    get, asked = world.store.get_range, set()

    def spoils(key: str, position: int, size: int) -> bytes:
        data = get(key, position, size)
        is_first = (key, position) not in asked
        asked.add((key, position))
        return bytes(size) if is_first else data

    world.store.get_range = spoils  # type: ignore[method-assign]
    env = fresh_env(world)
    restore_into(env, world.store, is_local=lambda topic: True)
    log = started(env).logs[KEYS.topic, KEYS.partition]
    assert len(records_of(log)) == len(content(world))


def test_lost_objects_are_noticed_without_reading_them() -> None:
    world = copied()
    row = world.tiered.manifest.segments[2]
    for kind in (".log", ".side"):
        key = KEYS.segment(row.base_offset, row.unique, kind)
        sound = world.store.objects.pop(key)
        with pytest.raises(CorruptLog, match="lost this object"):
            restored(world)
        world.store.objects[key] = sound[:-1]
        with pytest.raises(CorruptLog, match="bytes, "):
            restored(world)
        world.store.objects[key] = sound
    del world.store.objects[KEYS.manifest(2)]
    with pytest.raises(CorruptCheckpoint, match="missing before it"):
        restored(world)


def test_changed_producers_are_noticed() -> None:
    world = copied()
    row = world.tiered.manifest.segments[-1]
    at = row.parts[SNAPSHOT].position
    damage(world, KEYS.segment(row.base_offset, row.unique, ".side"), at)
    with pytest.raises(CorruptLog, match=r"its \.snapshot is not what was copied"):
        restored(world)


def test_only_an_empty_directory_is_restored_into() -> None:
    world = copied()
    before = world.env.fs.fingerprint()  # type: ignore[attr-defined]
    with pytest.raises(RestoreRefused, match="it is not empty, there is t-0"):
        restore_into(world.env, world.store)
    world.env.fs.remove(f"{LOG_DIR}/{LOCK_FILE}")
    assert world.env.fs.fingerprint() == before  # type: ignore[attr-defined]
    env = fresh_env(world)
    env.fs.make_dir(f"{LOG_DIR}/lost+found")
    lock = env.fs.lock(f"{LOG_DIR}/{LOCK_FILE}")
    with pytest.raises(DirectoryLocked):
        restore_into(env, world.store)
    lock.release()
    restore_into(env, world.store)


def test_a_place_without_a_tier_is_refused() -> None:
    world = TierWorld()
    with pytest.raises(NoTier):
        restored(world)
    claim(world.store, "cluster")
    with pytest.raises(RestoreRefused, match="no list of topics"):
        restored(world)


def test_a_picture_of_another_cluster_is_refused() -> None:
    world = copied()
    del world.store.objects[CARD]
    claim(world.store, "other")
    with pytest.raises(ForeignTier):
        restored(world)


def test_a_store_that_fails_leaves_a_directory_that_is_begun_anew() -> None:
    world = copied()
    env, get = fresh_env(world), world.store.get_range

    def fails(key: str, position: int, size: int) -> bytes:
        raise StoreError(key, "get", "time-out")

    world.store.get_range = fails  # type: ignore[method-assign]
    with pytest.raises(StoreError):
        restore_into(env, world.store)
    assert env.fs.exists(f"{LOG_DIR}/{RESTORING_FILE}")
    world.store.get_range = get  # type: ignore[method-assign]
    restore_into(env, world.store)
    assert not env.fs.exists(f"{LOG_DIR}/{RESTORING_FILE}")
    assert started(env, world.store).logs
