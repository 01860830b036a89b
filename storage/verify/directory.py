"""Verifies a data directory, or one partition of it, without changing anything in it.

Rules: opens files for reading only and takes no lock, so a broker may be at work. The missing mark
of a clean stop means that one is, or was killed. Data behind the recovery point is then judged as
far as it was written, since recovery, or the broker at work, makes the rest. A log whose segments
came or went while it was read is read again. Memory is bounded by a piece of a log and the indexes
of one segment.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from storage.env import FileSystem, parent_of
from storage.errors import FileMissing, StorageError
from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARKS_FILE,
    LEADER_EPOCHS_FILE,
    LOG_START_OFFSETS_FILE,
    RECOVERY_POINTS_FILE,
    PartitionName,
    parse_partition_dir,
)
from storage.files.partition_listing import PartitionListing, look_at
from storage.files.start_offsets import StartOffsets
from storage.producers.leader_epochs import LeaderEpochs
from storage.recovery.loading import DAMAGE_MARK
from storage.verify.producers import ProducerProof
from storage.verify.report import PartitionReport
from storage.verify.segment import SegmentProof, WholeLog

ATTEMPTS = 3
"""Number of times that a log is read that changes meanwhile."""
_CHECKPOINTS = (HIGH_WATERMARKS_FILE, RECOVERY_POINTS_FILE)

Progress = Callable[[int], object]
Checkpoints = Mapping[str, Mapping[PartitionName, int]]


class NoDataDirectory(StorageError):  # noqa: N818 - the state it found
    """There is neither a partition nor a segment in the directory."""


class DirectorySurvey(NamedTuple):
    """The parts to verify."""

    partitions: tuple[str, ...]
    """Paths of their directories."""
    size_bytes: int
    is_clean: bool
    """True when the directory was left by a clean stop: no broker writes in it."""
    checkpoints: Checkpoints
    damage: tuple[str, ...]
    """Checkpoint files of the directory that cannot be read, and why."""


def survey(fs: FileSystem, path: str) -> DirectorySurvey:
    """List a data directory or a partition's. DiskError, NoDataDirectory."""
    path = path.rstrip("/") or "/"
    top = path
    names = sorted(entry.name for entry in fs.list_dir(path) if entry.is_dir)
    inside = (f"{path}/{name}" for name in names if parse_partition_dir(name))
    found = tuple(each for each in inside if look_at(fs, each).logs)
    if not found and look_at(fs, path).logs:
        found, top = (path,), parent_of(path)
    is_clean = fs.exists(f"{top}/{CLEAN_SHUTDOWN_FILE}")
    if not found and not is_clean:
        raise NoDataDirectory(path, "no partition (NAME-0, ...) and no .log file is there")
    loads = {name: OffsetCheckpoint(fs, f"{top}/{name}").load() for name in _CHECKPOINTS}
    loads[LOG_START_OFFSETS_FILE] = StartOffsets(fs, top).load()
    size = sum(entry.size_bytes for each in found for entry in look_at(fs, each).logs.values())
    return DirectorySurvey(
        found,
        size,
        is_clean,
        {name: load.offsets for name, load in loads.items()},
        tuple(load.damage for load in loads.values() if load.damage),
    )


def verify_partition(
    fs: FileSystem, path: str, whole: DirectorySurvey, progress: Progress
) -> PartitionReport:
    """Prove one partition. DiskError when the disk fails; FileMissing when the partition went."""
    for attempt in range(ATTEMPTS):
        before = look_at(fs, path)
        try:
            report = _PartitionProof(fs, path, before, whole, progress).run()
        except FileMissing:
            if whole.is_clean or attempt + 1 == ATTEMPTS:
                raise
            continue
        if report.verdict == "sound" or whole.is_clean or _still_there(look_at(fs, path), before):
            return report
    report.add("note", "", "segments came or went each time this was read: try again")
    return report


def _still_there(now: PartitionListing, before: PartitionListing) -> bool:
    """True when the closed segments are those that were read."""
    closed = before.bases[:-1]
    return now.bases[: len(before.bases)] == before.bases and all(
        now.logs[base] == before.logs[base] for base in closed
    )


class _PartitionProof:
    """One pass over one partition."""

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        listing: PartitionListing,
        whole: DirectorySurvey,
        progress: Progress,
    ) -> None:
        self._fs = fs
        self._listing = listing
        self._whole = whole
        self._progress = progress
        self._report = PartitionReport(path.rpartition("/")[2], path)

    def run(self) -> PartitionReport:
        report, bases = self._report, self._listing.bases
        epochs = LeaderEpochs(self._fs, f"{report.path}/{LEADER_EPOCHS_FILE}")
        epochs.load()
        if epochs.damage is not None:
            report.add("wrong", LEADER_EPOCHS_FILE, epochs.damage)
        report.proved.epochs = len(epochs.entries)
        self._note_names()
        if bases:
            self._prove(bases, epochs)
            self._check_offsets()
        return report

    def _prove(self, bases: list[int], epochs: LeaderEpochs) -> None:
        report, is_clean = self._report, self._whole.is_clean
        snapshots = list(self._listing.snapshots)
        producers = ProducerProof(self._fs, report, bases[0], snapshots)
        start = self._offset_of(LOG_START_OFFSETS_FILE, bases[0])
        report.start_offset = max(bases[0], start)
        log = WholeLog(self._fs, report, producers, epochs, self._progress)
        recovery_point = self._offset_of(RECOVERY_POINTS_FILE, 0)
        for base, following in zip(bases, [*bases[1:], None], strict=True):
            beside = self._listing.beside.get(base, ())
            is_open = not is_clean and (following is None or following > recovery_point)
            proof = SegmentProof(log, base, beside, following=following, is_open=is_open)
            report.end_offset = proof.run()
        producers.finish(is_open=not is_clean)
        self._check_epochs(epochs)

    def _check_epochs(self, epochs: LeaderEpochs) -> None:
        """Checks the begin of the first and the last epoch."""
        report, first, last = self._report, epochs.earliest, epochs.latest
        if first is None or last is None:
            return
        if last.start_offset > report.end_offset and report.verdict != "damaged":
            what = f"{last} begins behind the end of the log, {report.end_offset}"
            report.add("wrong" if self._whole.is_clean else "note", LEADER_EPOCHS_FILE, what)
        if first.start_offset > report.start_offset:
            what = (
                f"records from {report.start_offset} to before {first.start_offset} have no epoch"
            )
            report.add("note", LEADER_EPOCHS_FILE, what)

    def _check_offsets(self) -> None:
        """Checks that the offsets of the directory's checkpoints are within the log."""
        report = self._report
        for file in self._whole.checkpoints:
            offset = self._offset_of(file, report.end_offset)
            if offset > report.end_offset and report.verdict != "damaged":
                what = f"says {offset}, but the log ends at {report.end_offset}"
                report.add("wrong", f"../{file}", what)

    def _offset_of(self, file: str, default: int) -> int:
        """A checkpoint's offset for this log."""
        name = parse_partition_dir(self._report.name)
        offsets = self._whole.checkpoints[file]
        return default if name is None else offsets.get(name, default)

    def _note_names(self) -> None:
        """Files that say something by being there."""
        if DAMAGE_MARK in self._listing.others:
            self._report.add("note", DAMAGE_MARK, "a recovery found damage: takes no writes")
        for name in sorted(self._listing.leftovers):
            self._report.add("note", name, "is on its way out, or was left over by a crash")
        orphans = self._listing.beside.keys() - self._listing.logs.keys()
        for base in sorted(orphans):
            self._report.add("note", f"{base:020d}", "has index files, but no .log")
