"""State of a partition at a moment, as far as the store still has its objects.

Manifests go back for days, objects do not: they go `file.delete.delay.ms` after the newest manifest
has ceased to name them. What retention or DeleteRecords took since then is gone: the log begins
behind it. What compaction replaced is gone as well, and what took its place is no state of then: a
key's value may have given way to a later one. Such a partition is taken as of the earliest manifest
after that of which the store has everything.
"""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from storage.errors import CorruptLog
from storage.files.layout import LOG, SNAPSHOT
from storage.tier.manifests.manifest import Manifest, RemoteSegment
from storage.tier.manifests.reading import states_behind
from storage.tier.names import RECORDS, SIDE, PartitionKeys
from storage.tier.port import ObjectStore
from storage.tier.side_files import side_bytes


class PastState(NamedTuple):
    """A state that can be restored, and in what it is not that of the moment."""

    manifest: Manifest
    starts_later: bool = False
    """Records before its log start were deleted since then."""
    is_later: bool = False
    """It is of the time of its manifest: compaction has replaced segments of before."""


class StoredObjects:
    """Objects of one partition that the store has."""

    def __init__(self, store: ObjectStore, keys: PartitionKeys) -> None:
        """Reads a list of names, and no object. StoreError."""
        self._keys = keys
        self._sizes = {each.key: each.size_bytes for each in store.list(keys.prefix)}

    def has(self, segment: RemoteSegment) -> bool:
        """True when none of the segment's objects is missing."""
        return all(key in self._sizes for key, _ in self._objects_of(segment))

    def check(self, manifest: Manifest) -> None:
        """CorruptLog unless each object of the manifest is there, with its size."""
        for segment in manifest.segments:
            for key, size_bytes in self._objects_of(segment):
                self._check(key, size_bytes)

    def _check(self, key: str, size_bytes: int) -> None:
        found = self._sizes.get(key)
        if found is None:
            raise CorruptLog(key, "the store has lost this object")
        if found != size_bytes:
            raise CorruptLog(key, f"it has {found} bytes, {size_bytes} were copied")

    def _objects_of(self, segment: RemoteSegment) -> Iterator[tuple[str, int]]:
        yield object_key(self._keys, segment, LOG), segment.size_bytes
        if beside := side_bytes(segment):
            yield object_key(self._keys, segment, SNAPSHOT), beside


def object_key(keys: PartitionKeys, segment: RemoteSegment, suffix: str) -> str:
    """Name of the object that has a file of a segment."""
    return keys.segment(segment.base_offset, segment.unique, RECORDS if suffix == LOG else SIDE)


def left_of(
    store: ObjectStore, keys: PartitionKeys, then: Manifest, newest: Manifest, has: StoredObjects
) -> PastState:
    """The state of a moment, or what is left of it.

    `has`: listed after `newest` was read. An object that `newest` names is never missing for one of
    the reasons above: with one that is, the state is that of its moment, for `check` to refuse.
    CorruptCheckpoint, NewerFormat, StoreError.
    """
    named = frozenset(row.unique for row in newest.segments)
    for state in chain((then,), states_behind(store, keys, then)):
        missing = [row for row in state.segments if not has.has(row)]
        is_later = state is not then
        if not missing or any(row.unique in named for row in missing):
            return PastState(state, is_later=is_later)
        if missing[-1].end_offset <= newest.log_start_offset:
            return PastState(_behind(state, missing[-1]), starts_later=True, is_later=is_later)
    return PastState(newest, is_later=True)


def _behind(state: Manifest, last_gone: RemoteSegment) -> Manifest:
    """The state with a log that begins behind a segment."""
    begin = last_gone.end_offset
    staying = tuple(row for row in state.segments if row.base_offset >= begin)
    return state._replace(segments=staying, log_start_offset=max(state.log_start_offset, begin))
