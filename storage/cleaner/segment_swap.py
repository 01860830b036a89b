"""Puts a compacted segment in the place of those it was made from; a crash at any call loses
neither (semantics.md 8.5).

One rule for the order: a `.cleaned` name says that its whole set counts for nothing. So it is the
last to become `.swap`, and a set that is given up gets one again, durably, before anything is
removed (`CleanedSegment.discard`). The `.swap` files without one beside them are those of a whole
set.

1. `prepare`: `.cleaned` names become `.swap`, the `.log`'s last, durably. Until all have it the
   next start drops the new segment; from then on it takes the place of the old ones.
2. `publish`, in the writer's turn: the log counts with the new segment. No name changes here.
3. `finish`: the old names become `.deleted`, durably; then the `.swap` names lose their ending,
   durably. Done again after a failure, it goes on where it stopped.

Readers never depend on the order: the new `.log` is kept open until its name is final, and the old
one whose name it takes for as long as a reader may use it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.errors import FileMissing
from storage.files.layout import LOG, SEGMENT_SUFFIXES, SNAPSHOT, SWAP
from storage.segment.removal import rename_away
from storage.segment.segment import Segment

if TYPE_CHECKING:
    from storage.log.log import Log

_LOG_LAST = (*(suffix for suffix in SEGMENT_SUFFIXES if suffix != LOG), LOG)


class SegmentSwap:
    """One replacement. Everything but `publish` may run on any thread, one at a time."""

    def __init__(self, old: Sequence[Segment], new: Segment) -> None:
        """`old`: neighbours, all closed; `new`: as `CleanedSegment.finish` gave it."""
        self.old = tuple(old)
        self.new = new
        self._old_are_away = False

    def prepare(self) -> None:
        """From here on a start completes the swap. DiskError: it is still undone."""
        self._rename(_LOG_LAST, SWAP)
        self._sync()

    def publish(self, log: "Log") -> None:
        """The log counts with the new segment from now on."""
        first = self.old[0]
        first.pinned = first.file()
        log.replace_segments(self.old, self.new)
        log.compaction.forget_segments()

    def finish(self) -> None:
        """Bring the names in step. DiskError: call it again."""
        if not self._old_are_away:
            first, *others = self.old
            rename_away([first], SEGMENT_SUFFIXES)
            rename_away(others, (*SEGMENT_SUFFIXES, SNAPSHOT))
            self._sync()
            self._old_are_away = True  # from here on the name of the first may be the new one's
        self._rename((LOG, *_LOG_LAST[:-1]), "")
        self._sync()
        new = self.new
        new.indexes, new.verified = None, False  # those in memory know their files by old names
        new.pinned = None

    def _rename(self, suffixes: Sequence[str], ending: str) -> None:
        """Give the new segment's files another ending; a file that has it already, or is not
        there at all, as an index of aborted transactions, is passed over.
        """
        files, base = self.new.files, self.new.base_offset
        before = self.new.swap_suffix
        for suffix in suffixes:
            try:
                files.fs.rename(
                    files.name_of(base, suffix + before), files.name_of(base, suffix + ending)
                )
            except FileMissing:
                continue
        self.new.swap_suffix = ending

    def _sync(self) -> None:
        self.new.files.fs.sync_dir(self.new.files.path)
