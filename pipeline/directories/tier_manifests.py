"""The newest manifests of a tier's partitions, as this process has seen them."""

from functools import lru_cache

from pipeline.directories.tier_store import StorePlace, patiently, store_at
from pipeline.errors import DamagedLog
from storage.errors import CorruptCheckpoint
from storage.tier.manifests.manifest import Manifest
from storage.tier.manifests.reading import read_behind, read_newest
from storage.tier.names import PartitionKeys

MOST_KNOWN = 256
"""Partitions of which the manifest stays in memory."""


class _Partition:
    """The manifest of one partition, as far as it was looked at."""

    def __init__(self, place: StorePlace, keys: PartitionKeys) -> None:
        self._place = place
        self._keys = keys
        self.known: Manifest | None = None

    def look(self) -> Manifest | None:
        """The newest one: what was put since the last look is asked for, or all of it."""
        store, known = store_at(self._place), self.known
        found = read_behind(store, self._keys, known) if known and known.number else None
        self.known = found or read_newest(store, self._keys)
        return self.known


def newest_manifest(place: StorePlace, keys: PartitionKeys) -> Manifest | None:
    """The manifest that counts now; None when the store has none.

    DamagedLog for one that is missing between others or not what was written; StoreError.
    """
    try:
        return patiently(_partition(place, keys).look)
    except CorruptCheckpoint as error:
        raise DamagedLog(
            f"{place}: {error}; horolog tier verify tells more, and nothing of the partition is "
            "read meanwhile"
        ) from error


def known_manifest(place: StorePlace, keys: PartitionKeys) -> Manifest | None:
    """The one of the last look; the newest one where there was none. As `newest_manifest`."""
    return _partition(place, keys).known or newest_manifest(place, keys)


@lru_cache(MOST_KNOWN)
def _partition(place: StorePlace, keys: PartitionKeys) -> _Partition:
    return _Partition(place, keys)
