"""A verdict that is kept from look to look is never another than a new one would be."""

from protocol.records.builder import build_batch
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.log.log import Log
from storage.retention.cleanability import CleanReason
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.cleaning import COMPACT, clean, verdict
from tests.support.records.logs import append_bytes, make_durable, open_log

NOW, HOUR = 1_700_000_000_000, 3_600_000


def put(log: Log, size: int, key: bytes = b"k") -> None:
    append_bytes(log, build_batch([(NOW, key, bytes(size))]))


def test_what_reaches_the_disk_later_counts_from_then_on() -> None:
    env = sim_env(clock=SimClock(NOW))
    log = open_log(
        env, cleanup_policy=COMPACT, horolog_durability="os", min_cleanable_dirty_ratio=0.5
    )
    offsets = CleanerOffsets(env.fs, "/data")
    put(log, 1000)
    log.roll()
    make_durable(log)
    clean(log, env, offsets)
    put(log, 10, b"a")
    log.roll()
    make_durable(log)
    put(log, 5000, b"b")
    log.roll()
    assert verdict(log, env, offsets).because is CleanReason.RATIO_SMALL
    make_durable(log)
    assert verdict(log, env, offsets).because is CleanReason.RATIO


def test_a_deadline_that_passes_is_seen() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    lag = {"max_compaction_lag_ms": HOUR, "min_cleanable_dirty_ratio": 1.0}
    log = open_log(env, cleanup_policy=COMPACT, **lag)
    offsets = CleanerOffsets(env.fs, "/data")
    put(log, 10)
    log.roll()
    make_durable(log)
    for passed, because, delay in (
        (0, CleanReason.RATIO_SMALL, 0),
        (HOUR, CleanReason.RATIO_SMALL, 0),
        (1, CleanReason.OVERDUE, 1),
        (5, CleanReason.OVERDUE, 6),
    ):
        clock.advance(passed)
        found = verdict(log, env, offsets)
        assert (found.because, found.delay_ms) == (because, delay)
        assert verdict(log, env, offsets) == found


def test_a_segment_that_grows_old_enough_is_seen() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(
        env, cleanup_policy=COMPACT, min_compaction_lag_ms=HOUR, min_cleanable_dirty_ratio=0.0
    )
    offsets = CleanerOffsets(env.fs, "/data")
    put(log, 10)
    log.roll()
    make_durable(log)
    assert verdict(log, env, offsets).because is CleanReason.TOO_YOUNG
    clock.advance(HOUR)
    assert verdict(log, env, offsets).because is CleanReason.RATIO
