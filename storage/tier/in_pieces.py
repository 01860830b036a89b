"""Bytes of a large object as they come, asked for in ranges that a request has time for."""

from collections.abc import Iterator

from storage.env import Buffer
from storage.tier.port import ObjectStore

ASKED_BYTES = 8 * 1024 * 1024
"""Of an object, asked for at a time: a request has a limit of time."""


def in_pieces(store: ObjectStore, key: str, position: int, size_bytes: int) -> Iterator[Buffer]:
    """The bytes, in pieces that are done with before the next; fewer where the object ends.

    ObjectMissing, StoreError, also in the middle.
    """
    end = position + size_bytes
    for begin in range(position, end, ASKED_BYTES):
        size = min(ASKED_BYTES, end - begin)
        for piece in store.pieces(key, begin, size):
            size -= len(piece)
            yield piece
        if size:
            return
