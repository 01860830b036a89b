"""The newest manifests of a tier's partitions, as this process has seen them."""

from functools import lru_cache

from pipeline.directories.tier_store import StorePlace, patiently, store_at
from pipeline.errors import DamagedLog
from storage.errors import CorruptCheckpoint
from storage.tier.manifest import Manifest, apply
from storage.tier.manifest_chain import read_newest
from storage.tier.names import PartitionKeys, number_of

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
        self.known = self._after(self.known) or read_newest(store_at(self._place), self._keys)
        return self.known

    def _after(self, known: Manifest | None) -> Manifest | None:
        """The newest one behind `known`; None when it is not there any more, or not readable."""
        if known is None or known.number < 1:
            return None
        store, keys = store_at(self._place), self._keys
        found = [
            number_of(each.key)
            for each in store.list(keys.manifests, after=keys.manifest(known.number - 1))
        ]
        numbers = [each for each in found if each is not None]
        if numbers != list(range(known.number, known.number + len(numbers))) or not numbers:
            return None
        state: Manifest | None = known
        for number in numbers[1:]:
            state = apply(keys.manifest(number), state, store.get(keys.manifest(number)))
            if state is None or state.number != number:
                return None
        return state


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
