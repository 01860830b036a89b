"""Segments leave a log: what readers, files, restarts and a full disk see of it."""

from typing import Any

import pytest

from protocol.errors import ErrorCode, KafkaError
from storage.env import Env
from storage.errors import DiskError
from storage.files.layout import DELETED, LOG
from storage.log.lifecycle import learn_times, plan_retention
from storage.log.log import Log
from storage.recovery.loading import LoadHints
from storage.retention.plan import Reason
from storage.segment.removal import STEP_SEGMENTS, RemovedSegments
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.logs import (
    LOG_PATH,
    append,
    make_durable,
    offsets_of,
    open_log,
    records_of,
    reopened,
)

NOW = 1_700_000_000_000
SMALL = {"segment_bytes": 150, "horolog_retention_clock": "record"}  # one batch in each


def filled(env: Env, *times: int, **settings: Any) -> Log:
    """A log with a segment for each time, all durable."""
    log = open_log(env, **{**SMALL, **settings})
    for at in times:
        append(log, at, value=b"x" * 60)
    make_durable(log)
    assert len(log.snapshot.segments) == len(times)
    return log


def enforce(log: Log, env: Env) -> list[Reason]:
    """One round of retention, as the task does it; why segments went."""
    assert learn_times(log, 1000)
    plan = plan_retention(log, env.clock.now_ms())
    while log.remove_segments(plan.start_offset, all_go=plan.rolls_first).has_more:
        continue
    return [decision.reason for decision in plan.leaving]


def names(env: Env, suffix: str) -> list[str]:
    return sorted(entry.name for entry in env.fs.list_dir(LOG_PATH) if entry.name.endswith(suffix))


def test_the_oldest_go_and_the_rest_stays_readable() -> None:
    env = sim_env()
    log = filled(env, NOW - 500, NOW - 400, NOW - 300, retention_ms=350)
    assert enforce(log, env) == [Reason.TIME, Reason.TIME]
    assert log.snapshot.log_start_offset == 2
    assert log.snapshot.log_end_offset == 3
    assert offsets_of(records_of(log)) == [2]
    assert [segment.base_offset for segment in log.snapshot.segments] == [2]
    with pytest.raises(KafkaError) as refused:
        log.read(1, 100, up_to=3, min_one_batch=True)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_when_all_go_an_empty_segment_begins_and_offsets_go_on() -> None:
    env = sim_env()
    log = filled(env, NOW - 500, NOW - 400, retention_ms=10)
    assert enforce(log, env) == [Reason.TIME, Reason.TIME]
    snapshot = log.snapshot
    assert (snapshot.log_start_offset, snapshot.log_end_offset, snapshot.size_bytes) == (2, 2, 0)
    assert append(log, NOW).base_offset == 2
    assert offsets_of(records_of(log)) == [2]
    assert enforce(log, env) == []


def test_what_came_after_the_decision_stays() -> None:
    env = sim_env()
    log = filled(env, NOW - 500, NOW - 400, retention_ms=10)
    learn_times(log, 10)
    plan = plan_retention(log, NOW)
    assert plan.rolls_first
    append(log, NOW)
    log.remove_segments(plan.start_offset, all_go=plan.rolls_first)
    assert offsets_of(records_of(log)) == [2]


def test_a_reader_that_holds_a_snapshot_goes_on_reading() -> None:
    env = sim_env()
    log = filled(env, NOW - 500, NOW - 400, NOW, retention_ms=100)
    before = log.snapshot
    held = log.read(0, 1000, up_to=3, min_one_batch=True)
    enforce(log, env)
    assert len(held.read()) == held.size_bytes
    for segment in before.segments:
        assert segment.file().read_at(0, 10)


def test_files_are_renamed_at_once_and_removed_after_their_delay() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = filled(env, NOW - 500, NOW - 400, NOW, retention_ms=100)
    log.sync()
    learn_times(log, 10)
    step = log.remove_segments(plan_retention(log, NOW).start_offset)
    removed = RemovedSegments(clock)
    removed.bury(step.segments, 60_000)
    gone = names(env, DELETED)
    assert {name[20:] for name in gone} >= {".log.deleted", ".zones.deleted", ".index.deleted"}
    assert names(env, LOG) == ["00000000000000000002.log"]
    clock.advance(59_999)
    assert not removed.step()
    assert names(env, DELETED) == gone
    clock.advance(1)
    removed.step()
    assert names(env, DELETED) == []
    assert len(removed) == 0


def test_a_file_that_cannot_be_removed_is_tried_again() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = filled(env, NOW - 500, NOW, retention_ms=100)
    learn_times(log, 10)
    step = log.remove_segments(plan_retention(log, NOW).start_offset)
    removed = RemovedSegments(clock)
    removed.bury(step.segments, 0)
    env.fs.inject("remove", path=DELETED)  # type: ignore[attr-defined]
    with pytest.raises(DiskError):
        removed.step()
    assert not removed.step()
    clock.advance(60_000)
    removed.step()
    assert names(env, DELETED) == []


def test_many_segments_go_in_steps() -> None:
    env = sim_env()
    count = 2 * STEP_SEGMENTS + 3
    log = filled(env, *(NOW - 500 for _ in range(count)), retention_ms=100)
    learn_times(log, 1000)
    sizes = []
    more = True
    while more:
        step = log.remove_segments(count, all_go=True)
        sizes.append(len(step.segments))
        more = step.has_more
    assert sizes == [STEP_SEGMENTS, STEP_SEGMENTS, 3]


def test_times_are_looked_up_some_at_a_time() -> None:
    env = sim_env()
    log = reopened(filled(env, *(NOW - n for n in range(9))), env)
    assert not learn_times(log, 4)
    assert not learn_times(log, 4)
    assert learn_times(log, 4)


@pytest.mark.parametrize("operation", ["rename", "sync directory"])
def test_a_removal_that_fails_goes_on_at_the_next_round(operation: str) -> None:
    env = sim_env()
    log = filled(env, NOW - 500, NOW - 400, NOW, retention_ms=100)
    learn_times(log, 10)
    start = plan_retention(log, NOW).start_offset
    env.fs.inject(operation, path="t-0", skip=0)  # type: ignore[attr-defined]
    with pytest.raises(DiskError):
        log.remove_segments(start)
    assert offsets_of(records_of(log)) == [2]
    assert enforce(log, env) == [Reason.START_OFFSET, Reason.START_OFFSET]
    assert len(log.snapshot.segments) == 1
    assert names(env, LOG) == ["00000000000000000002.log"]


def test_a_full_disk_does_not_keep_segments_from_going() -> None:
    env = sim_env()
    log = filled(env, NOW - 500, NOW - 400, NOW, retention_ms=100)
    learn_times(log, 10)

    def full() -> None:
        env.fs.write_atomically("/data/start", b"x" * 100)

    log._on_start_moved = full
    env.fs.inject("write", path="start", error="enospc", times=1)  # type: ignore[attr-defined]
    steps = []
    more = True
    while more:
        step = log.remove_segments(2)
        steps.append(len(step.segments))
        more = step.has_more
    assert sum(steps) == 2
    assert steps[0] == 1
    assert offsets_of(records_of(log)) == [2]


def test_a_disk_too_full_for_a_new_segment_keeps_only_the_last_one_from_going() -> None:
    """It goes at the next round: the others have made room."""
    env = sim_env()
    log = filled(env, NOW - 500, NOW - 400, NOW - 300, retention_ms=100)
    env.fs.inject("create", path=f"{3:020d}{LOG}", error="enospc")  # type: ignore[attr-defined]
    assert enforce(log, env) == [Reason.TIME] * 3
    assert names(env, LOG) == [f"{2:020d}{LOG}"]
    assert enforce(log, env) == [Reason.TIME]
    assert names(env, LOG) == [f"{3:020d}{LOG}"]
    assert log.snapshot.log_start_offset == 3


def test_records_deleted_by_a_client_take_their_segments_along() -> None:
    env = sim_env()
    log = filled(env, NOW, NOW, NOW, retention_ms=-1)
    log.delete_records(2)
    assert enforce(log, env) == [Reason.START_OFFSET, Reason.START_OFFSET]
    log.delete_records(3)
    assert enforce(log, env) == []
    assert offsets_of(records_of(log)) == []


def test_a_compacted_topic_loses_only_what_lies_before_its_start() -> None:
    env = sim_env()
    policy = {"cleanup_policy": frozenset({"compact"}), "retention_ms": 0, "retention_bytes": 0}
    log = open_log(env, **SMALL, **policy)
    for _ in range(3):
        append(log, NOW - 500, key=b"k", value=b"x" * 60)
    make_durable(log)
    assert enforce(log, env) == []
    log.delete_records(1)
    assert enforce(log, env) == [Reason.START_OFFSET]
    log.reconfigure(open_log(sim_env(), **SMALL, retention_ms=0).config)
    assert enforce(log, env) == [Reason.TIME, Reason.TIME]


def test_hidden_records_stay() -> None:
    env = sim_env()
    log = open_log(env, **SMALL, retention_ms=10)
    append(log, NOW - 500, value=b"x" * 60)
    append(log, NOW - 500, value=b"x" * 60, acks_all=True)
    append(log, NOW - 500, value=b"x" * 60)
    assert enforce(log, env) == [Reason.TIME]
    assert log.snapshot.log_start_offset == 1
    make_durable(log)
    assert enforce(log, env) == [Reason.TIME, Reason.TIME]
    assert log.snapshot.log_start_offset == log.snapshot.log_end_offset == 3


def test_unsynced_segments_that_went_do_not_fail_the_next_sync() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env, **SMALL, retention_ms=10, horolog_durability="os")
    for _ in range(3):
        append(log, NOW - 500, value=b"x" * 60)
    before = log.snapshot
    learn_times(log, 10)
    step = log.remove_segments(3, all_go=True)
    removed = RemovedSegments(clock)
    removed.bury(step.segments, 0)
    removed.step()
    assert log.durability.sync(before) == 3
    make_durable(log)
    assert log.failed is None


def test_future_times_pin_by_record_and_not_by_the_earlier_clock() -> None:
    for clock_name, expected in (("record", 0), ("earlier", 3), ("arrival", 3), ("later", 0)):
        clock = SimClock(NOW)
        env = sim_env(clock=clock)
        log = filled(
            env, NOW + 10**12, NOW, NOW, retention_ms=1000, horolog_retention_clock=clock_name
        )
        clock.advance(1001)
        assert len(enforce(log, env)) == expected, clock_name


@pytest.mark.parametrize("clean", [True, False])
def test_arrivals_are_remembered_over_restarts(clean: bool) -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = filled(env, NOW + 10**12, NOW + 10**12, NOW, retention_ms=1000)
    clock.advance(5000)
    log.reconfigure(open_log(sim_env(), retention_ms=1000, **{**SMALL, **EARLIER}).config)
    if clean:
        log = reopened(log, env)
    else:
        make_durable(log)
        env = Env(clock, env.fs.after_kill(), env.rng)  # type: ignore[attr-defined]
        log = open_log(env, LoadHints(is_clean=False), **{**SMALL, **EARLIER}, retention_ms=1000)
    assert len(enforce(log, env)) == 3


EARLIER = {"horolog_retention_clock": "earlier"}


def test_records_without_time_are_judged_by_their_arrival() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = filled(env, -1, -1, retention_ms=1000, horolog_retention_clock="earlier")
    clock.advance(1000)
    assert enforce(log, env) == []
    clock.advance(1)
    assert enforce(log, env) == [Reason.TIME, Reason.TIME]


def test_a_log_without_zone_maps_is_judged_by_modification_times() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = filled(env, NOW + 10**12, NOW + 10**12, retention_ms=1000, **EARLIER)
    log.close()
    for name in names(env, ".zones"):
        env.fs.remove(f"{LOG_PATH}/{name}")
    clock.advance(1001)
    log = open_log(env, LoadHints(is_clean=True), **{**SMALL, **EARLIER}, retention_ms=1000)
    assert len(enforce(log, env)) == 2


def test_the_next_start_finds_no_hole_whatever_a_crash_kept_of_a_removal() -> None:
    env = sim_env()
    log = filled(env, *(NOW for _ in range(5)), retention_ms=-1)
    log.close()
    for base in (1, 2):
        path = f"{LOG_PATH}/{base:020d}.log"
        env.fs.rename(path, path + DELETED)
    known = LoadHints(is_clean=False, recovery_point=0, start_offset=3)
    log = open_log(env, known, **SMALL)
    assert offsets_of(records_of(log)) == [3, 4]
    assert names(env, LOG) == ["00000000000000000003.log", "00000000000000000004.log"]


def test_wild_times_do_not_make_a_segment_of_each_message() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env, segment_ms=1000, horolog_roll_min_interval_ms=10_000)
    for index in range(20):
        append(log, NOW + index * 10**9)
        clock.advance(1000)
    assert [segment.base_offset for segment in log.snapshot.segments] == [0, 10]


def test_without_the_floor_record_times_roll_as_in_kafka() -> None:
    log = open_log(sim_env(), segment_ms=1000, horolog_roll_min_interval_ms=0)
    for at in (NOW, NOW + 1000, NOW + 1001, NOW - 5000, NOW + 2001, NOW + 2002):
        append(log, at)
    assert [segment.base_offset for segment in log.snapshot.segments] == [0, 2, 5]


def test_a_roll_leaves_empty_segments_alone() -> None:
    log = open_log(sim_env())
    assert not log.roll()
    append(log, NOW)
    assert log.roll()
    assert not log.roll()
    assert [segment.base_offset for segment in log.snapshot.segments] == [0, 1]


def test_what_a_rolled_segment_knows_survives_a_clean_stop_without_a_sync() -> None:
    env = sim_env()
    log = open_log(env, **SMALL)
    append(log, NOW)
    make_durable(log)
    log.roll()
    log = reopened(log, env)
    closed = log.snapshot.segments[0]
    assert learn_times(log, 10)
    assert (closed.max_timestamp, closed.last_arrival_ms) == (NOW, NOW)
