"""The manifests of one partition in the store: read back, and put one behind the other.

Each is put under the next number, and only where there is none: of two writers one wins, and the
other one stops (`storage.tier.single_writer`). A put whose answer was lost is made again with the
same bytes; what then is there tells whether it was ours. What counts is the newest manifest that
is in the store.
"""

from storage.env import Clock, Rng
from storage.errors import CorruptCheckpoint
from storage.tier.manifest import Change, Manifest, apply, changed, render_delta, render_full
from storage.tier.names import PartitionKeys, number_of, unique_text
from storage.tier.port import ObjectMissing, ObjectStore
from storage.tier.single_writer import LatePut, SingleWriter

FULL_EVERY = 64
"""So many manifests have to be read at most for the newest state."""


class ManifestChain:
    """Manifests of one partition. One thread at a time; every call blocks."""

    def __init__(
        self,
        store: ObjectStore,
        keys: PartitionKeys,
        clock: Clock,
        rng: Rng,
        known: Manifest | None = None,
    ) -> None:
        """Nothing is read. `known`: the newest state that the directory knows of; that of number 0
        is the one where there is no manifest yet, if not the empty one.
        """
        self._store = store
        self._keys = keys
        self._clock = clock
        self._name = unique_text(rng.uint64())
        self._writer = SingleWriter(store)
        self._known = known or Manifest(0, keys.topic, keys.topic_id, keys.partition)
        self._pending: tuple[Manifest, bytes] | None = None
        self.newest: Manifest | None = None
        """The state in the store, once it is known."""

    @property
    def pending(self) -> Manifest | None:
        """The state after a change of which it is open whether the store has it."""
        pending = self._pending
        return None if pending is None else pending[0]

    @property
    def has_put(self) -> bool:
        """True once the store has a manifest of this process: none of an earlier one can come."""
        return self._writer.has_put

    def load(self) -> Manifest:
        """The newest state; the empty one when the store has none. Raises StorageError."""
        if self.newest is None:
            self.newest = self._read()
        return self.newest

    def _read(self) -> Manifest:
        """Behind the known one: of a long life's manifests a list of all is many requests."""
        known = self._known
        if known.number and is_there(self._store, self._keys, known):
            found = read_behind(self._store, self._keys, known)
            if found is not None:
                return found
        newest = read_newest(self._store, self._keys)
        if newest is not None:
            return newest
        return Manifest(0, *self._keys) if known.number else known

    def append(self, change: Change) -> Manifest:
        """Makes the change durable in the store; the state after it.

        StoreError: it may have become so all the same, and the next call settles that first.
        LatePut: it has not, since a put of an earlier process came first; the next call reads what
        is there now. WriterReplaced: another writer is at work, and nothing of this one counts any
        longer. CorruptCheckpoint: what the store has there cannot be read; asked again, it may be.
        """
        self.settle()
        before = self.load()
        after = changed(before, change, self._name, self._clock.now_ms())
        data = render_full(after) if is_full(after.number) else render_delta(after, change)
        self._pending = after, data
        self.settle()
        return after

    def settle(self) -> None:
        """Finds out what became of the last change, if that is open: it counts afterwards."""
        if self._pending is None:
            return
        after, data = self._pending
        key = self._keys.manifest(after.number)
        try:
            self._writer.put(key, data, lambda path, found: apply(path, None, found))
        except LatePut:
            self.newest = self._pending = None
            raise
        self.newest, self._pending = after, None


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

    `at_ms`: only manifests that were written until then. CorruptCheckpoint for one that is not
    what was written, or that is missing between others; StoreError.
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
