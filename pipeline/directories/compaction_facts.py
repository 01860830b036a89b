"""Facts for the choice of the next log to compact, from the files of a directory alone.

Unlike `storage.cleaner.cleanable_logs`, which has a broker's logs, it knows of no open transaction
and of nothing that is not on the disk yet.
"""

from pipeline.directories.partitions import LocalPartition
from pipeline.directories.segment_facts import partition_facts
from protocol.records.batch import NO_TIMESTAMP
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
from storage.retention.cleanability import CleaningFacts, SegmentAge, age_of, began_ms
from storage.retention.plan import SegmentFacts
from storage.scan.batch_walk import batch_at
from storage.zones.rows import ROW_BYTES, sound_zones


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
        horizons.offsets.get(partition.name, NO_TIMESTAMP),
    )  # fmt: skip


def _age(fs: FileSystem, path: str, facts: SegmentFacts) -> SegmentAge:
    if not facts.size_bytes:
        return age_of(facts, NO_TIMESTAMP)
    first = _first_time(fs, f"{path}/{segment_name(facts.base_offset, LOG)}", facts.size_bytes)
    arrival = _first_arrival(fs, f"{path}/{segment_name(facts.base_offset, ZONES)}")
    return age_of(facts, began_ms(first, facts.modified_ms if arrival is None else arrival))


def _first_time(fs: FileSystem, path: str, size: int) -> int:
    file = fs.open(path, write=False)
    try:
        return batch_at(file, 0, size).max_timestamp
    except CorruptLog:
        return NO_TIMESTAMP
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
    zones, _ = sound_zones(row)
    return zones[0].first_arrival_ms if zones else None
