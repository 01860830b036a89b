"""Compaction after a restore goes on where it was: what it has been over is not read again."""

from typing import Any

import pytest

from protocol.records.builder import build_batch
from storage.cleaner.cleaner import Cleaning
from storage.directory.topics_file import CatalogState, TopicEntry, render
from storage.env import Env
from storage.files.layout import CLEANER_HORIZONS_FILE, CLEANER_OFFSETS_FILE
from storage.log.compaction_state import CleanPart
from storage.retention.cleanability import CleanReason
from storage.tier.card import claim
from storage.tier.cluster_picture import TOPICS_FILE, Content, PictureWriter
from storage.tier.manifests.manifest import apply, render_full
from storage.tier.restore import Order, restore
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng
from tests.support.records.cleaning import COMPACT, MEMORY
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.restore_world import CLUSTER_ID, LOG_DIR, partitions_in
from tests.support.tier.tier_crash_world import read_rows
from tests.support.tier.tier_life import NOW, TOPIC_ID, TierLife

KEYS = [b"k%d" % number for number in range(4)]


def cleaned_life(**settings: Any) -> TierLife:
    """A compacted log of which the store has all that is closed, as the cleaner left it."""
    store = MemoryStore()
    life = TierLife(store, cleanup_policy=COMPACT, segment_bytes=400, **settings)
    life.create()
    fill(life, 40)
    life.copy_all()
    life.clean(life.verdict())
    life.copy_all()
    topics = {"t": TopicEntry(TOPIC_ID, 1)}
    claim(store, CLUSTER_ID)
    files = {TOPICS_FILE: render(CatalogState(topics)).decode()}
    PictureWriter(store, life.clock).write_if_changed(Content(CLUSTER_ID, 1, files))
    return life


def fill(life: TierLife, count: int, *, tombstones: bool = False) -> None:
    """Closed segments of records of few keys."""
    for number in range(count):
        put(life, KEYS[number % len(KEYS)], None if tombstones else b"%d" % number * 15)
    life.log.roll()
    life.sync()


def put(life: TierLife, key: bytes, value: bytes | None) -> None:
    batch = build_batch([(NOW, key, value)])
    life.log.append(memoryview(batch), acks_all=True, leader_epoch=0)


def restored(life: TierLife, *, at_once: bool, **settings: Any) -> TierLife:
    fs = SimFileSystem(clock=life.clock)
    env = Env(life.clock, fs, SeededRng(5))
    assert life.store is not None
    restore(env, life.store, Order(LOG_DIR, partitions_in, None, lambda topic: at_once))
    store = None if at_once else life.store
    usual = {"cleanup_policy": COMPACT, "segment_bytes": 400}
    return TierLife(store, fs=fs, clock=life.clock, **usual | settings)


def run_over(life: TierLife) -> Cleaning:
    """A run, and what it reads."""
    env = Env(life.clock, life.fs, SeededRng(1))
    run = Cleaning(life.log, life.verdict(), MEMORY, env, life.tiered if life.remote else None)
    for part in run.slices():
        if part.in_turn is not None:
            part.in_turn()
    return run


@pytest.mark.parametrize("at_once", [False, True])
def test_nothing_is_due_after_a_restore(*, at_once: bool) -> None:
    life = cleaned_life()
    again = restored(life, at_once=at_once)
    verdict = again.verdict()
    assert verdict.because is CleanReason.CLEAN
    assert verdict.first_dirty == life.verdict().first_dirty == again.log.snapshot.log_end_offset
    assert read_rows(again.log) == read_rows(life.log)


@pytest.mark.parametrize("at_once", [False, True])
def test_keys_are_noted_of_what_came_later_alone(*, at_once: bool) -> None:
    life = cleaned_life()
    fill(life, 4)
    life.copy_all()
    again = restored(life, at_once=at_once)
    verdict = again.verdict()
    assert verdict.first_dirty == life.verdict().first_dirty
    all_bytes = verdict.clean_bytes + verdict.cleanable_bytes
    assert verdict.clean_bytes > verdict.cleanable_bytes > 0
    read = run_over(again).stats.bytes_read
    assert read == verdict.cleanable_bytes + all_bytes, (
        "keys of the new ones, and one pass over all"
    )


def test_tombstones_that_stayed_go_when_they_are_due() -> None:
    life = cleaned_life(delete_retention_ms=1000)
    fill(life, 4, tombstones=True)
    life.copy_all()
    life.clean(life.verdict())
    life.copy_all()
    again = restored(life, at_once=True, max_compaction_lag_ms=100_000)
    assert again.verdict().because is CleanReason.CLEAN
    again.clock.advance(5000)
    assert again.verdict().because is CleanReason.HORIZON


def test_a_run_that_changed_nothing_is_told_too() -> None:
    life = cleaned_life()
    put(life, b"another", b"1")
    life.log.roll()
    life.sync()
    life.copy_all()
    before = life.tiered.manifest
    life.clean(life.verdict())
    life.copy_all()
    after = life.tiered.manifest
    assert after.segments[-1] == before.segments[-1]
    assert after.cleaned == CleanPart(life.verdict().first_dirty)
    assert apply("", None, render_full(after)) == after


def test_segments_of_a_run_that_has_not_ended_are_dirty_and_whole() -> None:
    """Offsets are missing behind what is known to be clean, and nothing is lost for that."""
    life = cleaned_life()
    known = life.tiered.manifest.cleaned
    fill(life, 20)
    life.manager.bury(life.log, run_over(life).replaced)  # killed before it is noted
    life.restart()
    life.copy_all()
    assert life.tiered.manifest.cleaned == known
    again = restored(life, at_once=True)
    assert read_rows(again.log) == read_rows(life.log)
    assert again.verdict().first_dirty == life.verdict().first_dirty


def test_where_it_is_not_known_all_is_dirty() -> None:
    life = cleaned_life()
    assert isinstance(life.store, MemoryStore)
    key = max(key for key in life.store.objects if "manifest" in key)
    manifest = life.tiered.manifest._replace(cleaned=None)
    life.store.objects[key] = render_full(manifest)
    again = restored(life, at_once=True)
    assert again.verdict().first_dirty == 0
    assert read_rows(again.log) == read_rows(life.log)
    names = {each.name for each in again.fs.list_dir(LOG_DIR)}
    assert CLEANER_HORIZONS_FILE in names, "made by the start"
    assert CLEANER_OFFSETS_FILE in names
