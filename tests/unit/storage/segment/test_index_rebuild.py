"""Indexes that are rebuilt from a log are those that appends made, up to where the log is sound."""

import random

import pytest

from storage.env import Env
from storage.files.layout import LOG, OFFSET_INDEX, TIME_INDEX, ZONES
from storage.files.partition_files import FilePool, PartitionFiles
from storage.scan.log_scan import LogScan, ScannedChunk
from storage.segment.index_rebuild import IndexRebuild, write_indexes
from storage.segment.segment import IndexRules, Segment
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import LOG_PATH, append, open_log

NOW_MS = 1_760_000_000_000
BATCHES = 200
SUFFIXES = (OFFSET_INDEX, TIME_INDEX, ZONES)


@pytest.fixture
def env() -> Env:
    return sim_env()


@pytest.fixture
def rules(env: Env) -> IndexRules:
    """Of the log that the test finds in `LOG_PATH`: one segment, closed by a stop."""
    log = open_log(env, index_interval_bytes=256, horolog_zone_bytes=4096)
    dice = random.Random(3)
    for _ in range(BATCHES):
        append(log, NOW_MS + dice.randrange(-5000, 5000), NOW_MS, value=bytes(40))
    log.close()
    return IndexRules.of(log.config)


def segment_of(env: Env) -> Segment:
    files = PartitionFiles(env.fs, FilePool(env.fs), LOG_PATH)
    segment = Segment(files, 0, 0, NOW_MS)
    segment.size_bytes = segment.file().size()
    return segment


def contents(env: Env, segment: Segment) -> list[bytes]:
    return [env.fs.read_bytes(segment.path_of(suffix)) for suffix in SUFFIXES]


def test_offset_and_time_index_are_as_appends_made_them(env: Env, rules: IndexRules) -> None:
    segment = segment_of(env)
    written = contents(env, segment)
    for suffix in (OFFSET_INDEX, TIME_INDEX):
        env.fs.remove(segment.path_of(suffix))
    rebuild = IndexRebuild(segment, rules)
    scan = LogScan(segment.file(), limit=segment.size_bytes)
    rebuild.read(scan)

    write_indexes(rebuild.end(scan, closed=False))

    assert all(written)
    assert contents(env, segment) == written


def test_of_a_damaged_log_they_cover_the_sound_part(env: Env, rules: IndexRules) -> None:
    segment = segment_of(env)
    file = env.fs.open(segment.path_of(LOG))
    file.write_at(segment.size_bytes // 2, b"\xff")
    file.close()
    taken: list[ScannedChunk] = []
    rebuild = IndexRebuild(segment, rules)
    scan = LogScan(segment.file(), limit=segment.size_bytes)
    rebuild.read(scan, taken.append)

    offsets, times, zones = rebuild.end(scan, closed=True)

    assert 0 < scan.end_position < segment.size_bytes
    assert sum(len(chunk.rows) for chunk in taken) * 2 == scan.next_offset
    assert offsets.last_entry.position < scan.end_position
    assert times.last_entry.offset < scan.next_offset
    assert sum(zone.record_count for zone in zones.zones()) == scan.next_offset


def test_nobody_hears_of_them_before_they_are_told(env: Env, rules: IndexRules) -> None:
    segment = segment_of(env)
    before = segment.max_timestamp
    rebuild = IndexRebuild(segment, rules)
    scan = LogScan(segment.file(), limit=segment.size_bytes)
    rebuild.read(scan)
    rebuild.end(scan, closed=True)
    assert (segment.max_timestamp, segment.indexes) == (before, None)

    rebuild.tell(scan.end_position)

    assert segment.max_timestamp == rebuild.indexes.times.last_entry.timestamp > NOW_MS
