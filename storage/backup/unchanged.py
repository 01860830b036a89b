"""Partitions that need no look at their records: nothing has changed since the last back-up.

Opening a log reads its last segment whole. That of an idle partition is left unread when each of
its files is older than the back-up before, and its offsets are what the place has.
"""

from typing import NamedTuple

from storage.backup.still_directory import Names, has_traces, logs_by_base, look
from storage.backup.still_log import KnownOffsets, synced_below
from storage.env import Env
from storage.errors import FileMissing
from storage.files.layout import REMOTE_FILE, PartitionName
from storage.log.compaction_state import CleanPart
from storage.tier.manifests.manifest import Manifest

SLACK_MS = 10_000
"""Files that were written so shortly before the last back-up began may have changed in it."""


class PartitionState(NamedTuple):
    """Offsets of a partition, as its files and the directory's checkpoints say."""

    start_offset: int
    end_offset: int
    cleaned: CleanPart | None
    """None: compaction was never there."""


def state_if_old(
    env: Env, path: str, name: PartitionName, known: KnownOffsets, before_ms: int
) -> PartitionState | None:
    """The state of a partition of which no file is younger than a moment; None if one is.

    `known`: as of any time since this back-up began; what is later is for the next one.
    `before_ms`: when the last complete back-up began. DiskError.
    """
    try:
        names = look(env.fs, path)
    except FileMissing:
        return None
    if has_traces(names) or REMOTE_FILE in names or _newest_ms(names) >= before_ms - SLACK_MS:
        return None
    bases = logs_by_base(names)
    if not bases:
        return None
    return PartitionState(
        max(known.start_offsets.get(name, 0), min(bases)),
        synced_below(env, path, known.recovery_points.get(name, 0)),
        known.clean_parts.get(name),
    )


def has_all(manifest: Manifest | None, state: PartitionState) -> bool:
    """True when the place has the partition as it is."""
    if manifest is None or not manifest.segments:
        return False
    offsets = manifest.log_start_offset, manifest.end_offset
    is_same_part = state.cleaned is None or state.cleaned == manifest.cleaned
    return offsets == (state.start_offset, state.end_offset) and is_same_part


def _newest_ms(names: Names) -> int:
    return max((each.mtime_ms for each in names.values()), default=0)
