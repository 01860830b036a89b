"""Puts numbered objects as the only writer: of two that take one number, one wins.

A process that was killed may have a put on its way, which the store does after the next process
has read what is there. So the first put of a process may lose: what is there is read again. Once
it has put one, no earlier process's can come: each had one number at a time, and that is taken.

Old objects are removed, so a number may be free once more. A process that was stopped for as long
as that finds later ones behind the object that it has put, and knows that it is not alone.
"""

from collections.abc import Callable

from storage.errors import StorageError
from storage.tier.port import ObjectExists, ObjectStore, StoreError

MOST_LOST = 3
"""First puts that a process may lose: so many processes do not die within one request's time."""


class WriterReplaced(StorageError):  # noqa: N818 - what happened
    """Another process puts these objects, too: this one stops."""


class LatePut(StoreError):  # noqa: N818 - what happened
    """An earlier process's put came after all: nothing counts, and all is read again."""


class SingleWriter:
    """The puts of one process under one row of numbers. One thread at a time; blocks."""

    def __init__(self, store: ObjectStore) -> None:
        """Nothing was put."""
        self._store = store
        self._lost = 0
        self.has_put = False
        """True once the store has an object of this process: none of an earlier one can come."""

    def put(self, key: str, data: bytes, read: Callable[[str, bytes], object]) -> None:
        """Makes the object, or finds that an earlier call did whose answer was lost.

        StoreError leaves that open: the next call, with the same bytes, tells. LatePut,
        WriterReplaced when the object, or a later one, is another process's; `read` raises for what
        no writer put, since an answer that was spoilt on its way is no other writer.
        """
        try:
            self._store.put_new(key, data)
        except ObjectExists:
            found = self._store.get(key)
            if found != data:
                read(key, found)
                self._lose(key)
        self._look_behind(key)
        self.has_put = True

    def _look_behind(self, key: str) -> None:
        folder = key[: key.rindex("/") + 1]
        later = next(self._store.list(folder, after=key), None)
        if later is not None:
            raise WriterReplaced(key, f"another writer has made a later one, {later.key}")

    def _lose(self, key: str) -> None:
        self._lost += 1
        if self.has_put or self._lost > MOST_LOST:
            raise WriterReplaced(key, "another writer has made it") from None
        raise LatePut(key, "put_new", "an earlier process has made it") from None
