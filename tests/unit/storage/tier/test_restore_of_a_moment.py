"""Restores of a tier to a moment, after the log has lost segments of then."""

from collections.abc import Callable

import pytest

from storage.directory.topics_file import CatalogState, TopicEntry, render
from storage.errors import CorruptLog
from storage.tier.card import claim
from storage.tier.cluster_picture import TOPICS_FILE, Content, PictureWriter
from storage.tier.manifests.manifest import render_full
from storage.tier.restore import Order, RestoredPartition, restore
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.cleaning import COMPACT
from tests.support.records.logs import append
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.tier_crash_world import read_rows
from tests.support.tier.tier_life import CLUSTER_ID, LOG_DIR, NOW, TierLife, partitions_in

HOUR_MS = 3_600_000
SEGMENTS = 6
"""Of one record each."""


def copied_life() -> TierLife:
    """Six segments, all copied an hour ago."""
    clock = SimClock(NOW)
    life = TierLife(MemoryStore(clock.now_ms), clock=clock)
    life.create()
    write(life, SEGMENTS)
    life.copy_all()
    note(life)
    clock.advance(HOUR_MS)
    return life


def compacted_life() -> TierLife:
    """Thirty records of three keys, all copied an hour ago."""
    clock = SimClock(NOW)
    life = TierLife(MemoryStore(clock.now_ms), clock=clock, cleanup_policy=COMPACT)
    life.create()
    overwrite(life)
    life.copy_all()
    note(life)
    clock.advance(HOUR_MS)
    return life


def write(life: TierLife, count: int) -> None:
    for _ in range(count):
        append(life.log, life.clock.now_ms(), value=b"x" * 300)
        life.log.roll()
        life.sync()


def overwrite(life: TierLife) -> None:
    """New values of each key, in closed segments."""
    for number in range(30):
        append(life.log, life.clock.now_ms(), key=b"%d" % (number % 3), value=b"x" * 100)
        life.clock.advance(1000)
    life.log.roll()
    life.sync()


def compact(life: TierLife) -> None:
    """A run of the cleaner, copied; the objects that it replaced stay for now."""
    life.clean(life.verdict())
    life.copy_all()
    life.clock.advance(HOUR_MS)


def note(life: TierLife, *, is_backup: bool = False) -> None:
    """The topic's name and id go to the store."""
    assert life.store is not None
    claim(life.store, CLUSTER_ID)
    files = {TOPICS_FILE: render(CatalogState({"t": TopicEntry(life.topic_id, 1)})).decode()}
    content, writer = Content(CLUSTER_ID, 1, files), PictureWriter(life.store, life.clock)
    if is_backup:
        writer.write_backup(content, life.clock.now_ms())
    else:
        writer.write_if_changed(content)


def restored_at(life: TierLife, at_ms: int | None) -> tuple[TierLife, RestoredPartition]:
    """The log on another disk, and what is said of it."""
    assert life.store is not None
    fs = SimFileSystem(clock=life.clock)
    env = sim_env(99, fs, life.clock)
    done = restore(env, life.store, Order(LOG_DIR, partitions_in, at_ms))
    again = TierLife(life.store, fs=fs, clock=life.clock, starts=500, **life.settings)
    return again, done.partitions[0]


def offsets(life: TierLife) -> list[int]:
    return list(read_rows(life.log))


@pytest.mark.parametrize(
    "remove", [TierLife.remove_before, lambda life, offset: life.log.delete_records(offset)]
)
def test_what_was_deleted_since_then_is_gone_and_the_log_begins_behind_it(
    remove: Callable[[TierLife, int], object],
) -> None:
    life = copied_life()
    an_hour_ago = life.clock.now_ms() - 1
    write(life, 2)
    life.copy_all()
    remove(life, 2)
    life.expire()
    again, partition = restored_at(life, an_hour_ago)
    assert offsets(again) == [2, 3, 4, 5]
    assert again.log.snapshot.log_start_offset == 2
    assert (partition.starts_later, partition.is_later) == (True, False)
    assert partition.knows_producers
    assert not restored_at(life, life.clock.now_ms())[1].starts_later


def test_what_was_deleted_since_then_comes_back_while_its_objects_are_there() -> None:
    life = copied_life()
    an_hour_ago = life.clock.now_ms() - 1
    life.remove_before(2)
    gone = life.tiered.expire()
    assert len(gone) == 2
    again, partition = restored_at(life, an_hour_ago)
    assert offsets(again) == list(range(SEGMENTS))
    assert not partition.starts_later
    life.delete(gone[:1])
    again, partition = restored_at(life, an_hour_ago)
    assert offsets(again) == list(range(1, SEGMENTS)), "from where the store has everything"
    assert partition.starts_later


def test_a_log_of_which_all_was_deleted_since_then_goes_on_at_its_end_of_then() -> None:
    life = copied_life()
    an_hour_ago = life.clock.now_ms() - 1
    write(life, 2)
    life.copy_all()
    life.remove_before(SEGMENTS + 2)
    life.expire()
    again, partition = restored_at(life, an_hour_ago)
    snapshot = again.log.snapshot
    assert (snapshot.log_start_offset, snapshot.log_end_offset) == (SEGMENTS, SEGMENTS)
    assert partition.starts_later
    assert not partition.knows_producers
    assert append(again.log, life.clock.now_ms()).base_offset == SEGMENTS


def test_an_object_that_the_newest_manifest_names_is_lost_whatever_the_moment() -> None:
    life = copied_life()
    an_hour_ago = life.clock.now_ms() - 1
    write(life, 1)
    life.copy_all()
    life.remove_before(2)
    life.expire()
    assert isinstance(life.store, MemoryStore)
    for row in (life.tiered.manifest.segments[2], life.tiered.manifest.segments[0]):
        for key in life.tiered.objects_of(row):
            del life.store.objects[key]
        for at_ms in (an_hour_ago, None):
            with pytest.raises(CorruptLog, match="lost this object"):
                restored_at(life, at_ms)


def test_a_lost_object_before_the_log_start_is_damage_while_it_is_named() -> None:
    life = copied_life()
    assert isinstance(life.store, MemoryStore)
    manifest = life.tiered.manifest
    key = max(key for key in life.store.objects if "manifest" in key)
    life.store.objects[key] = render_full(manifest._replace(log_start_offset=1))
    del life.store.objects[life.tiered.objects_of(manifest.segments[0])[0]]
    with pytest.raises(CorruptLog, match="lost this object"):
        restored_at(life, life.clock.now_ms())


def test_a_back_up_keeps_what_it_needs_so_that_nothing_may_be_missing() -> None:
    life = copied_life()
    note(life, is_backup=True)
    its_moment = life.clock.now_ms()
    life.clock.advance(HOUR_MS)
    life.remove_before(2)
    life.expire()
    with pytest.raises(CorruptLog, match="lost this object"):
        restored_at(life, its_moment)


def test_a_log_that_was_compacted_since_then_is_as_of_the_next_state_that_is_whole() -> None:
    """Segments of the first run are still there, those that it replaced are not."""
    life = compacted_life()
    an_hour_ago = life.clock.now_ms() - 1
    assert len(offsets(restored_at(life, an_hour_ago)[0])) == 30
    compact(life)
    first_run, after_it = life.tiered.manifest, read_rows(life.log)
    life.expire()
    overwrite(life)
    compact(life)
    assert read_rows(life.log) != after_it
    again, partition = restored_at(life, an_hour_ago)
    assert partition.manifest == first_run
    assert read_rows(again.log) == after_it
    assert (partition.starts_later, partition.is_later) == (False, True)


def test_a_log_whose_later_states_are_gone_too_is_as_of_the_newest() -> None:
    life = compacted_life()
    an_hour_ago = life.clock.now_ms() - 1
    for _ in range(3):
        overwrite(life)
        life.copy_all()
        compact(life)
        life.expire()
    again, partition = restored_at(life, an_hour_ago)
    assert partition.manifest is not None
    assert partition.manifest.number == life.tiered.manifest.number
    assert read_rows(again.log) == read_rows(life.log)
    assert partition.is_later


def test_objects_of_compacted_segments_that_are_still_there_give_the_very_state_of_then() -> None:
    life = compacted_life()
    an_hour_ago = life.clock.now_ms() - 1
    before = read_rows(life.log)
    compact(life)
    again, partition = restored_at(life, an_hour_ago)
    assert read_rows(again.log) == before
    assert not partition.is_later
