"""Local segments of a log that the store has, on their way out of the directory.

That they go is durable in `horolog-remote` before they do: a start finishes what was begun. Before
that the producers of their batches are: a start does not read those once more.
"""

from itertools import takewhile

from storage.log.log import Log
from storage.producers.lasting_snapshot import keep_producers
from storage.retention.plan import LogFacts, RetentionLimits, start_after
from storage.segment.log_snapshot import LogSnapshot
from storage.segment.removal import wholly_before
from storage.segment.segment import Segment
from storage.segment.times import facts_of
from storage.tier.known_state import KnownState
from storage.tier.mirror import Closed, SameCopies, by_base


class LeavingSegments:
    """One log's. What `droppable` has found goes by `vouch` and `drop`."""

    def __init__(self, log: Log, known: KnownState, same: SameCopies) -> None:
        """None was found."""
        self._log = log
        self._known = known
        self._same = same
        self._may_leave: frozenset[Segment] = frozenset()

    def droppable(self, limits: RetentionLimits, now_ms: int, *, is_rewritten: bool = False) -> int:
        """The offset up to which local segments are in the store and past the local limits.

        After `storage.log.lifecycle.learn_times`. `is_rewritten`: compaction may have been there,
        and the store may have them as they were before. DiskError.
        """
        snapshot = self._log.snapshot
        local = facts_of(snapshot, snapshot.first_local)[0]
        start = snapshot.local_start_offset
        uploaded_end = self._known.now.manifest.end_offset
        copied = self._same_end(snapshot) if is_rewritten else uploaded_end
        offsets = LogFacts(start, copied, snapshot.log_end_offset)
        below = start_after(local, offsets, limits, now_ms)
        self._may_leave = frozenset(wholly_before(snapshot.local_segments, min(below, copied)))
        return below

    def _same_end(self, snapshot: LogSnapshot) -> int:
        """The offset up to which the store has local segments as they are."""
        rows = by_base(self._known.now.manifest)
        for number in range(snapshot.first_local, len(snapshot.segments) - 1):
            closed = Closed(snapshot.segments[number], snapshot.segments[number + 1].base_offset)
            if not self._same.has(closed, rows):
                return closed.segment.base_offset
        return snapshot.active.base_offset

    @property
    def has_any(self) -> bool:
        """True when `droppable` has found segments that may leave."""
        return bool(self._may_leave)

    @property
    def is_at_rest(self) -> bool:
        """True when `drop` would do nothing: none may, and all have gone that were to."""
        start = self._log.snapshot.local_start_offset
        return not self._may_leave and self._known.now.local_start_offset == start

    def vouch(self, below: int) -> None:
        """Makes durable that those go which `drop` takes next. DiskError.

        Where compaction rewrites nothing this needs no gate: so writers do not wait for the disk.
        """
        local = self._log.snapshot.local_segments
        before = wholly_before(local, below)
        leaving = tuple(takewhile(lambda each: each in self._may_leave, before))
        offset = min(below, local[len(leaving)].base_offset)
        if offset > self._known.now.local_start_offset:
            if leaving:
                keep_producers(self._log.files.fs, self._log.files.path, leaving, offset)
            self._known.save(lambda state: state._replace(local_start_offset=offset))

    def drop(self) -> tuple[Segment, ...]:
        """Takes some segments out of the directory of which it is durable that they go.

        Holds the writer gate, and blocks. DiskError: what was done stays done.
        """
        return self._log.drop_local(self._known.now.local_start_offset)
