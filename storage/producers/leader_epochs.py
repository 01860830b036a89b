"""Leader epochs and their first offsets: the cache and its file (semantics.md 9.2).

`leader-epoch-checkpoint` is text: `0`, a count, then `epoch startOffset` a line. Epochs and start
offsets strictly rise; a new entry removes those that contradict it. It can be rebuilt from the
log (every batch carries its epoch), so a damaged file is absent, and said to be damaged.
"""

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import NamedTuple

from storage.env import FileSystem
from storage.errors import CorruptCheckpoint, FileMissing
from storage.files.checkpoints import decode_rows, encode_rows, numbers

UNDEFINED = -1


class EpochStart(NamedTuple):
    """A leader epoch and the first offset that it wrote."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The largest epoch not above the one asked for, and the offset after its last record."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The epochs of one log. Changes are in memory until `save`."""

    __slots__ = ("_entries", "_fs", "_saved", "damage", "path")

    def __init__(self, fs: FileSystem, path: str) -> None:
        """Name the file; `load` reads it."""
        self.path = path
        self.damage: str | None = None
        self._fs = fs
        self._entries: tuple[EpochStart, ...] = ()
        self._saved: tuple[EpochStart, ...] | None = ()

    @property
    def is_unsaved(self) -> bool:
        """True when the file is not known to have the same entries, durably."""
        return self._entries != self._saved

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        """All epochs, oldest first; immutable, so any thread may keep it."""
        return self._entries

    @property
    def earliest(self) -> EpochStart | None:
        """The oldest epoch."""
        return self._entries[0] if self._entries else None

    @property
    def latest(self) -> EpochStart | None:
        """The newest epoch."""
        return self._entries[-1] if self._entries else None

    def load(self) -> None:
        """Read the file; empty if it is missing, empty and with `damage` set if it is malformed."""
        self.damage = None
        self._entries = self._saved = ()
        try:
            rows = decode_rows(self.path, self._fs.read_text(self.path), columns=2)
            entries = tuple(EpochStart(*numbers(self.path, row)) for row in rows)
        except FileMissing:
            return
        except CorruptCheckpoint as error:
            self.damage = str(error)
            return
        if any(
            a.epoch >= b.epoch or a.start_offset >= b.start_offset for a, b in pairwise(entries)
        ):
            self.damage = f"{self.path}: epochs or offsets do not rise"
            return
        self._entries = self._saved = entries

    def save(self) -> None:
        """Replace the file, durably. DiskError: `is_unsaved` says so."""
        entries, self._saved = self._entries, None
        self._fs.write_atomically(self.path, encode_rows(entries))
        self._saved = entries

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` writes from `start_offset` on; says whether that was news.

        Entries with the same or a later epoch or offset are wrong then, and go.
        """
        latest = self.latest
        if epoch < 0 or start_offset < 0:
            return False
        if latest is not None and latest.epoch == epoch and latest.start_offset <= start_offset:
            return False
        kept = (e for e in self._entries if e.epoch < epoch and e.start_offset < start_offset)
        self._entries = (*kept, EpochStart(epoch, start_offset))
        return True

    def epoch_at(self, offset: int) -> int | None:
        """The epoch that wrote `offset`, or None before the first one."""
        index = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[index - 1].epoch if index else None

    def end_offset_of(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """End of `epoch` (OffsetForLeaderEpoch); (-1, -1) if it is later than all known.

        For an unknown epoch the answer is the next smaller one. An epoch before all known ended
        where the first known began.
        """
        latest = self.latest
        if latest is None or epoch == UNDEFINED or epoch > latest.epoch:
            return EpochEnd(UNDEFINED, UNDEFINED)
        if epoch == latest.epoch:
            return EpochEnd(epoch, log_end_offset)
        index = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        end_offset = self._entries[index].start_offset
        return EpochEnd(self._entries[index - 1].epoch if index else epoch, end_offset)

    def truncate_to(self, end_offset: int) -> bool:
        """Forget epochs that began at `end_offset` or later; says whether there were any."""
        keep = bisect_left(self._entries, end_offset, key=lambda entry: entry.start_offset)
        changed = keep < len(self._entries)
        self._entries = self._entries[:keep]
        return changed

    def start_at(self, start_offset: int) -> bool:
        """Forget epochs that ended before the log's new start; the epoch of the start begins
        there.
        """
        first = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset) - 1
        if first < 0 or (first == 0 and self._entries[0].start_offset == start_offset):
            return False
        begin = EpochStart(self._entries[first].epoch, start_offset)
        self._entries = (begin, *self._entries[first + 1 :])
        return True

    def clear(self) -> None:
        """Forget all epochs, to be rebuilt."""
        self._entries = ()
