"""Starts of a data directory of which a part is in the store: what is believed, what is refused."""

from contextlib import suppress

import pytest

from protocol.records.builder import build_batch
from protocol.records.record import read_records
from protocol.records.scan import scan_batches
from storage.errors import CorruptCheckpoint, FileMissing, NewerFormat, StorageError
from storage.files.layout import LOG, PARTITION_METADATA_FILE, REMOTE_FILE, ZONES
from storage.files.meta_properties import write_partition_metadata
from storage.log.following import batches_between
from tests.support.records.logs import append_bytes
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.tier_life import LOG_DIR, NOW, TOPIC_ID, TierLife

PATH = f"{LOG_DIR}/t-0"
OTHER_ID = TOPIC_ID.__class__(int=8)
BYTES = 1 << 20


def filled(batches: int = 40) -> TierLife:
    """A log of some segments, all but the active one in the store, none of those here."""
    life = TierLife(MemoryStore())
    life.create()
    fill(life, batches)
    life.copy_all()
    return life


def fill(life: TierLife, batches: int) -> None:
    for number in range(batches):
        append_bytes(life.log, build_batch([(NOW + number, None, b"%d" % number * 40)]))
    life.sync()


def offsets(life: TierLife) -> list[int]:
    """What fetches bring, one after the other."""
    snapshot = life.log.snapshot
    at, found = snapshot.log_start_offset, list[int]()
    while at < snapshot.high_watermark:
        data = memoryview(life.read(at))
        for row in scan_batches(data).batches:
            found += [each.offset for each in read_records(data[row[0] : row[0] + row[5]])]
        at = found[-1] + 1
    return found


def test_every_bit_of_what_is_known_of_the_store_is_guarded() -> None:
    life = filled()
    life.drop()
    assert life.manager.close()
    path = f"{PATH}/{REMOTE_FILE}"
    content = life.fs.read_bytes(path)
    assert b"local_start_offset" in content[:100]
    for bit in range(8 * 100):
        spoilt = bytearray(content)
        spoilt[bit // 8] ^= 1 << bit % 8
        disk = life.fs.after_kill()
        disk.write_atomically(path, bytes(spoilt))
        with pytest.raises((CorruptCheckpoint, NewerFormat)):
            life.started(disk)
    life.fs = life.fs.after_kill()
    life.manager = life.started(life.fs)
    assert offsets(life) == list(range(40))


def test_a_damaged_file_of_the_topic_s_id_does_no_harm() -> None:
    life = filled()
    life.drop()
    life.stop()
    life.fs.write_atomically(f"{PATH}/{PARTITION_METADATA_FILE}", b"version: 0\ntopic_")
    life.manager = life.started(life.fs)
    assert life.log.topic_id == TOPIC_ID
    assert offsets(life) == list(range(40))


def test_a_directory_of_two_topics_is_refused() -> None:
    life = filled()
    life.stop()
    write_partition_metadata(life.fs, f"{PATH}/{PARTITION_METADATA_FILE}", OTHER_ID)
    with pytest.raises(StorageError, match="its part in the store"):
        life.started(life.fs)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_that_ends_before_the_store_does_goes_on_behind_it(is_clean: bool) -> None:
    life = filled()
    segments = life.log.snapshot.segments
    uploaded_end = life.tiered.uploaded_end
    life.drop(segments[-3].base_offset)
    if is_clean:
        assert life.manager.close()
    for segment in segments[-2:]:
        for suffix in (LOG, ".index", ".timeindex", ".zones"):
            with suppress(FileMissing):
                life.fs.remove(f"{PATH}/{segment.base_offset:020d}{suffix}")
    life.kill()
    assert life.log.snapshot.log_end_offset == uploaded_end
    assert offsets(life) == list(range(uploaded_end))
    fill(life, 30)
    life.copy_all()
    life.drop()
    assert offsets(life) == list(range(uploaded_end + 30))


def test_what_neither_has_is_no_hole() -> None:
    life = TierLife(MemoryStore())
    life.create()
    fill(life, 40)
    first, lost, kept = life.log.snapshot.segments[:3]
    assert life.copy_next() is not None
    life.drop()
    assert life.log.snapshot.local_segments[0] is lost
    assert life.manager.close()
    life.fs.remove(lost.path_of(LOG))
    life.kill()
    assert first.base_offset == 0
    assert life.log.snapshot.log_start_offset == kept.base_offset
    assert offsets(life) == list(range(kept.base_offset, 40))


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_start_where_a_segment_begins_is_kept(is_clean: bool) -> None:
    life = filled()
    life.drop(life.log.snapshot.segments[2].base_offset)
    start = life.log.snapshot.segments[4].base_offset
    life.remove_before(start)
    life.remove_files()
    life.manager.checkpoint()
    if is_clean:
        life.restart()
    else:
        life.cut_power(1)
    assert life.log.snapshot.log_start_offset == start
    assert offsets(life) == list(range(start, 40))
    life.expire()
    life.restart()
    assert offsets(life) == list(range(start, 40))


def test_a_topic_of_an_earlier_one_s_name_begins_anew() -> None:
    life = filled()
    life.drop()
    life.manager.delete_log("t", 0)
    life.manager.create_log("t", 0, OTHER_ID, life.config)
    assert life.log.snapshot.log_end_offset == 0
    fill(life, 20)
    life.copy_all()
    life.drop()
    assert life.tiered.keys.topic_id == OTHER_ID
    for _ in range(2):
        assert offsets(life) == list(range(20))
        life.restart()
        life.remove_files()


def test_of_a_deleted_log_that_came_back_the_store_s_part_is_known() -> None:
    life = filled()
    life.drop()
    life.manager.delete_log("t", 0)
    disk = life.fs.after_crash(3)  # the rename of the directory may be lost
    manager = life.started(disk)
    for log in manager.logs.values():
        assert log.snapshot.log_start_offset == 0
        assert log.snapshot.log_end_offset == 40


def test_a_start_from_before_the_first_copy_is_kept() -> None:
    life = TierLife(MemoryStore())
    life.create()
    fill(life, 40)
    start = life.log.snapshot.segments[3].base_offset
    life.remove_before(start)
    life.kill()
    life.copy_all()
    life.drop()
    life.kill()
    assert life.log.snapshot.log_start_offset == start
    assert offsets(life) == list(range(start, 40))


@pytest.mark.parametrize("is_clean", [True, False])
def test_no_arrival_is_earlier_than_one_in_the_store(is_clean: bool) -> None:
    life = filled()
    life.log.roll()
    life.sync()
    life.copy_all()
    life.drop()
    latest = life.log.search.times_at(39)
    assert latest is not None
    life.clock.step(-60_000)
    if is_clean:
        life.restart()
    else:
        life.kill()
    fill(life, 1)
    found = life.log.search.times_at(40)
    assert found is not None
    assert found.arrival_ms >= latest.arrival_ms


@pytest.mark.parametrize("operation", ["put_file", "put_new"])
def test_a_copy_under_way_writes_nothing_into_the_directory_of_a_later_topic(
    operation: str,
) -> None:
    store = MemoryStore()
    life = TierLife(store)
    life.create()
    fill(life, 40)
    call, old = getattr(store, operation), life.tiered

    def meanwhile(*given: object) -> None:
        call(*given)
        setattr(store, operation, call)
        life.manager.delete_log("t", 0)
        life.manager.create_log("t", 0, OTHER_ID, life.config)

    setattr(store, operation, meanwhile)
    with pytest.raises(StorageError):
        old.copy_next(lambda size: None)
    assert not life.fs.exists(f"{PATH}/{REMOTE_FILE}")
    fill(life, 20)
    life.restart()
    assert offsets(life) == list(range(20))


def test_arrivals_in_the_store_say_nothing_of_segments_before_them() -> None:
    """Those of a segment whose zone map is gone are estimates, and not later than what follows."""
    life = filled(0)
    came = []
    for _ in range(40):
        life.clock.advance(1000)
        came.append(life.clock.now_ms())
        fill(life, 1)
    life.copy_all()
    life.drop(life.log.snapshot.segments[2].base_offset)
    first, after = life.log.snapshot.local_segments[:2]
    assert life.manager.close()
    life.fs.remove(first.path_of(ZONES))
    life.kill()
    found = list(batches_between(life.log, first.base_offset, after.base_offset, BYTES))
    assert [each.base_offset for each in found] == list(range(first.base_offset, after.base_offset))
    earliest, latest = came[first.base_offset - 1], came[after.base_offset]
    assert all(earliest <= each.arrival_ms <= latest for each in found)
