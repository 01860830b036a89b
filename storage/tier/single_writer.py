"""Puts numbered objects as the only writer: of two that take one number, one wins."""

from collections.abc import Callable

from storage.errors import StorageError
from storage.tier.port import ObjectExists, ObjectStore


class WriterReplaced(StorageError):  # noqa: N818 - what happened
    """Another process puts these objects, too: this one stops."""


def put_next(
    store: ObjectStore, key: str, data: bytes, read: Callable[[str, bytes], object]
) -> None:
    """Makes the object, or finds that an earlier call did whose answer was lost.

    StoreError leaves that open: the next call, with the same bytes, tells. WriterReplaced when the
    object is another writer's; `read` raises for what no writer put, since an answer that was
    spoilt on its way is no other writer.
    """
    try:
        store.put_new(key, data)
    except ObjectExists:
        found = store.get(key)
        if found != data:
            read(key, found)
            raise WriterReplaced(key, "another writer has made it") from None
