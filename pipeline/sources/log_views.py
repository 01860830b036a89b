"""Partitions in data directories, and the offsets up to which they may be read. Reads only.

A live broker's directory is read up to the high watermark that the broker wrote down last: records
behind it may be incomplete, and may still be lost. After a clean stop, and in a copy of
single partitions, all whole batches count. With a broker at hand, ask that (`broker_views`). A copy
in an object store has what it has.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pipeline.directories.log_files import FILES, Files, is_stored
from pipeline.directories.partitions import LocalPartition, partitions_in
from pipeline.directories.tier_files import TierFiles
from pipeline.directories.tier_store import StorePlace
from pipeline.errors import DamagedLog, NothingThere
from pipeline.sources.log_ends import last_stable_offset, log_end_offset
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.tier_parts import files_of, state_of
from storage.errors import CorruptCheckpoint
from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import (
    CLEAN_SHUTDOWN_FILE,
    FLEET_FILE,
    HIGH_WATERMARKS_FILE,
    PARTITION_METADATA_FILE,
    REMOTE_FILE,
    PartitionName,
)
from storage.files.meta_properties import read_partition_metadata
from storage.files.partition_listing import PartitionListing, look_at


class _Directory(NamedTuple):
    """Facts of a data directory about all its partitions."""

    watermarks: dict[PartitionName, int] | None
    """None: all records there count."""


class _Bounds(NamedTuple):
    """The offsets of a log: from `start` to before `end`."""

    start: int
    end: int


def views_in(
    log_dirs: Iterable[str],
    topics: Iterable[str],
    *,
    is_committed: bool = False,
    is_offline: bool = False,
    tier: StorePlace | None = None,
) -> list[PartitionView]:
    """The partitions of the topics, none named: of all. `is_offline`: no broker is at work there.

    `is_committed`: up to the last stable offset. `tier`: the store in which they may go on.
    NothingThere, DamagedLog, DiskError.
    """
    known: dict[str, _Directory] = {}
    views = []
    for each in partitions_in(FILES, log_dirs, topics):
        if each.directory not in known:
            known[each.directory] = _directory(each.directory, is_offline=is_offline)
        views.append(_view(each, known[each.directory], tier, is_committed=is_committed))
    return views


def topic_id_of(directory: str) -> str:
    """The topic id of the partition in that directory; empty when it is not stored."""
    try:
        found = read_partition_metadata(FILES, f"{directory}/{PARTITION_METADATA_FILE}")
    except CorruptCheckpoint:
        return ""
    return "" if found is None else found.hex


def is_of_fleet(log_dir: str) -> bool:
    """True for the data directory of a node of a fleet: its logs may lack what others committed."""
    return FILES.exists(f"{log_dir}/{FLEET_FILE}")


def _directory(path: str, *, is_offline: bool) -> _Directory:
    if is_of_fleet(path):
        raise NothingThere(
            f"{path} is that of a node of a fleet, whose logs lack what others have: read from "
            "the brokers (bootstrap)"
        )
    watermarks = f"{path}/{HIGH_WATERMARKS_FILE}"
    if (
        is_offline
        or is_stored(path)
        or FILES.exists(f"{path}/{CLEAN_SHUTDOWN_FILE}")
        or not FILES.exists(watermarks)
    ):
        return _Directory(None)
    load = OffsetCheckpoint(FILES, watermarks).load()
    if load.damage is not None:
        raise DamagedLog(
            f"{load.damage}: nothing says up to where {path} may be read. A broker that starts on "
            "it writes the file; where none does, offline=true reads all whole batches"
        )
    return _Directory(load.offsets)


def _view(
    found: LocalPartition, directory: _Directory, tier: StorePlace | None, *, is_committed: bool
) -> PartitionView:
    topic, partition = found.name
    view = PartitionView(topic, partition, topic_id_of(found.path), 0, 0, found.path, tier=tier)
    files = files_of(view)
    listing = look_at(files, found.path)
    bounds = _bounds(found, directory, files, listing)
    end = bounds.end
    if is_committed:
        end = max(bounds.start, last_stable_offset(found.path, end, files))
    size = sum(entry.size_bytes for entry in listing.logs.values())
    return view._replace(start_offset=bounds.start, end_offset=end, size_bytes=size)


def _bounds(
    found: LocalPartition, directory: _Directory, files: Files, listing: PartitionListing
) -> _Bounds:
    """Start and end of the log. A part of it that is only in a store belongs to it, whether that
    can be read or not: who leaves it out says so.
    """
    start, stored_end = listing.bases[0] if listing.logs else 0, 0
    if isinstance(files, TierFiles):
        start, stored_end = files.log_start_offset, files.stored_end_offset
    elif REMOTE_FILE in listing.others and (state := state_of(found.path)) is not None:
        start, stored_end = state.manifest.log_start_offset, state.manifest.end_offset
    start = max(found.start_offset, start)
    if directory.watermarks is None:
        end = log_end_offset(found.path, listing, files)
    else:
        end = directory.watermarks.get(found.name, 0)
    return _Bounds(start, max(start, end, stored_end))
