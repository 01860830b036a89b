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


def closed_part(snapshot: LogSnapshot) -> tuple[tuple[Segment, int], ...]:
    """All closed local segments that may be copied, each with its end offset.

    For logs that compaction rewrites. None while a rewritten one has not got its names yet: a part
    without it may lack what it has.
    """
    found = []
    for number in range(snapshot.first_local, len(snapshot.segments) - 1):
        segment, end = snapshot.segments[number], snapshot.segments[number + 1].base_offset
        if segment.swap_suffix:
            return ()
        if not _may_go(snapshot, segment, end):
            break
        found.append((segment, end))
    return tuple(found)


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
