"""The index files of a segment made from its log alone, into another folder, as the broker does it.

Arrival times are in no log: rows of a zone map that is there and fits the log are taken over, and
what is missing is estimated and says so, as after the loss of the file in a broker.

Unlike a broker (`storage.segment.index_rebuild.rebuild_indexes`), it changes nothing beside the log
and goes on to the end of the good part of one that is damaged.
"""

from pathlib import Path
from typing import NamedTuple

from storage.env import FileSystem
from storage.errors import CorruptLog, FileMissing
from storage.files.layout import LOG, OFFSET_INDEX, SPAN, TIME_INDEX, ZONES, segment_name
from storage.files.partition_files import FilePool, PartitionFiles
from storage.scan.log_scan import LogScan
from storage.segment.index_rebuild import IndexRebuild, write_indexes
from storage.segment.segment import IndexRules, Segment


class Rebuilt(NamedTuple):
    """The files rebuilt for a segment, and whether they equal those beside its log."""

    path: str
    """Of the `.log`."""
    records_end: int
    same: tuple[str, ...]
    """Suffixes of files that are byte for byte the same."""
    different: tuple[str, ...]
    missing: tuple[str, ...]
    fault: str = ""
    """Place of the damage in the log itself; nothing was made after that."""


def rebuild_segment(
    fs: FileSystem, directory: str, base_offset: int, target: str, rules: IndexRules,
    *, is_active: bool,
) -> Rebuilt:  # fmt: skip
    """Write index, time index and zone map of a segment into `target`. DiskError.

    `is_active`: it takes appends still, so its time index lacks the entry that a closed one ends
    with.
    """
    path = f"{directory}/{segment_name(base_offset, LOG)}"
    log = fs.open(path, write=False)
    try:
        segment = Segment(
            PartitionFiles(fs, FilePool(fs), target), base_offset, log.size(), _mtime_ms(path)
        )
        segment.pinned = log
        _take_over_zones(fs, directory, segment)
        fault, end_offset = _rebuild(segment, log.size(), rules, is_active=is_active)
    finally:
        log.close()
    return _compared(fs, directory, target, base_offset)._replace(
        path=path, records_end=end_offset, fault=fault
    )


def _rebuild(
    segment: Segment, limit: int, rules: IndexRules, *, is_active: bool
) -> tuple[str, int]:
    """The fault of the log ("" for none) and the offset after its good part."""
    base = segment.base_offset
    scan = LogScan(segment.file(), limit=limit, next_offset=base, below=base + SPAN)
    rebuild = IndexRebuild(segment, rules)
    rebuild.read(scan)
    write_indexes(rebuild.end(scan, closed=not is_active))
    fault = "" if is_active else scan.fault
    return (f"at {scan.end_position} {fault}" if fault else ""), scan.next_offset


def _take_over_zones(fs: FileSystem, directory: str, segment: Segment) -> None:
    try:
        rows = fs.read_bytes(f"{directory}/{segment_name(segment.base_offset, ZONES)}")
    except FileMissing:
        return
    fs.write_atomically(segment.path_of(ZONES), rows)


def _compared(fs: FileSystem, directory: str, target: str, base_offset: int) -> Rebuilt:
    same: list[str] = []
    different: list[str] = []
    missing: list[str] = []
    for suffix in (OFFSET_INDEX, TIME_INDEX, ZONES):
        name = segment_name(base_offset, suffix)
        try:
            there = fs.read_bytes(f"{directory}/{name}")
        except FileMissing:
            missing.append(suffix)
            continue
        is_same = there == fs.read_bytes(f"{target}/{name}")
        (same if is_same else different).append(suffix)
    return Rebuilt("", -1, tuple(same), tuple(different), tuple(missing))


def _mtime_ms(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns // 1_000_000
    except OSError as error:
        raise CorruptLog(path, f"cannot be looked at: {error}") from error
