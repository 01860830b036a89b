"""Free space of the disk: below `horolog.disk.reserve.bytes` no new records are taken in.

Allowed all the same: reading, committed offsets, the state of transactions, deleting,
retention, compaction, checkpoints. The reserve is for them; against a disk that others fill up
there is the ballast (`storage.directory.ballast`), which gives way when next to nothing is left.
Writes resume by themselves an eighth of the reserve above it, so that they do not flutter.

Above the reserve is a margin, a quarter of the disk and at most 1 GiB. Within it space is scarce:
with a tier, the broker then hurries to make room (`broker.tier.room`), and producers are limited to
`bytes_per_second`, which falls with what is left of the margin.

A producer receives KAFKA_STORAGE_ERROR (56): all of Kafka's clients keep the batch and retry it
until their own delivery time-out, and the text says why. Creation of a topic gets the same error.
Looked at on a lane, and where space is tight before a batch is taken in.
"""

from collections.abc import Callable
from math import inf
from typing import Protocol

from broker.runtime.event_log import event
from protocol.errors import ErrorCode, KafkaError
from storage.directory.ballast import Ballast
from storage.env import FileSystem
from storage.errors import DiskError, NoSpace

AUTOMATIC = -1
RESERVE_SHARE, RESERVE_MOST_BYTES = 20, 1 << 30  # a twentieth of the disk, at most 1 GiB
BALLAST_SHARE, BALLAST_MOST_BYTES = 100, 32 << 20
RESUME_SHARE = 8
GIVE_WAY_SHARE = 4  # the ballast goes when less is free than this part of it
TIGHT_BYTES = 1 << 30  # above the reserve: no more can come until the next look
MARGIN_SHARE, MARGIN_MOST_BYTES = 4, TIGHT_BYTES  # scarce is never more than tight
MARGIN_SECONDS = 4.0  # in which as much may come as the margin has, when half of it is left
LOOK_SECONDS, WHILE_TIGHT_SECONDS, WHILE_LOW_SECONDS = 1.0, 0.25, 0.1


class DiskSettings(Protocol):
    """Settings that are read at every look, because they may change."""

    @property
    def horolog_disk_reserve_bytes(self) -> int:
        """Space that is left free; -1 for the default share of the disk."""

    @property
    def horolog_disk_ballast_bytes(self) -> int:
        """Size of the ballast; -1 for the default share of the disk."""


class DiskSpace:
    """The space of one data directory."""

    def __init__(self, fs: FileSystem, log_dir: str, settings: Callable[[], DiskSettings]) -> None:
        """Nothing is looked at; there is room."""
        self.is_low = False
        """True while nothing new is taken in."""
        self.is_tight = False
        """True when the reserve could be reached before the next look: `admit` is called then."""
        self.is_scarce = False
        """True while less is free than reserve and margin."""
        self.free_bytes = 0
        self.capacity_bytes = 0
        self.reserve_bytes = 0
        self.margin_bytes = 0
        self.refused_batches = 0
        self.ballast: Ballast | None = None
        """Of the directory that was opened."""
        self._fs = fs
        self._log_dir = log_dir
        self._settings = settings
        self._unseen_bytes = 0
        self._is_unreadable = False

    def admit(self, size_bytes: int) -> None:
        """Checks that a batch may be taken in; called while `is_tight`, and looks in time.

        KafkaError (KAFKA_STORAGE_ERROR) when it may not.
        """
        self._unseen_bytes += size_bytes
        if self._unseen_bytes * 2 > self.free_bytes - self.reserve_bytes and not self.is_low:
            self.look()
        if self.is_low:
            self.refused_batches += 1
            raise self._refusal("Records are taken again once there is room.")

    def check_room(self) -> None:
        """KafkaError (KAFKA_STORAGE_ERROR) while nothing may be made that takes space."""
        if self.is_low:
            raise self._refusal("Topics can be made again once there is room: delete some.")

    @property
    def shortage(self) -> str | None:
        """For /readyz: what is missing, or None."""
        return self._shortage() if self.is_low else None

    def look(self) -> bool:
        """Judge the disk as it is; whether the judgement changed. Blocks."""
        was_low, self._unseen_bytes = self.is_low, 0
        try:
            self.free_bytes = self._fs.free_bytes(self._log_dir)
            self.capacity_bytes = self._fs.disk_bytes(self._log_dir)
            self._is_unreadable = False
        except DiskError as error:
            self._cannot_see(error)
            return False
        settings = self._settings()
        self.reserve_bytes = _share(
            settings.horolog_disk_reserve_bytes, self.capacity_bytes, RESERVE_SHARE,
            RESERVE_MOST_BYTES,
        )  # fmt: skip
        self.is_low = self.free_bytes < (self._resume_bytes if was_low else self.reserve_bytes)
        self.is_tight = self.free_bytes < self.reserve_bytes + TIGHT_BYTES
        self.margin_bytes = min(self.capacity_bytes // MARGIN_SHARE, MARGIN_MOST_BYTES)
        self.is_scarce = self.free_bytes < self.reserve_bytes + self.margin_bytes
        if self.is_low != was_low:
            self._tell()
        return self.is_low != was_low

    def trim_ballast(self) -> None:
        """Give the ballast up on a disk without room; have it again when there is. Blocks."""
        ballast = self.ballast
        if ballast is None:
            return
        wanted = _share(
            self._settings().horolog_disk_ballast_bytes, self.capacity_bytes, BALLAST_SHARE,
            BALLAST_MOST_BYTES,
        )  # fmt: skip
        if self.free_bytes < ballast.size_bytes // GIVE_WAY_SHARE:
            ballast.release()
            event("ballast_released", "warning", free_bytes=self.free_bytes)
        elif ballast.size_bytes != wanted and self.free_bytes > self._resume_bytes + wanted:
            try:
                ballast.keep(wanted)
            except NoSpace:
                return  # another writer was faster: the next look says so
            except DiskError as error:
                event("ballast_failed", "warning", error=error)

    @property
    def next_look_seconds(self) -> float:
        """Time to the next look, in seconds, whether or not anything is taken in meanwhile."""
        if self.is_low:
            return WHILE_LOW_SECONDS
        return WHILE_TIGHT_SECONDS if self.is_tight else LOOK_SECONDS

    @property
    def bytes_per_second(self) -> float:
        """Rate of producers that lets what makes room keep up, as of the last look.

        Without bound where the margin begins, 0 where the reserve does. Whatever rate room is made
        at, there is a place in between where as much comes as goes.
        """
        left = min(self.free_bytes - self.reserve_bytes, self.margin_bytes)
        if left >= self.margin_bytes:
            return inf
        return self.margin_bytes / MARGIN_SECONDS * max(left, 0) / (self.margin_bytes - left)

    @property
    def _resume_bytes(self) -> int:
        return self.reserve_bytes + self.reserve_bytes // RESUME_SHARE

    def _refusal(self, advice: str) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._shortage()}. {advice}")

    def _shortage(self) -> str:
        return (
            f"The disk has {self.free_bytes} bytes free, and {self.reserve_bytes} are kept in "
            "reserve (horolog.disk.reserve.bytes)"
        )

    def _tell(self) -> None:
        facts = {"free_bytes": self.free_bytes, "reserve_bytes": self.reserve_bytes}
        if self.is_low:
            event("disk_low", "error", **facts)
        else:
            event("disk_has_room", **facts)

    def _cannot_see(self, error: DiskError) -> None:
        if not self._is_unreadable:
            event("disk_space_unknown", "warning", error=error)
        self._is_unreadable = True


def _share(setting: int, capacity_bytes: int, share: int, most: int) -> int:
    return min(capacity_bytes // share, most) if setting == AUTOMATIC else setting
