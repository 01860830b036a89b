"""The port to an object store: all that the tier asks of one. Real: `broker.access.store.objects`.

Rules: an object is written once, under a name that was never used before, and never changes after.
So a request may be repeated whatever became of the one before, and a late or doubled one does no
harm. Names are keys below the place that the store was opened for, parts joined with "/". Every
call blocks and has a limit of time: it runs on the tier's lanes, never on the loop.
"""

# ruff: noqa: N818 - an error is named after what happened: ObjectMissing, StoreDenied

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from storage.env import Buffer
from storage.errors import DiskError

MAX_GET_BYTES = 256 * 1024 * 1024
"""Most bytes of an object that is read whole: it is in memory then."""
ASKED_BYTES = 8 * 1024 * 1024
"""Of a large object, asked for at a time: a request has a limit of time."""


class StoreError(DiskError):
    """The store did not do it, or did not say: asked again later it may. `path` is the key."""

    @property
    def is_of_device(self) -> bool:
        """Always False: the device of this broker's data is another one."""
        return False


class StoreDenied(StoreError):
    """The store refuses these credentials, or this place."""


class StoreThrottled(StoreError):
    """The store wants fewer requests."""


class StoreTimedOut(StoreError):
    """The store did not answer in time."""


class StoreAway(StoreError):
    """The store cannot be reached, or the connection ended before its answer did."""


class ObjectTooLarge(StoreError):
    """The object has more than `MAX_GET_BYTES`: `in_pieces` reads it."""


class ObjectMissing(StoreError):
    """There is no object of this name, says the store itself: asked again, it will not be there."""


class ObjectExists(StoreError):
    """There is an object of this name already; nothing was written."""


class ObjectFacts(NamedTuple):
    """One object in a list."""

    key: str
    size_bytes: int
    modified_ms: int
    """Time by the store's clock."""


class ObjectStore(Protocol):
    """One place in an object store. Used from any thread."""

    def put_new(self, key: str, data: Buffer) -> None:
        """Makes an object in one request, unless there is one of its name.

        ObjectExists then, also when an earlier call made it whose answer was lost. StoreError
        leaves open whether it was made; of several at once all may get it (Amazon's 409), and
        then at most one of them was done.
        """

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        """Makes an object of `size_bytes` out of parts, of which few are in memory at a time.

        The name was never used: nothing is asked about it. StoreError leaves open whether the
        object was made; a part of one is never seen. It is also raised, before an object is made,
        when the parts have other than `size_bytes`; their own errors come through as they are.
        """

    def get(self, key: str) -> bytes:
        """The whole object. ObjectMissing, ObjectTooLarge, StoreError."""

    def get_range(self, key: str, position: int, size: int) -> bytes:
        """Bytes of an object, `size` of 1 or more: fewer at its end, none from there on.

        ObjectMissing, StoreError.
        """

    def pieces(self, key: str, position: int, size: int) -> Iterator[Buffer]:
        """The bytes of `get_range` as they come: each piece is done with before the next.

        Nothing of a large range is in memory at a time but what has come last. ObjectMissing,
        StoreError, also in the middle.
        """

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
        """The objects below a prefix that ends with "/", at whatever depth; "": all of them.

        Those right in one folder come in the order of their keys. The order of folders is the
        store's own: Amazon goes by the bytes of whole keys, SeaweedFS by folders, so that "a/1" is
        before "a-b/1". `after` (only those behind this key) is for a folder without folders.
        StoreError, also in the middle.
        """

    def delete(self, keys: Sequence[str]) -> None:
        """Removes objects; those that are not there are no error. StoreError: perhaps some."""


def in_pieces(store: ObjectStore, key: str, position: int, size_bytes: int) -> Iterator[Buffer]:
    """Bytes of a large object as they come, asked for in ranges that a request has time for.

    In pieces that are done with before the next; fewer where the object ends. ObjectMissing,
    StoreError, also in the middle.
    """
    end = position + size_bytes
    for begin in range(position, end, ASKED_BYTES):
        size = min(ASKED_BYTES, end - begin)
        for piece in store.pieces(key, begin, size):
            size -= len(piece)
            yield piece
        if size:
            return
