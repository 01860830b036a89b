"""Manifests of one partition, read back: the newest, that of a moment, one of a number.

A full one has the whole state; each of the others says what changed since the one before it.
"""

from collections.abc import Iterator
from contextlib import suppress

from storage.errors import CorruptCheckpoint, StorageError
from storage.tier.manifests.manifest import Manifest, apply, written_ms_of
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

    `at_ms`: the last one, by number, that was written until then, so that a clock that was ahead
    for a while hides nothing of what was put once it was set right. ManifestsRemoved when it was.
    CorruptCheckpoint for one that is not what was written, or that is missing between others;
    StoreError.
    """
    numbers = [number_of(each.key) for each in store.list(keys.manifests)]
    known = [number for number in numbers if number is not None]
    chain: list[bytes] = []
    for number in reversed(known):
        key = keys.manifest(number)
        data = store.get(key)
        if not chain and at_ms is not None and written_ms_of(key, data) > at_ms:
            continue
        chain.append(data)
        if apply(key, None, data) is not None:
            return _replayed(keys, number, chain)
    if chain and (at_ms is None or known[0] == FIRST):
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
            return _replayed(keys, each, chain)
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


def states_behind(store: ObjectStore, keys: PartitionKeys, known: Manifest) -> Iterator[Manifest]:
    """The states after that of a manifest, in their order, each read when it is asked for.

    CorruptCheckpoint for one that is not what was written, or that is missing; StoreError.
    """
    state = known
    for each in store.list(keys.manifests, after=keys.manifest(known.number)):
        if number_of(each.key) is not None:
            state = _after(each.key, state, store.get(each.key))
            yield state


def states_since(store: ObjectStore, keys: PartitionKeys, at_ms: int) -> Iterator[Manifest]:
    """The state of a moment, and those after it; as `states_behind`.

    From the oldest one on that is there, where that of the moment is not.
    """
    state: Manifest | None = None
    with suppress(ManifestsRemoved):
        state = read_newest(store, keys, at_ms)
    if state is None:
        numbers = (number_of(each.key) for each in store.list(keys.manifests))
        first = next((number for number in numbers if number is not None), FIRST)
        state = Manifest(first - 1, *keys)
    yield state
    yield from states_behind(store, keys, state)


def _replayed(keys: PartitionKeys, first: int, chain: list[bytes]) -> Manifest:
    state: Manifest | None = None
    for number, data in enumerate(reversed(chain), first):
        state = _after(keys.manifest(number), state, data)
    assert state is not None
    return state


def _after(path: str, before: Manifest | None, data: bytes) -> Manifest:
    """The state after the manifest at a path; CorruptCheckpoint when one before it is missing."""
    after = apply(path, before, data)
    is_next = before is None or (after is not None and after.number == before.number + 1)
    if after is None or after.number != number_of(path) or not is_next:
        raise CorruptCheckpoint(path, "a manifest is missing before it")
    return after
