"""Copies of a log that compaction rewrites, and stays in its directory: topics of state."""

from dataclasses import replace

import pytest

from protocol.records.builder import build_batch
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.cleaner.cleaner import Cleaning
from storage.env import Env
from storage.files.layout import LOG, TIME_INDEX
from storage.log.compaction_state import CleanPart
from storage.tier.mirror import Closed, Mirror, SameCopies
from storage.tier.port import ObjectStore, StoreError
from tests.support.disk.simenv import SeededRng
from tests.support.records.cleaning import COMPACT, MEMORY, verdict
from tests.support.tier.faulty_store import Fault, FaultyStore, of_calls
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.tier_life import NOW, TierLife


def life_with_records(count: int = 20, store: ObjectStore | None = None) -> TierLife:
    life = TierLife(store or MemoryStore(), cleanup_policy=COMPACT, segment_bytes=400)
    life.create()
    for number in range(count):
        put(life, b"k%d" % (number % 3), b"%d" % number * 20)
    life.sync()
    return life


def put(life: TierLife, key: bytes, value: bytes) -> None:
    batch = build_batch([(NOW, key, value)])
    life.log.append(memoryview(batch), acks_all=True, leader_epoch=0)


def mirror(life: TierLife) -> int:
    count = 0
    while life.mirror_next() is not None:
        count += 1
    return count


def run_over(life: TierLife) -> Cleaning:
    env = Env(life.clock, life.fs, SeededRng(1))
    return Cleaning(life.log, verdict(life.log, env, CleanerOffsets(env.fs, "/data")), MEMORY, env)


def test_a_start_finds_its_copies_and_makes_none_again() -> None:
    life = life_with_records()
    assert mirror(life) > 2
    before = life.tiered.manifest
    life.restart()
    assert mirror(life) == 0
    assert life.tiered.manifest == before


def test_a_segment_of_the_same_size_with_other_bytes_is_no_copy() -> None:
    life = life_with_records()
    mirror(life)
    row, segment = life.tiered.manifest.segments[0], life.log.snapshot.segments[0]
    other = {**row.parts, LOG: row.parts[LOG]._replace(crc=row.parts[LOG].crc ^ 1)}
    closed = Closed(segment, row.end_offset)
    assert SameCopies().has(closed, {0: row})
    assert not SameCopies().has(closed, {0: row._replace(parts=other)})


def test_nothing_is_named_before_all_that_was_closed_is_copied() -> None:
    life = life_with_records()
    closed = len(life.log.snapshot.segments) - 1
    for _ in range(closed):
        assert life.mirror_next() is not None
        assert not life.tiered.manifest.segments
    assert life.mirror_next() is None
    assert len(life.tiered.manifest.segments) == closed


def test_a_part_that_ends_before_the_store_does_is_not_named() -> None:
    """A leader of before had merged segments of which the second is not synced here yet. Named
    alone, the first would take the place of both.
    """
    life = life_with_records()
    mirror(life)
    before = life.tiered.manifest
    merged = before.segments[0]._replace(last_offset=before.end_offset)
    store = before._replace(segments=(merged,))
    assert Mirror(life.log).next(store, CleanPart()) is None
    assert Mirror(life.log).next(before._replace(segments=()), CleanPart()) is not None


def test_a_change_of_which_the_answer_was_lost_loses_no_object() -> None:
    objects = MemoryStore()
    store = FaultyStore(objects, of_calls("put_new", Fault.LOST_AFTER))
    life = life_with_records(store=store)
    with pytest.raises(StoreError):
        mirror(life)
    mirror(life)
    named = [key for row in life.tiered.manifest.segments for key in life.tiered.objects_of(row)]
    assert len(named) > 4
    gone = [key for row in life.tiered.take_replaced() for key in life.tiered.objects_of(row)]
    assert not set(gone) & set(named)


def test_a_copy_between_any_two_renames_of_a_run_has_every_file() -> None:
    named = 0
    for wait in range(70):
        life = life_with_records()
        life.log.roll()
        life.sync()
        life.log.reconfigure(replace(life.log.config, segment_bytes=10_000))
        _copy_once_at(life, life.fs.calls + wait)
        for part in run_over(life).slices():
            if part.in_turn is not None:
                part.in_turn()
        named += len(life.tiered.manifest.segments)
        assert all(TIME_INDEX in row.parts for row in life.tiered.manifest.segments), wait
    assert named > 100


def _copy_once_at(life: TierLife, call: int) -> None:
    """As another thread would, right before that call of the disk."""

    def look(found: int) -> None:
        if found >= call:
            life.fs.on_call = None
            mirror(life)

    life.fs.on_call = look
