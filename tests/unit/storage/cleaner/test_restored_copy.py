"""A log that was cut, or is an older copy of itself: what was clean behind its end is forgotten."""

from protocol.records.builder import build_batch
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.env import Env
from storage.log.log import Log
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.cleaning import COMPACT, clean
from tests.support.records.logs import append_bytes, make_durable, open_log, records_of

NOW = 1_700_000_000_000
RETENTION_MS = 1000


def put(log: Log, key: bytes, value: bytes | None) -> None:
    append_bytes(log, build_batch([(NOW, key, value)]))


def started(env: Env, log: Log) -> CleanerOffsets:
    """What a start believes of the log."""
    offsets = CleanerOffsets(env.fs, "/data")
    assert offsets.load() == []
    offsets.settle({("t", 0): log.snapshot.log_end_offset})
    return offsets


def test_a_deleted_key_stays_deleted_when_the_log_grows_past_what_was_clean_before_a_cut() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env, cleanup_policy=COMPACT, delete_retention_ms=RETENTION_MS)
    put(log, b"k", b"secret")
    CleanerOffsets(env.fs, "/data").cleaned(log, 9, -1)  # as of when it was longer
    assert started(env, log).first_dirty == {}
    put(log, b"k", None)
    for number in range(9):
        put(log, b"%d" % number, b"v")
    log.roll()
    make_durable(log)
    offsets = started(env, log)
    for _ in range(2):
        clean(log, env, offsets)
        clock.advance(RETENTION_MS)
    assert [record.key for record in records_of(log)] == [b"%d" % number for number in range(9)]
