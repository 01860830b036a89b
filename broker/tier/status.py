"""State of one partition in the tier: where its segments are, what waits, and for what."""

from collections.abc import Iterator
from typing import NamedTuple

from broker.tier.standing import TierStanding
from broker.tier.tier import Tier
from storage.directory.log_manager import LogManager
from storage.log.log import Log
from storage.log.segment_tiers import SegmentPlace
from storage.retention.local_limits import is_copied
from storage.segment.log_snapshot import LogSnapshot
from storage.tier.eligible import CopyReason, copy_reason


class TierShare(NamedTuple):
    """Segments and the bytes of their logs."""

    segments: int = 0
    size_bytes: int = 0


class CopyObstacle(NamedTuple):
    """Obstacle to the copy of the next segment, as a word and a sentence."""

    word: str
    because: str


class PartitionTier(NamedTuple):
    """A partition at one moment."""

    in_store: TierShare
    """In the store alone."""
    in_both: TierShare
    local: TierShare
    """On the disk alone, the active one too."""
    waiting: TierShare
    """Closed, and not in the store."""
    waiting_ms: int
    """Time since the last write to the oldest of these; 0 without any."""
    copied_end: int
    """The offset up to which the store has the log."""
    blocker: CopyObstacle | None
    """None: all is copied, or the next segment is due."""


class TierPlace(NamedTuple):
    """The broker's tier, and the services that know of its logs."""

    tier: Tier
    standing: TierStanding
    logs: LogManager


def partition_tier(place: TierPlace, log: Log, *, is_state: bool, now_ms: int) -> PartitionTier:
    """The state of a log. `is_state`: of the broker's own, which are copied whatever they say."""
    snapshot = log.snapshot
    places = log.tiers.places(snapshot, is_rewritten=place.logs.is_rewritten(log))
    shares = {each: TierShare() for each in SegmentPlace}
    for number, found_at in enumerate(places):
        found = shares[found_at]
        size_bytes = found.size_bytes + snapshot.end_of(number)
        shares[found_at] = TierShare(found.segments + 1, size_bytes)
    waits = list(waiting_segments(snapshot, places))
    segments = [snapshot.segments[number] for number in waits]
    return PartitionTier(
        shares[SegmentPlace.STORE],
        shares[SegmentPlace.BOTH],
        shares[SegmentPlace.LOCAL],
        TierShare(len(segments), sum(each.size_bytes for each in segments)),
        max(0, now_ms - segments[0].mtime_ms) if segments else 0,
        log.tiers.uploaded_end,
        _blocker(place, log, is_state=is_state) or _obstacle(snapshot, waits),
    )


def waiting_segments(snapshot: LogSnapshot, places: tuple[SegmentPlace, ...]) -> Iterator[int]:
    """Numbers of closed segments that the store does not have."""
    for number in range(snapshot.first_local, len(snapshot.segments) - 1):
        if places[number] is SegmentPlace.LOCAL:
            yield number


def _blocker(place: TierPlace, log: Log, *, is_state: bool) -> CopyObstacle | None:
    """The first thing that would have to change, for whatever is closed."""
    tier, standing = place.tier, place.standing
    if standing.refused:
        return CopyObstacle("refused", standing.refused)
    if not (is_state or is_copied(log.config)):
        if log.config.remote_storage_enable:
            return CopyObstacle("copy_disabled", "remote.log.copy.disable is true")
        return CopyObstacle("tier_off", "remote.storage.enable is false")
    if not log.takes_changes:
        return CopyObstacle("offline", f"the log takes no changes: {log.fault}")
    why = tier.tally.failing.get((log.topic, log.partition))
    if why is not None and tier.tally.is_stopped(log):
        return CopyObstacle("stopped", f"{why}; nothing more is copied until a restart")
    if why is not None:
        return CopyObstacle("failing", f"the last round failed: {why}")
    if tier.tally.unreachable_because:
        return CopyObstacle("unreachable", tier.tally.unreachable_because)
    return None


def _obstacle(snapshot: LogSnapshot, waits: list[int]) -> CopyObstacle | None:
    """The reason of the oldest segment that waits."""
    if not waits:
        return None
    number = waits[0]
    end_offset = snapshot.segments[number + 1].base_offset
    reason = copy_reason(snapshot, snapshot.segments[number], end_offset)
    if reason is CopyReason.DUE:
        return None
    return CopyObstacle(reason.name.lower(), reason.value)
