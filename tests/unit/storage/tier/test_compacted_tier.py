"""A compacted log in both tiers: one rule a test."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from protocol.records.builder import build_batch
from protocol.records.record import read_records
from protocol.records.scan import scan_batches
from storage.cleaner.cleaner import Cleaning
from storage.env import Env
from storage.errors import DiskError, StorageError
from storage.tier.manifests.manifest import RemoteSegment
from storage.tier.port import StoreError
from storage.tier.tiered_log import SegmentsChanged
from tests.support.disk.simenv import SeededRng
from tests.support.records.cleaning import COMPACT, MEMORY
from tests.support.tier.faulty_store import Fault, FaultyStore, always
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.tier_crash_world import read_rows
from tests.support.tier.tier_life import NOW, TierLife

KEYS = 4


class CompactedLife(TierLife):
    """Few keys, whose last values are known."""

    def __init__(self, **settings: object) -> None:
        self.objects = MemoryStore()
        self.faulty = FaultyStore(self.objects, lambda operation, key: None)
        usual = {"cleanup_policy": COMPACT, "segment_bytes": 400, "delete_retention_ms": 1000}
        super().__init__(self.faulty, **usual | settings)
        self.create()
        self.last: dict[bytes, bytes | None] = {}
        self._count = 0

    def write(self, count: int, *, tombstones: bool = False) -> None:
        """Closed segments of records."""
        for _ in range(count):
            key = b"k%d" % (self._count % KEYS)
            self.put(key, None if tombstones else b"%d" % self._count * 15)
        self.log.roll()
        self.sync()

    def put(self, key: bytes, value: bytes | None) -> None:
        self._count += 1
        self.last[key] = value
        batch = build_batch([(NOW + self._count, key, value)])
        self.log.append(memoryview(batch), acks_all=True, leader_epoch=0)

    def run_over(self) -> Cleaning:
        env = Env(self.clock, self.fs, SeededRng(1))
        return Cleaning(self.log, self.verdict(), MEMORY, env, self.tiered)

    def judge(self) -> None:
        """The last record of each key is what was last written."""
        found = {record.key: record.value for record in read_rows(self.log).values()}
        assert {key: value for key, value in found.items() if value is not None} == {
            key: value for key, value in self.last.items() if value is not None
        }


def away_life() -> CompactedLife:
    """All that is closed is only in the store."""
    life = CompactedLife()
    life.write(20)
    life.copy_all()
    life.drop()
    assert life.log.snapshot.first_local > 2
    return life


def test_what_is_only_in_the_store_is_compacted_there() -> None:
    life = away_life()
    before = sum(row.size_bytes for row in life.tiered.manifest.segments)
    life.clean(life.verdict())
    after = life.tiered.manifest.segments
    assert sum(row.size_bytes for row in after) < before
    assert len(read_rows(life.log)) == KEYS
    life.judge()
    life.restart()
    assert len(read_rows(life.log)) == KEYS


def test_old_objects_go_and_new_ones_stay() -> None:
    life = away_life()
    life.clean(life.verdict())
    life.expire()
    named = {key for row in life.tiered.manifest.segments for key in life.tiered.objects_of(row)}
    assert {key for key in life.objects.objects if "manifest" not in key} == named
    life.judge()


def test_a_segment_that_stays_as_it_is_is_not_written_again() -> None:
    life = away_life()
    life.clean(life.verdict())
    before = _uniques(life.tiered.manifest.segments)
    life.put(b"another", b"1")
    life.log.roll()
    life.sync()
    life.copy_all()
    life.drop()
    life.log.reconfigure(replace(life.log.config, segment_bytes=1))  # neighbours stay apart
    life.clean(life.verdict())
    assert set(before) < set(_uniques(life.tiered.manifest.segments))
    life.judge()


def _uniques(rows: tuple[RemoteSegment, ...]) -> list[str]:
    return [row.unique for row in rows]


def test_compaction_ends_where_the_store_does() -> None:
    """Else a restore would bring a segment without a key, and none with its later value."""
    life = away_life()
    life.write(20)
    end = life.tiered.uploaded_end
    assert life.verdict().first_uncleanable <= end
    life.clean(life.verdict())
    keys = {_key_of(life, row) for row in life.tiered.manifest.segments}
    assert frozenset(life.last) == frozenset().union(*keys)


def _key_of(life: CompactedLife, row: RemoteSegment) -> frozenset[bytes]:
    data = memoryview(life.objects.objects[life.tiered.objects_of(row)[0]])
    return frozenset(
        bytes(record.key or b"")
        for batch in scan_batches(data).batches
        for record in read_records(data[batch[0] : batch[0] + batch[5]])
    )


def test_a_rewritten_segment_stays_on_the_disk_until_the_store_has_it() -> None:
    life = CompactedLife()
    life.write(20)
    life.copy_all()
    life.clean(life.verdict())
    life.drop()
    assert life.log.snapshot.first_local == 0
    life.copy_all()
    life.drop()
    assert life.log.snapshot.first_local > 0
    assert len(read_rows(life.log)) == KEYS


def test_no_segment_leaves_during_a_run() -> None:
    life = CompactedLife()
    life.write(20)
    life.copy_all()
    for part in life.run_over().slices():
        if part.in_turn is not None:
            part.in_turn()
        life.drop()
        assert life.log.snapshot.first_local == 0 or not life.log.compaction.is_running
    life.kill()
    assert len(read_rows(life.log)) == KEYS, "a start has taken the store's old segments"
    life.judge()


def test_segments_that_could_not_leave_do_before_a_run() -> None:
    """A start takes them out of the directory, in whatever state they are then."""
    life = CompactedLife()
    life.write(20)
    life.copy_all()
    local = life.log.snapshot.local_segments
    below = life.log.snapshot.local_segments[2].base_offset
    renamed = life.fs.rename

    def refuse(source: str, target: str) -> None:
        if target.endswith(".deleted"):
            raise DiskError(source, "rename", "refused")
        renamed(source, target)

    life.fs.rename = refuse  # type: ignore[method-assign]
    with pytest.raises(DiskError):
        life.drop(below)
    life.fs.rename = renamed  # type: ignore[method-assign]
    assert life.log.snapshot.local_segments == local
    life.clean(life.verdict())
    assert life.log.snapshot.local_start_offset >= below
    life.kill()
    life.judge()
    assert len(read_rows(life.log)) == KEYS


def test_delete_records_in_a_run_ends_it() -> None:
    life = away_life()
    run = life.run_over()
    put = life.objects.put_file
    second = life.log.snapshot.segments[2].base_offset

    def delete_then_put(*arguments: object) -> None:
        if life.log.snapshot.log_start_offset < second:
            life.log.delete_records(second)
            life.expire()
        put(*arguments)  # type: ignore[arg-type]

    life.objects.put_file = delete_then_put  # type: ignore[method-assign, assignment]
    with pytest.raises(SegmentsChanged):
        _advance(run)
    assert not life.log.compaction.is_running
    life.clean(life.verdict())
    life.judge()
    assert min(read_rows(life.log)) >= second


def _advance(run: Cleaning, between: Callable[[], object] = lambda: None) -> None:
    slices = run.slices()
    try:
        for part in slices:
            if part.in_turn is not None:
                part.in_turn()
            between()
    finally:
        slices.close()


def test_a_fetch_of_what_was_compacted_away_finds_what_took_its_place() -> None:
    life = away_life()
    life.restart()
    data = life.log.read(0, 1 << 20, up_to=life.log.snapshot.high_watermark, min_one_batch=True)
    assert data.unverified is not None
    life.clean(life.verdict())
    life.expire()
    data.unverified.settle()
    life.judge()


def test_a_search_of_what_was_compacted_away_finds_what_took_its_place() -> None:
    life = away_life()
    life.restart()
    get, asked = life.objects.get_range, []

    def compact_first(key: str, position: int, size: int) -> bytes:
        if not asked:
            asked.append(key)
            life.clean(life.verdict())
            life.expire()
        return get(key, position, size)

    life.objects.get_range = compact_first  # type: ignore[method-assign]
    found = life.log.search.first_at_or_after(0)
    assert asked, "it was answered from memory"
    assert found is not None
    assert found.offset == min(read_rows(life.log)) > 0


def test_a_store_that_is_away_ends_a_run_and_nothing_has_changed() -> None:
    life = away_life()
    before = life.tiered.manifest
    life.restart()
    life.faulty.script = always(Fault.LOST_BEFORE)
    with pytest.raises(StoreError):
        life.clean(life.verdict())
    life.faulty.script = lambda operation, key: None
    assert life.tiered.manifest == before
    assert not [each.name for each in life.fs.list_dir("/data/t-0") if "cleaned" in each.name]
    life.clean(life.verdict())
    assert len(read_rows(life.log)) == KEYS


def test_one_lost_answer_after_the_other_ends_in_the_compacted_log() -> None:
    life = away_life()
    for _ in range(30):
        life.faulty.script = _second_lost()
        try:
            life.clean(life.verdict())
        except StoreError:
            continue
        break
    life.faulty.script = lambda operation, key: None
    life.clean(life.verdict())
    life.expire()
    life.judge()


def _second_lost() -> Callable[[str, str], Fault | None]:
    calls = []

    def script(operation: str, _key: str) -> Fault | None:
        calls.append(operation)
        return Fault.LOST_AFTER if operation == "put_new" and len(calls) % 2 else None

    return script


def test_without_a_store_what_is_wholly_here_is_compacted() -> None:
    life = CompactedLife()
    life.write(20)
    life.faulty.script = always(Fault.LOST_BEFORE)
    life.clean(life.verdict())
    assert len(read_rows(life.log)) == KEYS


def test_tombstones_go_after_their_time_and_no_value_comes_back() -> None:
    life = away_life()
    life.write(KEYS, tombstones=True)
    life.copy_all()
    life.drop()
    life.clean(life.verdict())
    assert [record.value for record in read_rows(life.log).values()] == [None] * KEYS
    life.clock.advance(2000)
    life.write(1)
    life.copy_all()
    life.drop()
    life.clean(life.verdict())
    life.judge()
    assert len(read_rows(life.log)) == 1
    life.cut_power(3)
    life.judge()


def test_when_a_log_is_due_is_known_without_the_store() -> None:
    """And as with one tier: max.compaction.lag.ms counts from the same record."""
    lags = {"max_compaction_lag_ms": 1000, "min_compaction_lag_ms": 100}
    alone, both = CompactedLife(**lags), CompactedLife(**lags)
    for life in (alone, both):
        life.write(20)
    both.copy_all()
    both.drop()
    both.restart()
    both.faulty.script = always(Fault.LOST_BEFORE)
    assert both.log.snapshot.first_local > 2
    for _ in range(3):
        for life in (alone, both):
            life.clock.advance(700)
        assert both.verdict() == alone.verdict()
    assert both.verdict().delay_ms > 0
    assert both.verdict().is_eligible


def test_compact_and_delete_hold_for_both_tiers() -> None:
    life = CompactedLife(cleanup_policy=frozenset({"compact", "delete"}))
    life.write(20)
    life.copy_all()
    life.drop()
    life.clean(life.verdict())
    life.write(20)
    life.copy_all()
    life.drop()
    start = life.log.snapshot.segments[1].base_offset
    life.remove_before(start)
    life.expire()
    life.clean(life.verdict())
    life.expire()
    assert min(read_rows(life.log)) >= start
    assert min(row.base_offset for row in life.tiered.manifest.segments) >= start
    life.judge()
    life.restart()
    assert life.log.snapshot.log_start_offset == start
    life.judge()


def test_a_failing_call_of_the_disk_in_a_run_costs_no_key() -> None:
    last = 0
    for wait in range(0, 300, 3):
        life = away_life()
        life.write(8)
        life.copy_all()
        began = life.fs.calls
        life.fs.fail_at = (began + 1 + wait, "eio")
        with suppress(StorageError):
            life.clean(life.verdict())
        last = life.fs.calls - began
        life.fs.fail_at = None
        life.judge()
        life.kill()
        life.judge()
        life.copy_all()
        life.drop()
        life.clean(life.verdict())
        life.judge()
        assert len(read_rows(life.log)) == KEYS
    assert last < 300, "not every call has failed"
