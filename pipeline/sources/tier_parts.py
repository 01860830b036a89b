"""The files of a partition, on this machine and in the store of its tier.

With a directory at hand its own file `horolog-remote` says what the store has: before a segment
leaves the directory it is named there, so the directory is looked at first. Without one, the newest
manifest in the store says it.
"""

from uuid import UUID

from pipeline.directories.log_files import FILES, Files
from pipeline.directories.tier_files import LocalPart, TierFiles
from pipeline.directories.tier_manifests import known_manifest, newest_manifest
from pipeline.sources.log_ends import log_end_offset
from pipeline.sources.partition_view import PartitionView
from storage.files.layout import REMOTE_FILE
from storage.files.partition_listing import listing_of
from storage.tier.manifests import local_state
from storage.tier.manifests.local_state import LocalState
from storage.tier.manifests.manifest import Manifest
from storage.tier.names import PartitionKeys


def files_of(view: PartitionView, *, is_fresh: bool = False) -> Files:
    """The partition's files as they are now; `is_fresh`: the store is asked what it has.

    DamagedLog for a manifest that cannot be read; FileMissing, StoreError, DiskError.
    """
    if view.tier is None:
        return FILES
    if view.directory is not None:
        return _with_directory(view, view.directory)
    keys = keys_of(view)
    manifest = (newest_manifest if is_fresh else known_manifest)(view.tier, keys)
    return TierFiles(view.tier, manifest or Manifest(0, *keys))


def keys_of(view: PartitionView) -> PartitionKeys:
    """Names of the partition's objects."""
    return PartitionKeys(view.topic, UUID(hex=view.topic_id), view.partition)


def path_of(view: PartitionView) -> str:
    """The directory that `files_of` has the partition's files in."""
    return view.directory or keys_of(view).prefix.rstrip("/")


def state_of(directory: str) -> LocalState | None:
    """The part of the store that the directory knows; None when the partition has nothing there."""
    return local_state.load(FILES, directory)


def _with_directory(view: PartitionView, directory: str) -> Files:
    assert view.tier is not None
    entries = FILES.list_dir(directory)
    if all(each.name != REMOTE_FILE for each in entries):
        return FILES
    end_offset = log_end_offset(directory, listing_of(entries))
    state = state_of(directory)
    if state is None:
        return FILES
    return TierFiles(view.tier, state.manifest, LocalPart(directory, entries, end_offset))
