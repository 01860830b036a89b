"""A log in use while it is compacted: readers, arrivals, producers, faults, and giving up."""

import gc
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from config.topic import TopicConfig
from protocol.records.batch import seal
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.scan import scan_batches
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.cleaner.cleaner import Cleaning, Slice
from storage.env import Env
from storage.errors import CorruptLog, DiskError, LogOffline
from storage.files.layout import LOG
from storage.log.lifecycle import roll_deadline
from storage.log.log import Log
from storage.posix import real_env
from storage.retention.cleanability import CleanReason
from storage.segment.removal import RemovedSegments
from storage.segment.segment import Segment
from storage.zones.zone_map import Zone
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.cleaning import COMPACT, MEMORY, clean, verdict
from tests.support.records.logs import (
    LOG_PATH,
    UNCLEAN,
    append_bytes,
    make_durable,
    open_log,
    records_of,
    reopened,
)

NOW = 1_700_000_000_000


def put(log: Log, *keys: bytes, value: bytes | None = b"v", at: int = NOW, **batch: object) -> int:
    rows = [(at, key, value) for key in keys]
    return append_bytes(log, build_batch(rows, **batch)).base_offset  # type: ignore[arg-type]


def closed(log: Log) -> None:
    """Ends the active segment, durably."""
    log.roll()
    make_durable(log)


def three_segments(env: Env, **settings: object) -> Log:
    log = open_log(env, cleanup_policy=COMPACT, **settings)
    for number in range(3):
        put(log, b"a", b"b%d" % number, b"c")
        closed(log)
    return log


def offsets_on(env: Env) -> CleanerOffsets:
    return CleanerOffsets(env.fs, "/data")


def drain(slices: Iterator[Slice]) -> None:
    """The rest of a run."""
    for part in slices:
        if part.in_turn is not None:
            part.in_turn()


def leftovers(env: Env, path: str = LOG_PATH) -> list[str]:
    names = [entry.name for entry in env.fs.list_dir(path)]
    return [name for name in names if name.endswith((".cleaned", ".swap"))]


def zones_of(log: Log) -> list[Zone]:
    indexes, rules = log.search.lookup
    return [
        zone
        for segment in log.snapshot.segments[:-1]
        for zone in indexes.of(segment, segment.size_bytes, rules).zones.zones()
    ]


def test_readers_that_began_before_read_on(tmp_path: Path) -> None:
    env, path = real_env(), str(tmp_path / "t-0")
    log = open_log(env, path=path, cleanup_policy=COMPACT, file_delete_delay_ms=0)
    for number in range(3):
        put(log, b"a", b"b%d" % number, at=env.clock.now_ms())
        closed(log)
    slices = [log.read(offset, 1 << 20, up_to=6, min_one_batch=True) for offset in (0, 2, 4)]
    before = log.snapshot
    bytes_before = [part.read() for part in slices]
    seen: list[list[int]] = []

    run = clean(
        log, env, CleanerOffsets(env.fs, str(tmp_path)),
        between=lambda: seen.append([record.offset for record in records_of(log)]),
    )  # fmt: skip

    assert [part.read() for part in slices] == bytes_before
    assert [segment.file().read_at(0, 9) for segment in before.segments[:3]]
    graves = RemovedSegments(env.clock)
    graves.bury(run.replaced, 0)
    graves.step()
    assert [part.read() for part in slices] == bytes_before
    assert before.segments[0].file().read_at(0, 1 << 20) == bytes_before[0]
    assert all(offsets in ([0, 1, 2, 3, 4, 5], [1, 3, 4, 5]) for offsets in seen)
    assert seen[0] != seen[-1]
    assert [r.offset for r in records_of(log)] == [1, 3, 4, 5]
    assert {file.name for file in (tmp_path / "t-0").iterdir()} & {
        "00000000000000000002.log", "00000000000000000004.log", "00000000000000000000.log.deleted",
    } == set()  # fmt: skip


def test_arrivals_are_carried_over_and_neighbours_become_one_segment() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env, cleanup_policy=COMPACT)
    arrivals = []
    for number in range(3):
        arrivals.append(clock.now_ms())
        put(log, b"a", b"b%d" % number, at=5000 + number)
        clock.advance(60_000)
        closed(log)
    clean(log, env, offsets_on(env))
    assert [segment.base_offset for segment in log.snapshot.segments] == [0, 6]
    again = reopened(log, env)
    zones = zones_of(again)
    assert (zones[0].first_arrival_ms, zones[-1].last_arrival_ms) == (arrivals[0], arrivals[2])
    assert {zone.flags for zone in zones} == {0}, "nothing is estimated"
    assert sum(zone.record_count for zone in zones) == 4
    assert (zones[0].min_timestamp, zones[-1].max_timestamp) == (5000, 5002)


def file_times(env: Env) -> dict[str, int]:
    return {each.name: each.mtime_ms for each in env.fs.list_dir(LOG_PATH)}


def test_a_new_segment_has_the_file_time_of_the_newest_it_was_made_of() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env, cleanup_policy=COMPACT)
    for number in range(3):
        put(log, b"a", b"b%d" % number)
        clock.advance(60_000)
        closed(log)
    newest = file_times(env)["00000000000000000004.log"]
    clock.advance(3_600_000)
    clean(log, env, offsets_on(env))
    assert [segment.base_offset for segment in log.snapshot.segments] == [0, 6]
    assert file_times(env)["00000000000000000000.log"] == newest
    assert newest > NOW


def test_a_zone_never_says_less_than_the_zones_it_was_made_of() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env, cleanup_policy=COMPACT, horolog_zone_ms=1, segment_bytes=40_000)
    arrived: dict[int, int] = {}
    for number in range(300):
        clock.advance(number % 7 * 3)
        arrived[put(log, b"%d" % (number % 90), value=bytes(500), at=number)] = clock.now_ms()
    closed(log)
    clean(log, env, offsets_on(env))
    zones = zones_of(log)
    assert len(zones) > 3
    for record in records_of(log)[:-1]:
        at = max((zone for zone in zones if zone.first_offset <= record.offset), key=lambda z: z[0])
        assert at.first_arrival_ms <= arrived[record.offset] <= at.last_arrival_ms
        assert at.min_timestamp <= record.timestamp <= at.max_timestamp
    for before, after in pairwise(zones):
        assert before.last_arrival_ms <= after.first_arrival_ms


def test_a_segment_ends_where_those_it_was_made_of_ended() -> None:
    env = sim_env()
    log = open_log(env, cleanup_policy=COMPACT, segment_bytes=200)
    for _ in range(4):
        put(log, b"a", value=bytes(60))
        closed(log)
    clean(log, env, offsets_on(env))
    ends = []
    for segment in log.snapshot.segments[:-1]:
        rows = scan_batches(segment.file().read_at(0, 1 << 20)).batches
        ends.append(rows[-1][2] + 1)
        assert all(row[4] == -1 for row in rows if not row[6]), "an empty batch claims no time"
    assert ends == [segment.base_offset for segment in log.snapshot.segments[1:]]
    delete = {"cleanup_policy": frozenset({"delete"}), "segment_bytes": 200}
    log.close()
    assert [r.offset for r in records_of(open_log(env, UNCLEAN, **delete))] == [3]


def test_a_producer_that_resends_after_all_its_records_went_is_known() -> None:
    env = sim_env()
    log = open_log(env, cleanup_policy=COMPACT)
    batch = {"producer_id": 9, "producer_epoch": 0}
    put(log, b"a", b"b", base_sequence=0, **batch)
    put(log, b"a", b"b", base_sequence=2, **batch)
    put(log, b"a", b"b")
    closed(log)
    clean(log, env, offsets_on(env))
    log.close()
    for entry in env.fs.list_dir(LOG_PATH):
        if entry.name.endswith(".snapshot"):
            env.fs.remove(f"{LOG_PATH}/{entry.name}")
    again = open_log(env, UNCLEAN, cleanup_policy=COMPACT)
    assert [record.offset for record in records_of(again)] == [4, 5]
    resent = build_batch([(NOW, b"a", b"v"), (NOW, b"b", b"v")], base_sequence=2, **batch)  # type: ignore[arg-type]
    assert append_bytes(again, resent).duplicate
    assert put(again, b"z", base_sequence=4, **batch) == 6


def test_the_active_segment_supersedes_nothing() -> None:
    env = sim_env()
    log = three_segments(env)
    put(log, b"a", b"c")
    make_durable(log)
    clean(log, env, offsets_on(env))
    assert [record.offset for record in records_of(log)] == [1, 4, 6, 7, 8, 9, 10]


def test_records_without_key_from_before_go_and_are_counted() -> None:
    env = sim_env()
    log = open_log(env)
    append_bytes(log, build_batch([(NOW, None, b"1"), (NOW, b"a", b"2"), (NOW, None, b"3")]))
    closed(log)
    log.reconfigure(TopicConfig(cleanup_policy=COMPACT))
    run = clean(log, env, offsets_on(env))
    assert [record.offset for record in records_of(log)] == [1]
    assert run.stats.keyless_records == 2


def damage(log: Log) -> None:
    """A bit of the second segment flips, and its indexes have been looked at before."""
    segment = log.snapshot.segments[1]
    at = segment.size_bytes - 5
    bad = bytes([segment.file().read_at(at, 1)[0] ^ 1])
    segment.file().write_at(at, bad)


def bomb(log: Log) -> None:
    """A batch that would unpack to more than the topic allows."""
    log.reconfigure(TopicConfig(cleanup_policy=COMPACT, max_decompressed_message_bytes=1 << 24))
    append_bytes(log, build_batch([(NOW, bytes(1 << 20), b"")], codec=Codec.GZIP))
    closed(log)
    log.reconfigure(TopicConfig(cleanup_policy=COMPACT, max_decompressed_message_bytes=1 << 16))


def lying_count(log: Log) -> None:
    """A batch whose CRC is right and whose records are fewer than it says."""
    segment = log.snapshot.segments[1]
    batch = bytearray(segment.file().read_at(0, segment.size_bytes))
    batch[60] = 9
    seal(batch, 0, len(batch))
    segment.file().write_at(0, bytes(batch))


@pytest.mark.parametrize("spoil", [damage, bomb, lying_count], ids=lambda each: each.__name__)
def test_what_cannot_be_read_stops_the_run_and_nothing_is_lost(spoil) -> None:  # type: ignore[no-untyped-def]
    env = sim_env()
    log = three_segments(env)
    verdict(log, env, offsets_on(env))
    spoil(log)
    segments = log.snapshot.segments
    offsets = offsets_on(env)
    with pytest.raises(CorruptLog, match=r"0000\.log|0003\.log|0009\.log"):
        clean(log, env, offsets)
    assert log.snapshot.segments == segments
    assert not leftovers(env)
    assert offsets.first_dirty == {}
    assert not log.compaction.is_running


def test_each_call_to_the_disk_fails_once_and_the_next_run_succeeds() -> None:
    for operation in ("write", "sync", "create", "rename", "sync directory", "truncate"):
        for error in ("eio", "enospc"):
            for skip in range(40):
                fs = SimFileSystem()
                env = sim_env(fs=fs)
                log = three_segments(env)
                wanted = [4, 6, 7, 8, 1]
                fs.inject(operation, path="/data/t-0", error=error, skip=skip)
                offsets = offsets_on(env)
                try:
                    clean(log, env, offsets)
                except (DiskError, LogOffline):
                    found = [record.offset for record in records_of(log)]
                    assert found in (list(range(9)), sorted(wanted))
                else:
                    break  # this call was not reached any more
                fs._faults.clear()
                assert not log.compaction.is_stuck
                clean(log, env, offsets)
                assert [record.offset for record in records_of(log)] == sorted(wanted)
                assert not leftovers(env)
                assert [r.offset for r in records_of(reopened(log, env))] == sorted(wanted)
            else:
                pytest.fail(f"{operation} went on failing")


def test_a_run_that_is_given_up_leaves_nothing_behind() -> None:
    for steps in range(1, 12):
        env = sim_env()
        log = three_segments(env)
        offsets = offsets_on(env)
        run = Cleaning(log, verdict(log, env, offsets), MEMORY, env)
        slices = run.slices()
        for _ in range(steps):
            part = next(slices, None)
            if part is not None and part.in_turn is not None:
                part.in_turn()
        slices.close()
        assert not log.compaction.is_running
        assert log.compaction.unfinished is None
        assert not leftovers(env), steps
        clean(log, env, offsets)
        assert [record.offset for record in records_of(log)] == [1, 4, 6, 7, 8]
        assert not leftovers(env)


def test_a_run_tells_the_memory_that_it_has_taken() -> None:
    env = sim_env()
    log = three_segments(env)
    run = Cleaning(log, verdict(log, env, offsets_on(env)), MEMORY, env)
    assert run.memory_bytes == 0
    seen = []
    for part in run.slices():
        if part.in_turn is not None:
            part.in_turn()
        seen.append(run.memory_bytes)
    assert max(seen) > MEMORY.chunk_bytes
    assert max(seen) <= MEMORY.map_bytes + MEMORY.chunk_bytes + 4096


def test_no_segment_leaves_a_log_while_it_is_compacted() -> None:
    env = sim_env()
    log = three_segments(env)
    run = Cleaning(log, verdict(log, env, offsets_on(env)), MEMORY, env)
    for part in run.slices():
        if part.in_turn is not None:
            part.in_turn()
        assert log.remove_segments(6).segments == ()
    assert [segment.base_offset for segment in log.remove_segments(9).segments] == [0]


def test_a_log_that_is_closed_meanwhile_takes_no_new_segment() -> None:
    env = sim_env()
    log = three_segments(env)
    slices = Cleaning(log, verdict(log, env, offsets_on(env)), MEMORY, env).slices()
    before = log.snapshot.segments
    began = next(slices).in_turn
    assert began is not None
    began()
    log.abandon()
    with pytest.raises(LogOffline):
        drain(slices)
    slices.close()
    assert log.snapshot.segments == before
    assert not leftovers(env)


def test_what_the_disk_does_not_have_yet_waits() -> None:
    env = sim_env()
    log = open_log(env, cleanup_policy=COMPACT, horolog_durability="os")
    put(log, b"a", b"a")
    log.roll()
    assert verdict(log, env, offsets_on(env)).because == CleanReason.UNSETTLED
    make_durable(log)
    assert verdict(log, env, offsets_on(env)).because == CleanReason.RATIO


def test_a_time_in_the_future_holds_no_compaction_off_and_none_back() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    lags = {"min_compaction_lag_ms": 1000, "max_compaction_lag_ms": 5000}
    log = open_log(env, cleanup_policy=COMPACT, **lags)
    put(log, b"a", b"a", at=NOW + 10**12)
    assert roll_deadline(log, NOW) == NOW + 5000
    closed(log)
    offsets = offsets_on(env)
    assert verdict(log, env, offsets).because == CleanReason.TOO_YOUNG
    clock.advance(1000)
    assert verdict(log, env, offsets).because == CleanReason.RATIO
    clock.advance(4001)
    found = verdict(log, env, offsets)
    assert (found.because, found.delay_ms) == (CleanReason.OVERDUE, 1)
    clean(log, env, offsets)
    assert verdict(log, env, offsets)[4:6] == (0, CleanReason.CLEAN)


def test_a_bound_on_the_lag_is_kept_even_below_the_floor_for_rolls() -> None:
    env = sim_env(clock=SimClock(NOW))
    log = open_log(env, cleanup_policy=COMPACT, max_compaction_lag_ms=300)
    put(log, b"a")
    assert roll_deadline(log, NOW) == NOW + 300
    plain = open_log(env, path="/data/p-0", segment_ms=300)
    put(plain, b"a")
    assert roll_deadline(plain, NOW) == NOW + 10_000


def test_where_the_clean_part_ends_survives_a_restart_and_no_new_log_of_the_name() -> None:
    env = sim_env()
    log = three_segments(env)
    offsets = offsets_on(env)
    clean(log, env, offsets)
    again = offsets_on(env)
    assert again.gaps_below(("t", 0)) is None
    assert again.load() == []
    assert again.gaps_below(("t", 0)) == 9
    again.settle({("t", 0): 9})
    assert again.first_dirty == {("t", 0): 9}
    again.settle({("t", 0): 8})
    assert again.first_dirty == {}, "the log was cut"
    offsets.forget(("t", 0))
    fresh = offsets_on(env)
    fresh.load()
    assert fresh.first_dirty == {}
    assert fresh.gaps_below(("t", 0)) == 0


def test_the_files_of_a_second_run_do_not_mix_with_those_of_the_first() -> None:
    env = sim_env()
    log = three_segments(env)
    offsets = offsets_on(env)
    first = clean(log, env, offsets)
    old = log.snapshot
    put(log, b"a", b"c")
    closed(log)
    clean(log, env, offsets)
    graves = RemovedSegments(env.clock)
    graves.bury(first.replaced, 0)
    graves.step()
    assert [record.offset for record in records_of(log)] == [1, 4, 7, 9, 10]
    stale = old.segments[0].file().read_at(0, 1 << 20)
    assert [row[6] for row in scan_batches(stale).batches] == [1, 1, 3]
    assert env.fs.exists(f"{LOG_PATH}/{0:020d}{LOG}")


@pytest.mark.parametrize("lag_ms", [1, 10**9])
def test_segments_that_were_replaced_or_removed_are_let_go(lag_ms: int) -> None:
    """Each of them keeps a descriptor of its own, and with it the space of a file that is gone."""
    env = sim_env(clock=SimClock(NOW))
    log = three_segments(env, max_compaction_lag_ms=lag_ms)
    offsets = offsets_on(env)
    verdict(log, env, offsets)
    run = clean(log, env, offsets)
    run.replaced.clear()
    assert in_memory(log) == list(log.snapshot.segments)
    verdict(log, env, offsets)
    log.remove_segments(log.snapshot.active.base_offset)
    assert in_memory(log) == list(log.snapshot.segments)
    verdict(log, env, offsets)
    log.abandon()
    assert (log.compaction.ages, log.compaction.judged) == (None, None)


def in_memory(log: Log) -> list[Segment]:
    """Segments of the log that something refers to, in order."""
    found = [each for each in gc.get_objects() if isinstance(each, Segment)]
    return sorted((s for s in found if s.files is log.files), key=lambda s: s.base_offset)
