"""A log in both tiers: the same records and the same answers as with one."""

import gc
import random
from weakref import ref

import pytest

from protocol.records.batch import read_header
from protocol.records.builder import build_batch
from storage.errors import CorruptLog, StorageError
from storage.search.search_clock import ARRIVAL, EARLIER, RECORD
from storage.tier.manifests.local_state import REMOTE_FILE
from storage.tier.object_cache import BLOCK_BYTES, ObjectCache
from storage.tier.port import StoreError
from storage.tier.remote_object import Reach
from storage.tier.remote_segments import RemoteSegments
from storage.tier.single_writer import LatePut, WriterReplaced
from storage.tier.tiered_log import TierMismatch
from tests.support.disk.simdisk import SimFile
from tests.support.records.aborting_logs import Author
from tests.support.records.logs import (
    LOG_PATH,
    append,
    append_bytes,
    first_from,
    make_durable,
    open_log,
)
from tests.support.tier.tier_world import KEYS, NOW, TierWorld

T0 = 1_700_000_000_000


def fill(world: TierWorld, count: int = 60, seed: int = 1) -> list[tuple[int, int]]:
    """Batches with times in disorder; (time, offset) of every record."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        times = [T0 + rng.randrange(-10_000, 10_000) for _ in range(rng.randint(1, 5))]
        result = append(world.log, *times, value=rng.randbytes(100))
        found += [(at, result.base_offset + n) for n, at in enumerate(times)]
        world.env.clock.advance(50)  # type: ignore[attr-defined]
    make_durable(world.log)
    return found


def test_what_left_the_directory_is_read_from_the_store() -> None:
    world = TierWorld()
    wanted = fill(world)
    before = [(each.offset, each.timestamp, bytes(each.value or b"")) for each in world.records()]
    rows = world.copy_all()
    assert len(rows) == len(world.log.snapshot.segments) - 1
    assert world.drop_all() == len(rows)
    snapshot = world.log.snapshot
    assert len(snapshot.local_segments) == 1
    assert snapshot.log_start_offset == 0
    assert snapshot.local_start_offset == rows[-1].end_offset
    after = [(each.offset, each.timestamp, bytes(each.value or b"")) for each in world.records()]
    assert after == before
    assert [(time, offset) for offset, time, _ in after] == wanted


def test_segments_in_the_store_are_freed_with_the_last_that_reads_them() -> None:
    """By a collection alone they would stay for as long as a node has few new objects."""
    world = TierWorld()
    fill(world)
    rows = world.copy_all()
    gc.disable()
    try:
        made = RemoteSegments(Reach(world.store, ObjectCache(world.env.fs, "/other", 1)), KEYS)
        known = [ref(each) for each in made.of(rows)]
        del made
        assert [each() for each in known] == [None] * len(rows)
    finally:
        gc.enable()


def test_a_file_system_that_does_not_tell_what_is_in_memory_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As tmpfs: without that, no fetch from the store would ever be answered."""
    monkeypatch.setattr(SimFile, "read_into_if_cached", lambda self, position, buffer: None)
    world = TierWorld()
    wanted = fill(world)
    world.copy_all()
    world.drop_all()
    assert [each.offset for each in world.records()] == [offset for _, offset in wanted]


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_start_needs_no_store(is_clean: bool) -> None:
    world = TierWorld()
    wanted = fill(world)
    world.copy_all()
    world.drop_all()
    end = world.log.snapshot.log_end_offset
    if is_clean:
        world.log.close()
    asked = dict(world.store.asked)
    world.open(is_clean=is_clean)
    assert world.store.asked == asked
    assert world.log.snapshot.log_start_offset == 0
    assert world.log.snapshot.log_end_offset == end
    assert [each.offset for each in world.records()] == [offset for _, offset in wanted]


@pytest.mark.parametrize("clock", [RECORD, ARRIVAL, EARLIER])
def test_searches_by_time_are_as_with_one_tier(clock: object) -> None:
    alone, world = TierWorld(), TierWorld()
    for each in (alone, world):
        fill(each)
    world.copy_all()
    world.drop_all()
    assert alone.log.search.first_with_largest() == world.log.search.first_with_largest()
    for wanted in range(T0 - 12_000, T0 + 12_000, 371):
        found = world.log.search.first_at_or_after(wanted, clock=clock)  # type: ignore[arg-type]
        expected = alone.log.search.first_at_or_after(wanted, clock=clock)  # type: ignore[arg-type]
        assert found == expected, wanted


def test_a_search_by_time_takes_two_requests_cold_and_one_warm() -> None:
    world = TierWorld()
    records = fill(world)
    world.copy_all()
    world.drop_all()
    segment = world.log.snapshot.segments[0]
    time, offset = first_from(records, T0)  # type: ignore[misc]
    assert offset < world.log.snapshot.segments[1].base_offset, "it is in the first segment"
    asked = world.store.asked["get_range"]
    found = world.log.search.first_at_or_after(T0)
    assert found is not None
    assert (found.timestamp, found.offset) == (time, offset)
    assert world.store.asked["get_range"] - asked == 2
    world.log.search.first_at_or_after(T0)
    assert world.store.asked["get_range"] - asked == 2
    assert segment.away is not None


def test_a_directory_that_knows_less_than_the_store_is_refused() -> None:
    world = TierWorld()
    fill(world, 20)
    world.copy_all()
    young = TierWorld()
    young.store = world.store
    young.open()
    append(young.log, T0)
    with pytest.raises(TierMismatch, match="is the directory an old copy"):
        young.copy_all()


def test_of_two_writers_one_stops() -> None:
    one, other = TierWorld(), TierWorld()
    other.store = one.store
    other.open()
    for world in (one, other):
        fill(world)
        world.tiered.settle()
    one.copy_all()
    with pytest.raises(LatePut):  # it may be that of an earlier process, killed by now
        other.copy_all()
    for world in (one, other):
        fill(world, seed=2)
    other.copy_all()
    with pytest.raises(WriterReplaced):
        one.copy_all()
    assert [each.offset for each in other.records()] == [each.offset for each in one.records()]


def test_a_lost_answer_is_no_second_writer() -> None:
    world = TierWorld()
    fill(world)
    make_durable(world.log)
    put, lost = world.store.put_new, []

    def loses_answers(key: str, data: bytes) -> None:
        put(key, data)
        if key not in lost:
            lost.append(key)
            raise StoreError(key, "put", "time-out")

    world.store.put_new = loses_answers  # type: ignore[assignment]
    for _ in range(200):
        try:
            if world.tiered.copy_next(lambda size: None) is None:
                break
        except StoreError:
            continue
    assert world.tiered.uploaded_end == world.log.snapshot.segments[-1].base_offset
    world.tiered.show()
    world.drop_all()
    assert len(world.records()) == world.log.snapshot.log_end_offset


def test_bytes_that_the_store_changed_are_never_served() -> None:
    world = TierWorld()
    fill(world)
    rows = world.copy_all()
    world.drop_all()
    key = KEYS.segment(0, rows[0].unique, ".log")
    data = bytearray(world.store.objects[key])
    data[len(data) // 2] ^= 1
    world.store.objects[key] = bytes(data)
    with pytest.raises(CorruptLog):
        world.records()
    assert world.records(rows[1].base_offset)


def test_a_lost_object_is_damage_and_not_a_gap() -> None:
    world = TierWorld()
    fill(world)
    rows = world.copy_all()
    world.drop_all()
    del world.store.objects[KEYS.segment(0, rows[0].unique, ".log")]
    with pytest.raises(CorruptLog, match="lost this object"):
        world.read_from(0)


def test_side_files_that_are_damaged_are_made_again() -> None:
    world = TierWorld()
    wanted = fill(world)
    rows = world.copy_all()
    world.drop_all()
    for row in rows:
        key = KEYS.segment(row.base_offset, row.unique, ".side")
        world.store.objects[key] = bytes(len(world.store.objects[key]))
    assert [each.offset for each in world.records()] == [offset for _, offset in wanted]
    found = world.log.search.first_at_or_after(T0)
    assert found is not None
    assert (found.timestamp, found.offset) == first_from(wanted, T0)


def test_a_small_cache_serves_all_the_same() -> None:
    world = TierWorld(cache_bytes=1)
    wanted = fill(world)
    world.copy_all()
    world.drop_all()
    for _ in range(2):
        assert [each.offset for each in world.records()] == [offset for _, offset in wanted]


def test_a_batch_that_fills_the_cache_is_served_though_its_index_entry_is_in_another_block() -> (
    None
):
    """The search begins at the index entry: its block is brought with the batch, and stays."""
    world = TierWorld(cache_bytes=BLOCK_BYTES, segment_bytes=3 * BLOCK_BYTES)
    for size in (BLOCK_BYTES - 130, 100, 900_000, 900_000, 900_000):
        append(world.log, T0, value=bytes(size))
    world.copy_all()
    world.env.clock.advance(1)  # type: ignore[attr-defined]
    assert world.drop_all() == 1
    for offset in (2, 0, 1):
        assert read_header(world.read_from(offset, 1)).base_offset == offset


def test_what_is_before_the_log_start_leaves_the_manifest() -> None:
    world = TierWorld()
    fill(world)
    rows = world.copy_all()
    world.drop_all()
    world.log.delete_records(rows[2].base_offset)
    world.tiered.show()
    assert world.log.snapshot.segments[0].base_offset == rows[2].base_offset
    assert world.tiered.expire() == tuple(rows[:2])
    world.reopen()
    assert world.log.snapshot.log_start_offset == rows[2].base_offset
    assert world.records()[0].offset == rows[2].base_offset
    assert world.tiered.expire() == ()


def test_a_store_that_is_no_longer_configured_refuses_the_start() -> None:
    world = TierWorld()
    fill(world)
    world.copy_all()
    world.drop_all()
    world.log.close()
    assert world.env.fs.exists(f"{LOG_PATH}/{REMOTE_FILE}")
    with pytest.raises(StorageError, match=r"remote\.log\.storage\.system\.enable"):
        open_log(world.env, **world.settings)


def test_aborted_transactions_are_known_from_the_store() -> None:
    alone, world = TierWorld(), TierWorld()
    for each in (alone, world):
        Author(each.log, random.Random(3)).write(120)
        make_durable(each.log)
        each.env.clock.advance(1000)  # type: ignore[attr-defined]
    world.copy_all()
    assert world.drop_all() > 2
    end = alone.log.snapshot.log_end_offset
    assert world.log.snapshot.log_end_offset == end
    for offset in range(end):
        world.read_from(offset)
        found = world.log.search.aborted(offset, end)
        assert found == alone.log.search.aborted(offset, end)


def test_open_transactions_are_not_copied() -> None:
    world = TierWorld()
    batch = build_batch(
        [(T0, None, b"x" * 900)], producer_id=5, producer_epoch=0, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    append_bytes(world.log, batch)
    for _ in range(20):
        append(world.log, T0, value=b"y" * 900)
    assert world.copy_all() == []


def test_local_segments_do_not_leave_by_time_while_the_clock_is_in_doubt() -> None:
    world = TierWorld()
    fill(world)
    world.copy_all()
    assert world.drop_all(NOW._replace(is_held=True)) == 0
    assert world.drop_all(NOW._replace(is_held=True, retention_bytes=1)) > 0
    assert world.drop_all(NOW) == 0
