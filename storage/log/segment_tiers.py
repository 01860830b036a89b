"""The segments of a log in both tiers: those that are only in the store, then the local ones."""

from enum import Enum

from storage.segment.log_snapshot import LogSnapshot
from storage.segment.removal import wholly_before
from storage.segment.segment import Segment


class SegmentPlace(Enum):
    """Places of a segment."""

    LOCAL = "local"
    """In the directory alone."""
    STORE = "store"
    """In the store alone."""
    BOTH = "both"


class SegmentTiers:
    """Joins the two. Changed by the holder of the writer gate; what it gives is never changed."""

    __slots__ = (
        "away_bytes",
        "first_local",
        "is_tiered",
        "local",
        "segments",
        "uploaded",
        "uploaded_bytes",
        "uploaded_end",
    )

    def __init__(self, local: tuple[Segment, ...]) -> None:
        """Nothing is in the store."""
        self.local = self.segments = local
        self.first_local = 0
        """Number of those that are only in the store."""
        self.is_tiered = False
        """True once the store was looked at, whether it has something or not."""
        self.uploaded: tuple[Segment, ...] = ()
        """All that the store has, whether the directory has them as well or not."""

        self.uploaded_end = 0
        """The offset up to which the store has the log; 0 when it has nothing."""
        self.uploaded_bytes = 0
        """Bytes of the `.log` files that the store has."""
        self.away_bytes = 0
        """Bytes of those that are only there."""

    def show(self, uploaded: tuple[Segment, ...], end_offset: int) -> None:
        """The store has these, up to that offset; `join` makes it count."""
        self.is_tiered = True
        self.uploaded, self.uploaded_end = uploaded, end_offset
        self.uploaded_bytes = sum(each.size_bytes for each in uploaded)

    def join(self, local: tuple[Segment, ...], start_offset: int) -> None:
        """Local segments changed, or the log's start did: what is wholly before it is gone."""
        self.local = self.segments = local
        self.first_local = self.away_bytes = 0
        if self.uploaded:
            base = local[0].base_offset
            away = [each for each in self.uploaded if each.base_offset < base]
            local[0].arrival_floor_ms = max(local[0].arrival_floor_ms, self._came_before(base))
            gone = len(wholly_before((*away, local[0]), min(start_offset, base)))
            self.segments = (*away[gone:], *local)
            self.first_local = len(away) - gone
            self.away_bytes = sum(each.size_bytes for each in away[gone:])

    def _came_before(self, offset: int) -> int:
        """The latest arrival, in ms, in what the store has of before the offset; 0 without any."""
        ends = (*(each.base_offset for each in self.uploaded[1:]), self.uploaded_end)
        before = (each for each, end in zip(self.uploaded, ends, strict=True) if end <= offset)
        return max((each.last_arrival_ms for each in before), default=0)

    def places(self, snapshot: LogSnapshot, *, is_rewritten: bool) -> tuple[SegmentPlace, ...]:
        """SegmentPlace of each segment of a snapshot. From any thread.

        `is_rewritten`: compaction may have made another segment of what the store has.
        """
        copied, end_offset = self.uploaded, self.uploaded_end
        known = {(each.base_offset, each.size_bytes) for each in copied}
        found = [SegmentPlace.STORE] * snapshot.first_local
        for number in range(snapshot.first_local, len(snapshot.segments)):
            segment = snapshot.segments[number]
            is_closed = number + 1 < len(snapshot.segments)
            is_there = is_closed and (
                (segment.base_offset, segment.size_bytes) in known
                or (not is_rewritten and snapshot.segments[number + 1].base_offset <= end_offset)
            )
            found.append(SegmentPlace.BOTH if is_there else SegmentPlace.LOCAL)
        return tuple(found)
