"""Facts for the choice of the next log to compact, from the files of a directory alone."""

from config.topic import TopicConfig
from pipeline.directories.partitions import LocalPartition
from pipeline.directories.segment_facts import partition_facts
from storage.env import FileSystem
from storage.errors import CorruptLog, FileMissing
from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import (
    CLEANER_HORIZONS_FILE,
    CLEANER_OFFSETS_FILE,
    LOG,
    ZONES,
    segment_name,
)
from storage.retention.cleanability import CleaningFacts, CleaningLimits, SegmentAge
from storage.retention.plan import SegmentFacts, arrival_of
from storage.scan.batch_walk import batch_at
from storage.zones.rows import ROW_BYTES, iter_rows, sound_rows

NO_TIME = -1
_FIRST_ARRIVAL = 6


def clean_below(fs: FileSystem, partition: LocalPartition) -> int | None:
    """The offset up to which the log was compacted; None when no run has stored one."""
    load = OffsetCheckpoint(fs, f"{partition.directory}/{CLEANER_OFFSETS_FILE}").load()
    return load.offsets.get(partition.name)


def cleaning_facts(fs: FileSystem, partition: LocalPartition) -> CleaningFacts:
    """As the broker's cleaner would see the log. DiskError."""
    facts = partition_facts(fs, partition.path, partition.start_offset)
    horizons = OffsetCheckpoint(fs, f"{partition.directory}/{CLEANER_HORIZONS_FILE}").load()
    checkpoint = clean_below(fs, partition)
    ages = [_age(fs, partition.path, each) for each in facts.segments[:-1]]
    start, watermark, end = facts.log
    active = facts.segments[-1].base_offset if facts.segments else start
    return CleaningFacts(
        start, end, -1 if checkpoint is None else checkpoint, watermark, ages, active,
        horizons.offsets.get(partition.name, NO_TIME),
    )  # fmt: skip


def cleaning_limits(config: TopicConfig) -> CleaningLimits:
    """Limits from a topic's settings; where lags contradict one another, the largest one wins."""
    most = config.max_compaction_lag_ms
    return CleaningLimits(
        config.min_cleanable_dirty_ratio, min(config.min_compaction_lag_ms, most), most
    )


def _age(fs: FileSystem, path: str, facts: SegmentFacts) -> SegmentAge:
    if not facts.size_bytes:
        return SegmentAge(facts.base_offset, 0, NO_TIME, NO_TIME)
    newest = arrival_of(facts)
    if facts.record_ms >= 0:
        newest = min(newest, facts.record_ms)
    first = _first_time(fs, f"{path}/{segment_name(facts.base_offset, LOG)}", facts.size_bytes)
    arrival = _first_arrival(fs, f"{path}/{segment_name(facts.base_offset, ZONES)}")
    arrival = facts.modified_ms if arrival is None else arrival
    oldest = min(first, arrival) if first > 0 else arrival
    return SegmentAge(facts.base_offset, facts.size_bytes, oldest, newest)


def _first_time(fs: FileSystem, path: str, size: int) -> int:
    file = fs.open(path, write=False)
    try:
        return batch_at(file, 0, size).max_timestamp
    except CorruptLog:
        return NO_TIME
    finally:
        file.close()


def _first_arrival(fs: FileSystem, path: str) -> int | None:
    try:
        file = fs.open(path, write=False)
    except FileMissing:
        return None
    try:
        row = file.read_at(0, ROW_BYTES)
    finally:
        file.close()
    if len(row) < ROW_BYTES or sound_rows(row)[0] != 1:
        return None
    return next(iter_rows(row))[_FIRST_ARRIVAL]
