"""Choice of the segments that are to be copied to the store. Pure; reads no file."""

from collections.abc import Sequence
from enum import Enum

from storage.segment.log_snapshot import LogSnapshot
from storage.segment.segment import Segment
from storage.tier.manifests.manifest import RemoteSegment


class CopyReason(Enum):
    """Reasons why a closed segment is not copied, or that it is; each with a sentence."""

    DUE = "it may be copied: the next round does, or this one is at it"
    NOT_SYNCED = "it is not synced to the disk yet"
    NOT_COMMITTED = "it is not below the high watermark yet"
    OPEN_TRANSACTION = "a transaction that began in it, or before it, is still open"


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
    """True when the closed segment is on the disk, committed, and of no open transaction."""
    return copy_reason(snapshot, segment, end_offset) is CopyReason.DUE


def copy_reason(snapshot: LogSnapshot, segment: Segment, end_offset: int) -> CopyReason:
    """The reason why a closed segment that the store does not have is not copied, if there is one.

    The last stable offset is never above the high watermark.
    """
    if not segment.synced:
        return CopyReason.NOT_SYNCED
    if end_offset > snapshot.high_watermark:
        return CopyReason.NOT_COMMITTED
    if end_offset > snapshot.last_stable_offset:
        return CopyReason.OPEN_TRANSACTION
    return CopyReason.DUE
