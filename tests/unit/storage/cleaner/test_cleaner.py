"""A log before and after its compaction: what stays, where, and in which files."""

import random

import pytest

from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.env import Env
from storage.log.log import Log
from tests.support.disk.simenv import sim_env
from tests.support.records.cleaning import COMPACT, MEMORY, Row, clean, compacted
from tests.support.records.logs import (
    LOG_PATH,
    append_bytes,
    first_from,
    make_durable,
    open_log,
    records_of,
    reopened,
)


def rows_of(log: Log) -> list[tuple[int, Row]]:
    return [(r.offset, (r.timestamp, r.key, r.value)) for r in records_of(log)]


def filled(
    env: Env, seed: int, batches: int = 40, codec: Codec = Codec.NONE
) -> tuple[Log, list[tuple[int, Row]]]:
    """A log of several closed segments, and what was appended."""
    dice = random.Random(seed)
    log = open_log(env, segment_bytes=900, cleanup_policy=COMPACT, index_interval_bytes=100)
    written: list[tuple[int, Row]] = []
    for _ in range(batches):
        rows: list[Row] = [
            (
                dice.choice((1000, 6000, -1)),
                b"k%d" % dice.randrange(9),
                b"v%d" % dice.getrandbits(40),
            )
            for _ in range(dice.randint(1, 4))
        ]
        base = append_bytes(log, build_batch(rows, codec=codec)).base_offset
        written += [(base + index, row) for index, row in enumerate(rows)]
    log.roll()
    make_durable(log)
    return log, written


@pytest.mark.parametrize("codec", Codec)
def test_the_last_record_of_each_key_stays_at_its_offset(codec: Codec) -> None:
    env = sim_env()
    log, written = filled(env, 1, codec=codec)
    end = log.snapshot.active.base_offset
    before = log.snapshot.size_bytes

    run = clean(log, env, CleanerOffsets(env.fs, "/data"))

    assert rows_of(log) == compacted(written, end)
    assert run.first_dirty == end
    assert log.snapshot.size_bytes < before
    assert run.stats.records_kept == len(compacted(written, end))


def test_the_files_are_those_of_a_log_that_was_never_cleaned_but_for_what_went() -> None:
    env = sim_env()
    log, written = filled(env, 2)
    clean(log, env, CleanerOffsets(env.fs, "/data"))
    names = {entry.name for entry in env.fs.list_dir(LOG_PATH)}
    assert not {name for name in names if name.endswith((".cleaned", ".swap"))}

    again = reopened(log, env)

    want = compacted(written, again.snapshot.active.base_offset)
    assert rows_of(again) == want
    for timestamp in (0, 1000, 1001, 6000, 6001):
        found = again.search.first_at_or_after(timestamp, below=1 << 40)
        model = first_from([(row[0], offset) for offset, row in want], timestamp)
        assert (None if found is None else (found.timestamp, found.offset)) == model


def test_a_search_on_a_topic_of_the_broker_s_time_finds_a_record_that_is_there() -> None:
    env = sim_env()
    log = open_log(env, cleanup_policy=COMPACT, message_timestamp_type="LogAppendTime")
    append_bytes(log, build_batch([(1, b"a", b"1"), (2, b"b", b"2")]))
    append_bytes(
        log, build_batch([(1, b"a", b"3")], producer_id=9, producer_epoch=0, base_sequence=0)
    )
    append_bytes(log, build_batch([(1, b"a", b"4")]))
    log.roll()
    make_durable(log)
    clean(log, env, CleanerOffsets(env.fs, "/data"))
    assert [offset for offset, _ in rows_of(log)] == [1, 3]
    found = [log.search.first_at_or_after(5, below=n) for n in (9, 1)]
    assert [None if each is None else each.offset for each in found] == [1, None]
    log.delete_records(2)
    later = log.search.first_at_or_after(5, below=9)
    assert later is not None
    assert later.offset == 3, "the batch of a producer in between is empty"


def test_a_full_map_leaves_the_rest_to_the_next_run() -> None:
    env = sim_env()
    log, written = filled(env, 3)
    offsets = CleanerOffsets(env.fs, "/data")
    small = MEMORY.__class__(24 * 8, 0.5, 512)
    ends = [0]
    while ends[-1] < log.snapshot.active.base_offset:
        run = clean(log, env, offsets, small)
        assert run.first_dirty > ends[-1], "no progress"
        assert run.map_utilisation <= 1
        ends.append(run.first_dirty)
    assert len(ends) > 5
    assert rows_of(log) == compacted(written, ends[-1])
