"""Manifests of one partition, read back: the newest, that of a moment, one of a number.

A full one has the whole state; each of the others says what changed since the one before it.
"""

from storage.errors import CorruptCheckpoint, StorageError
from storage.tier.manifests.manifest import Manifest, apply
from storage.tier.names import PartitionKeys, number_of
from storage.tier.port import ObjectMissing, ObjectStore

FULL_EVERY = 64
"""So many manifests have to be read at most for the newest state."""
FIRST = 1
"""Number of the first one in its place."""


class ManifestsRemoved(StorageError):  # noqa: N818 - what happened
    """Nothing tells any longer what the store had at that time."""


def is_full(number: int) -> bool:
    """True of manifests that have the whole state; the others have what changed."""
    return number % FULL_EVERY == 1


def is_there(store: ObjectStore, keys: PartitionKeys, known: Manifest) -> bool:
    """True when the store's manifest of its number is the known one, by who wrote it and when.

    StoreError.
    """
    path = keys.manifest(known.number)
    try:
        found = apply(path, known._replace(segments=()), store.get(path))
    except (CorruptCheckpoint, ObjectMissing):
        return False  # read from a full one on, it says what is wrong
    return found is not None and (found.number, found.writer, found.written_ms) == (
        known.number,
        known.writer,
        known.written_ms,
    )


def read_newest(
    store: ObjectStore, keys: PartitionKeys, at_ms: int | None = None
) -> Manifest | None:
    """The newest state of a partition, or that of a moment; None when there is none.

    `at_ms`: only manifests that were written until then. ManifestsRemoved when those were.
    CorruptCheckpoint for one that is not what was written, or that is missing between others;
    StoreError.
    """
    numbers = [number_of(each.key) for each in store.list(keys.manifests)]
    known = [number for number in numbers if number is not None]
    chain: list[bytes] = []
    for number in reversed(known):
        data = store.get(keys.manifest(number))
        chain.append(data)
        full = apply(keys.manifest(number), None, data)
        if full is not None and (at_ms is None or full.written_ms <= at_ms):
            return _replayed(keys, number, chain, at_ms)
    if chain and at_ms is None:
        raise CorruptCheckpoint(keys.manifests, "there is no full manifest")
    if known and known[0] != FIRST:
        raise ManifestsRemoved(
            keys.manifests, "manifests of that time were removed; those of later ones are there"
        )
    return None


def read_one(store: ObjectStore, keys: PartitionKeys, number: int) -> Manifest:
    """The state after the manifest of this number.

    CorruptCheckpoint for one that is not what was written, or without those it needs; StoreError.
    """
    chain: list[bytes] = []
    for each in range(number, 0, -1):
        chain.append(store.get(keys.manifest(each)))
        if apply(keys.manifest(each), None, chain[-1]) is not None:
            found = _replayed(keys, each, chain, None)
            assert found is not None
            return found
    raise CorruptCheckpoint(keys.manifest(number), "there is no full manifest before it")


def read_behind(store: ObjectStore, keys: PartitionKeys, known: Manifest) -> Manifest | None:
    """The newest state, read on from one that was there; None when it cannot be: `known` is gone,
    or one behind it, or there are so many that all has to be listed, and fewer read.

    CorruptCheckpoint for one that is not what was written; StoreError.
    """
    listed = store.list(keys.manifests, after=keys.manifest(known.number - 1))
    numbers = [number for number in (number_of(each.key) for each in listed) if number is not None]
    if not numbers or numbers != list(range(known.number, known.number + len(numbers))):
        return None
    if len(numbers) > FULL_EVERY:
        return None
    state: Manifest | None = known
    for number in numbers[1:]:
        state = apply(keys.manifest(number), state, store.get(keys.manifest(number)))
        if state is None or state.number != number:
            return None
    return state


def _replayed(
    keys: PartitionKeys, first: int, chain: list[bytes], at_ms: int | None
) -> Manifest | None:
    state: Manifest | None = None
    for number, data in enumerate(reversed(chain), first):
        after = apply(keys.manifest(number), state, data)
        if after is None or after.number != number:
            raise CorruptCheckpoint(keys.manifest(number), "a manifest is missing before it")
        if at_ms is not None and after.written_ms > at_ms:
            break
        state = after
    return state
