"""From an offset to bytes: whole batches, limits, bounds, segments (semantics.md 2)."""

import pytest

from protocol.errors import ErrorCode, KafkaError
from storage.files.file_slice import NOTHING
from storage.log.log import Log
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import append, make_durable, open_log, records_of, reopened

BATCH_BYTES = 72


def filled(count: int = 100, **settings: int) -> Log:
    log = open_log(**{"index_interval_bytes": 300, **settings})
    for offset in range(count):
        append(log, 1000 + offset)
    return log


def bytes_read(log: Log, offset: int, max_bytes: int, up_to: int, *, whole: bool = True) -> int:
    return log.read(offset, max_bytes, up_to=up_to, min_one_batch=whole).size_bytes


@pytest.mark.parametrize("offset", [0, 1, 37, 98, 99])
def test_a_read_begins_with_the_batch_of_the_offset(offset: int) -> None:
    log = filled()
    assert records_of(log, offset)[0].offset == offset
    assert bytes_read(log, offset, 1 << 20, 100) == (100 - offset) * BATCH_BYTES


def test_offsets_inside_of_a_batch_give_the_whole_batch() -> None:
    log = open_log()
    append(log, 1, 2, 3, 4)
    data = log.read(2, 1 << 20, up_to=4, min_one_batch=True)
    assert data.slices[0].position == 0


def test_limits() -> None:
    log = filled()
    assert bytes_read(log, 0, 200, 100) == 200
    assert bytes_read(log, 0, 10, 100) == BATCH_BYTES
    assert log.read(0, 10, up_to=100, min_one_batch=False) is NOTHING
    assert log.read(100, 10, up_to=100, min_one_batch=True) is NOTHING


@pytest.mark.parametrize("up_to", [1, 50, 99])
def test_nothing_at_or_above_the_bound_is_read(up_to: int) -> None:
    assert bytes_read(filled(), 0, 1 << 20, up_to) == up_to * BATCH_BYTES


@pytest.mark.parametrize("offset", [-1, 101, 5000])
def test_offsets_outside_of_the_log(offset: int) -> None:
    with pytest.raises(KafkaError) as caught:
        filled().read(offset, 100, up_to=100, min_one_batch=True)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_read_ends_with_its_segment_and_the_next_one_goes_on() -> None:
    log = filled(segment_bytes=1000)
    assert len(log.snapshot.segments) == 8
    assert bytes_read(log, 0, 1 << 20, 100) == 13 * BATCH_BYTES
    assert [record.offset for record in records_of(log)] == list(range(100))


def test_a_reader_on_an_old_snapshot_is_not_disturbed() -> None:
    log = filled(20, segment_bytes=1000)
    data = log.read(0, 1 << 20, up_to=20, min_one_batch=True)
    before = data.read()
    for at in range(50):
        append(log, at)
    assert data.read() == before
    assert len(data.slices[0]) == data.size_bytes


def test_the_start_offset_moves_and_stays() -> None:
    env = sim_env()
    log = open_log(env)
    for offset in range(10):
        append(log, offset)
    assert log.delete_records(4) == 4
    assert log.delete_records(2) == 4
    with pytest.raises(KafkaError):
        log.delete_records(11)
    with pytest.raises(KafkaError):
        log.read(3, 100, up_to=10, min_one_batch=True)
    assert [record.offset for record in records_of(log)] == list(range(4, 10))
    assert log.delete_records(-1) == 10


def test_a_search_by_time_does_not_look_before_the_start() -> None:
    log = filled()
    log.delete_records(50)
    found = log.search.first_at_or_after(0, below=100)
    assert found is not None
    assert (found.offset, found.timestamp, found.leader_epoch) == (50, 1050, 0)


def test_reads_after_a_clean_restart_need_no_scan() -> None:
    env = sim_env()
    log = open_log(env, segment_bytes=1000, index_interval_bytes=200)
    for offset in range(60):
        append(log, 1000 + offset)
    make_durable(log)
    log = reopened(log, env)
    assert log.search.lookup[0].rebuilt == 0
    assert [record.offset for record in records_of(log)] == list(range(60))
    assert log.search.first_at_or_after(1030, below=60) == (1030, 30, 0)
    assert log.search.first_with_largest() == (1059, 59, 0)
    assert log.search.lookup[0].rebuilt == 0
    assert append(log, 2000).base_offset == 60


def test_the_largest_time_is_looked_for_at_or_after_the_log_start() -> None:
    log = open_log()
    for at in (100, 500, 50, 300, 200):
        append(log, at)
    make_durable(log)
    log.delete_records(2)
    assert log.search.first_with_largest() == (300, 3, 0)
    log.delete_records(5)
    assert log.search.first_with_largest() is None


@pytest.mark.parametrize("rolled", [False, True])
def test_whoever_follows_the_end_reads_what_a_search_would_find(rolled: bool) -> None:
    env = sim_env()
    log = open_log(env)
    for at in range(5):
        append(log, 1000 + at, 1001 + at, value=b"v" * 50)
        if rolled:
            log.roll()
    end = log.snapshot.log_end_offset
    asked = [
        (offset, max_bytes, up_to, whole)
        for offset in range(end + 1)
        for max_bytes in (1, 150, 1_000_000)
        for up_to in (end - 2, end)
        for whole in (False, True)
    ]

    def answers(each: Log) -> list[bytes]:
        return [
            each.read(offset, most, up_to=up_to, min_one_batch=whole).read()
            for offset, most, up_to, whole in asked
        ]

    followed = answers(log)
    assert followed == answers(reopened(log, env))
    assert any(followed)
