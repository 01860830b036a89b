"""An object store in memory: the model of the port.

Lists go folder by folder, as SeaweedFS has it: code that needs Amazon's order over folders fails.
"""

import threading
from collections.abc import Callable, Iterator, Sequence

from storage.env import Buffer
from storage.tier.port import (
    MAX_GET_BYTES,
    ObjectExists,
    ObjectFacts,
    ObjectMissing,
    ObjectTooLarge,
    StoreError,
)


class MemoryStore:
    """The `ObjectStore` of tests. Used from any thread."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        """Without objects. `now_ms` is the store's own clock."""
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self.objects: dict[str, bytes] = {}
        """Content by key; tests may change it, remove it and add to it."""
        self.modified_ms: dict[str, int] = {}
        """Times by key."""

    def put_new(self, key: str, data: Buffer) -> None:
        """As the port has it."""
        self._check(key)
        with self._lock:
            if key in self.objects:
                raise ObjectExists(key, "put_new", "status 412 PreconditionFailed")
            self._put(key, bytes(data))

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        """As the port has it."""
        self._check(key)
        data = b"".join(parts)
        if len(data) != size_bytes:
            raise StoreError(key, "put_file", f"its parts have {len(data)} bytes")
        with self._lock:
            self._put(key, data)

    def get(self, key: str) -> bytes:
        """As the port has it."""
        data = self._data(key)
        if len(data) > MAX_GET_BYTES:
            raise ObjectTooLarge(key, "get", f"it has {len(data)} bytes")
        return data

    def get_range(self, key: str, position: int, size: int) -> bytes:
        """As the port has it."""
        assert position >= 0, position
        assert size > 0, size
        return self._data(key)[position : position + size]

    def pieces(self, key: str, position: int, size: int) -> Iterator[Buffer]:
        """As the port has it; a call of `get_range`."""
        yield self.get_range(key, position, size)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
        """As the port has it: as it is at the first object that is taken."""
        assert not prefix or prefix.endswith("/"), prefix
        with self._lock:
            found = [
                ObjectFacts(key, len(data), self.modified_ms.get(key, 0))
                for key, data in self.objects.items()
                if key.startswith(prefix) and _folders(key) > _folders(after)
            ]
        yield from sorted(found, key=lambda each: _folders(each.key))

    def delete(self, keys: Sequence[str]) -> None:
        """As the port has it."""
        with self._lock:
            for key in keys:
                self.objects.pop(key, None)
                self.modified_ms.pop(key, None)

    def _data(self, key: str) -> bytes:
        self._check(key)
        with self._lock:
            try:
                return self.objects[key]
            except KeyError:
                raise ObjectMissing(key, "get", "status 404 NoSuchKey") from None

    def _put(self, key: str, data: bytes) -> None:
        self.objects[key] = data
        self.modified_ms[key] = self._now_ms()

    @staticmethod
    def _check(key: str) -> None:
        assert all(part not in {"", ".", ".."} for part in key.split("/")), key
        assert len(key.encode()) <= 1024, key


def _folders(key: str) -> tuple[str, ...]:
    return tuple(key.split("/")) if key else ()
