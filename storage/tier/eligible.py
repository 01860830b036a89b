"""Choice of the segments that are to be copied to the store. Pure; reads no file."""

from collections.abc import Sequence

from storage.segment.log_snapshot import LogSnapshot
from storage.segment.segment import Segment
from storage.tier.manifest import RemoteSegment


def next_to_copy(snapshot: LogSnapshot, uploaded_end: int) -> tuple[Segment, int] | None:
    """The oldest segment that is to be copied now, and its end offset; None if none is."""
    for number in range(snapshot.first_local, len(snapshot.segments) - 1):
        segment, end = snapshot.segments[number], snapshot.segments[number + 1].base_offset
        if end > uploaded_end:
            return (segment, end) if _may_go(snapshot, segment, end) else None
    return None


def next_to_mirror(
    snapshot: LogSnapshot, copied: Sequence[RemoteSegment]
) -> tuple[Segment, int] | None:
    """The oldest closed segment that the store does not have as it is; None if it has all.

    For logs that compaction rewrites: a rewritten segment has another size, or another end.
    """
    known = {(each.base_offset, each.end_offset, each.size_bytes) for each in copied}
    for number in range(snapshot.first_local, len(snapshot.segments) - 1):
        segment, end = snapshot.segments[number], snapshot.segments[number + 1].base_offset
        if (segment.base_offset, end, segment.size_bytes) not in known:
            return (segment, end) if _may_go(snapshot, segment, end) else None
    return None


def overlapping(
    copied: Sequence[RemoteSegment], base_offset: int, end_offset: int
) -> tuple[RemoteSegment, ...]:
    """Those that have offsets from `base_offset` to before `end_offset`."""
    return tuple(
        each for each in copied if each.base_offset < end_offset and base_offset < each.end_offset
    )


def _may_go(snapshot: LogSnapshot, segment: Segment, end_offset: int) -> bool:
    """True when the closed segment is on the disk, committed, and of no open transaction.

    The last stable offset is never above the high watermark.
    """
    return segment.synced and end_offset <= snapshot.last_stable_offset
