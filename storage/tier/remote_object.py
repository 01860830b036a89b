"""One object of the store as a file that is read through the cache.

`read_at` and `read_into` fetch what is missing and so may take as long as the store does: they run
on the tier's lanes. `read_into_if_cached` never asks the store.
"""

# ruff: noqa: ARG002 - the calls of a port

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol

from storage.env import Buffer, File
from storage.errors import CorruptLog, DiskError, NoSpace
from storage.locks import Lock
from storage.tier.carrying import Carrier, StoreCarrier
from storage.tier.manifests.manifest import FilePart
from storage.tier.object_cache import (
    BLOCK_BYTES,
    ObjectCache,
    SparseCopy,
    sums_between,
    sums_by_reading,
    sums_of,
)
from storage.tier.port import ObjectMissing, ObjectStore

FETCH_BYTES = 4 * BLOCK_BYTES
"""Most bytes of one request to the store."""
TRIES = 3


class FaultsHeard(Protocol):
    """Hears of answers and objects that are not what was copied. Called from any thread."""

    def spoilt(self, key: str) -> None:
        """One answer was not; it may be asked for again."""

    def damaged(self, key: str) -> None:
        """A read was refused: the object is lost, or not what was copied."""


class Unheard:
    """Nobody wants to know."""

    def spoilt(self, key: str) -> None:
        """Nothing."""

    def damaged(self, key: str) -> None:
        """Nothing."""


class Reach(NamedTuple):
    """The store, and what of it is here."""

    store: ObjectStore
    cache: ObjectCache
    pace: Callable[[int], None] = lambda size_bytes: None  # noqa: ARG005 - a default
    """Called with the bytes that are about to be fetched; may wait."""
    copy_pace: Callable[[int], None] = lambda size_bytes: None  # noqa: ARG005 - a default
    """The same for what compaction sends."""
    faults: FaultsHeard = Unheard()
    copy_store: ObjectStore | None = None
    """The same store, for segments on their way up, where these are counted apart."""
    copier: Carrier | None = None
    """Sends them, where that is not done on the thread that asks for it."""

    @property
    def sender(self) -> ObjectStore:
        """The store that copies go to."""
        return self.copy_store or self.store

    @property
    def carrier(self) -> Carrier:
        """Sends what is copied."""
        return self.copier or StoreCarrier(self.sender, self.faults.spoilt)


class RemoteObject:
    """A `storage.env.File` that cannot be written. Used from any thread."""

    __slots__ = (
        "_fetching",
        "_key",
        "_known_sums",
        "_on_renewed",
        "_reach",
        "_size_bytes",
        "_sums",
        "path",
    )

    def __init__(
        self,
        reach: Reach,
        key: str,
        size_bytes: int,
        on_renewed: Callable[[], None] = lambda: None,
        sums: Callable[[], bytes] = lambda: b"",
    ) -> None:
        """Nothing is asked. `on_renewed` hears, before any byte of it is seen, that the object
        has a new file in the cache, so that what was known of its bytes is not any longer.
        `sums` gives the checksums of its blocks, as `sums_of`, or nothing; it may ask the store.
        """
        self.path = key
        self._key = key
        self._reach = reach
        self._size_bytes = size_bytes
        self._on_renewed = on_renewed
        self._sums = sums
        self._known_sums = b""
        self._fetching = Lock()

    def here(self, position: int, size: int) -> File | None:
        """The local file, when it has all of these bytes. It keeps them."""
        cached = self._reach.cache.find(self._key)
        return cached.file if cached is not None and cached.has(position, size) else None

    def fetch(self, position: int, size: int) -> File:
        """The local file, with these bytes. CorruptLog when they are lost; StoreError."""
        cache = self._reach.cache
        cached = cache.find(self._key)
        if cached is not None and cached.has(position, size):
            cache.hits += 1
            return cached.file
        cache.misses += 1
        self._known_sums = self._known_sums or self._sums()
        for _ in range(TRIES):
            with suppress(NoSpace), self._fetching:
                cached = self._opened(position, size)
                self._fill(cached, position, size)
                if cached.has(position, size):
                    return cached.file
        raise DiskError(self.path, "fetch", "the cache has no room for it")

    def _opened(self, position: int, size: int) -> SparseCopy:
        """The local file; a new one when the old one has no room for what is missing of these."""
        cache = self._reach.cache
        cached = cache.find(self._key)
        if cached is not None:
            missing = sum(length for _, length in cached.missing(position, size))
            if not cache.has_room(cached, missing):
                cache.forget(self._key)
                cached = None
        if cached is None:
            self._on_renewed()
            cached = cache.make(self._key, self._size_bytes)
        return cached

    def _fill(self, cached: SparseCopy, position: int, size: int) -> None:
        for begin, length in cached.missing(position, size):
            for at in range(begin, begin + length, FETCH_BYTES):
                data = self._get(at, min(FETCH_BYTES, begin + length - at))
                self._reach.cache.fill(cached, at, data)

    def _get(self, position: int, size: int) -> bytes:
        """Whole blocks that are what was copied, as far as that is known. A fault is asked for
        twice: answers are spoilt on their way more often than objects.
        """
        expected = sums_between(self._known_sums, position, size)
        for _ in range(2):
            data = ask(self._reach, self._key, position, size)
            if len(data) == size and (not expected or sums_of(data) == expected):
                return data
            self._reach.faults.spoilt(self._key)
        self._reach.faults.damaged(self._key)
        if len(data) != size:
            raise CorruptLog(self.path, f"{len(data)} instead of {size} bytes at {position}")
        raise CorruptLog(self.path, f"the {size} bytes at {position} are not what was copied")

    # --- as a file ---

    def read_at(self, position: int, size: int) -> bytes:
        """The bytes, fetched if need be. CorruptLog, StoreError."""
        size = max(min(size, self._size_bytes - position), 0)
        return self.fetch(position, size).read_at(position, size) if size else b""

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fills the buffer, fetching if need be. CorruptLog, StoreError."""
        size = max(min(len(buffer), self._size_bytes - position), 0)
        return self.fetch(position, size).read_into(position, buffer[:size]) if size else 0

    def read_into_if_cached(self, position: int, buffer: memoryview) -> int | None:
        """As `read_into`; None when bytes are missing here, or not in the page cache.

        What is here counts as cached where the file system does not tell: else nothing ever would.
        """
        size = max(min(len(buffer), self._size_bytes - position), 0)
        file = self.here(position, size)
        if file is None:
            return None
        count = file.read_into_if_cached(position, buffer[:size])
        if count is None and not self._reach.cache.tells_memory:
            return file.read_into(position, buffer[:size])
        return count

    def size(self) -> int:
        """Bytes of the object."""
        return self._size_bytes

    def let_go(self, position: int, size: int) -> None:
        """Has the bytes fetched again when they are next asked for."""
        if size:
            self._reach.cache.forget(self._key)

    def drop_cache(self, position: int) -> bool:
        """As `let_go`; reads come from the store afterwards."""
        self.let_go(position, self._size_bytes)
        return True

    def fileno(self) -> int | None:
        """None: only its local files have one."""
        return None

    def reserve(self, position: int, size: int) -> None:
        """Nothing: it is not written."""

    def close(self) -> None:
        """Nothing: its local file belongs to the cache."""

    def write_at(self, position: int, data: Buffer) -> None:
        """Refused."""
        raise DiskError(self.path, "write", "objects never change")

    def write_parts_at(self, position: int, parts: Sequence[Buffer]) -> None:
        """Refused."""
        raise DiskError(self.path, "write", "objects never change")

    def truncate(self, size: int) -> None:
        """Refused."""
        raise DiskError(self.path, "truncate", "objects never change")

    def sync(self) -> None:
        """Nothing to do."""


def sums_anew(reach: Reach, key: str, part: FilePart) -> bytes:
    """Checksums of the blocks of an object, of which the one of the whole is known.

    Reads all of it. CorruptLog when it is not what was copied; StoreError.
    """
    sums, crc = sums_by_reading(partial(ask, reach, key), part.size_bytes, FETCH_BYTES)
    if crc != part.crc:
        reach.faults.damaged(key)
        raise CorruptLog(key, "it is not what was copied")
    return sums


def ask(reach: Reach, key: str, position: int, size: int) -> bytes:
    """Bytes of an object that were once there. CorruptLog when it is lost; StoreError."""
    reach.pace(size)
    try:
        return reach.store.get_range(key, position, size)
    except ObjectMissing as error:
        reach.faults.damaged(key)
        raise CorruptLog(key, "the store has lost this object") from error
