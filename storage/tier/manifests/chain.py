"""The manifests of one partition in the store, put one behind the other.

Each is put under the next number, and only where there is none: of two writers one wins, and the
other one stops (`storage.tier.single_writer`). A put whose answer was lost is made again with the
same bytes; what then is there tells whether it was ours. What counts is the newest manifest that
is in the store.
"""

from storage.env import Clock, Rng
from storage.tier.manifests.manifest import (
    Change,
    Manifest,
    apply,
    changed,
    render_delta,
    render_full,
)
from storage.tier.manifests.reading import is_full, is_there, read_behind, read_newest
from storage.tier.names import PartitionKeys, unique_text
from storage.tier.port import ObjectStore
from storage.tier.single_writer import LatePut, SingleWriter


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
