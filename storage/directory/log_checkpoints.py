"""Checkpoints of a data directory, by log name: recovery points, starts, high watermarks, and the
ends of compaction.

Rules: Kafka's files know names only, so an entry of a deleted log would be taken for that of its
successor. A file's entries of a name are removed, durably, before a log of that name is created
(`forget`). One thread at a time writes, and reads the logs that exist then: no entry from before a
deletion is written after it.
"""

from collections.abc import Callable, Mapping

from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.env import FileSystem
from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import (
    HIGH_WATERMARKS_FILE,
    RECOVERY_POINTS_FILE,
    PartitionName,
)
from storage.files.start_offsets import StartOffsets
from storage.locks import Lock
from storage.log.log import Log

Logs = Mapping[tuple[str, int], Log]


class LogCheckpoints:
    """The checkpoint files of one data directory. Any thread."""

    def __init__(self, fs: FileSystem, log_dir: str, logs: Callable[[], Logs]) -> None:
        """Nothing is read. `logs` gives those that exist."""
        self.cleaner = CleanerOffsets(fs, log_dir)
        self.recovery_points: Mapping[PartitionName, int] = {}
        """As `load` found them."""
        self.start_offsets: Mapping[PartitionName, int] = {}
        """As `load` found them."""
        self._logs = logs
        self._recovery_points = OffsetCheckpoint(fs, f"{log_dir}/{RECOVERY_POINTS_FILE}")
        self._start_offsets = StartOffsets(fs, log_dir)
        self._high_watermarks = OffsetCheckpoint(fs, f"{log_dir}/{HIGH_WATERMARKS_FILE}")
        self._turn = Lock()

    def load(self) -> list[str]:
        """Read the files; what is wrong with them. DiskError."""
        points, starts = self._recovery_points.load(), self._start_offsets.load()
        watermarks = self._high_watermarks.load()
        self.recovery_points, self.start_offsets = points.offsets, starts.offsets
        damage = [each.damage for each in (points, starts, watermarks)]
        return [*(each for each in damage if each is not None), *self.cleaner.load()]

    def save(self) -> None:
        """Store recovery points, start offsets, high watermarks. DiskError: the old ones stay."""
        for save in (self._save_recovery_points, self._save_starts, self._save_watermarks):
            self._in_turn(save)

    def save_starts(self) -> None:
        """Store start offsets, durably. DiskError: the old ones stay."""
        self._in_turn(self._save_starts)

    def cleaned(self, log: Log, first_dirty: int, horizon_ms: int) -> None:
        """A compaction has ended there, unless the log was deleted meanwhile. DiskError."""
        self._in_turn(lambda: self._cleaned(log, first_dirty, horizon_ms))

    def forget(self, name: tuple[str, int]) -> None:
        """No file says anything of that name any more, durably; no such log exists. DiskError."""
        self._in_turn(lambda: self._forget(name))

    def _cleaned(self, log: Log, first_dirty: int, horizon_ms: int) -> None:
        if not log.is_closed:
            self.cleaner.cleaned(log, first_dirty, horizon_ms)

    def _forget(self, name: tuple[str, int]) -> None:
        for file, save in (
            (self._recovery_points, self._save_recovery_points),
            (self._start_offsets, self._save_starts),
            (self._high_watermarks, self._save_watermarks),
        ):
            if file.may_hold(name):
                save()
        self.cleaner.forget(name)

    def _save_recovery_points(self) -> None:
        logs = self._logs()
        self._recovery_points.save(
            {name: log.durability.recovery_point for name, log in logs.items()}
        )

    def _save_starts(self) -> None:
        self._start_offsets.save(
            {
                name: log.snapshot.log_start_offset
                for name, log in self._logs().items()
                if log.tiers.is_tiered
                or log.snapshot.log_start_offset > log.snapshot.segments[0].base_offset
            }
        )

    def _save_watermarks(self) -> None:
        logs = self._logs()
        self._high_watermarks.save(
            {name: log.snapshot.high_watermark for name, log in logs.items()}
        )

    def _in_turn(self, save: Callable[[], None]) -> None:
        """One thread at a time writes."""
        with self._turn:
            save()
