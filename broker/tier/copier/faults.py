"""Errors of a copier, on their way to the broker that has ordered."""

from collections.abc import Sequence
from typing import Any

from storage.errors import CorruptLog, DiskError, FileMissing, NoSpace, StorageError
from storage.tier.carrying import NotAsSent
from storage.tier.port import (
    ObjectExists,
    ObjectMissing,
    StoreAway,
    StoreDenied,
    StoreError,
    StoreThrottled,
    StoreTimedOut,
)

MAX_TEXT = 1000
_OF_CALLS: dict[str, type[DiskError]] = {
    each.__name__: each
    for each in (
        DiskError, FileMissing, NoSpace, ObjectExists, ObjectMissing, StoreAway, StoreDenied,
        StoreError, StoreThrottled, StoreTimedOut,
    )
}  # fmt: skip
_OF_BYTES: dict[str, type[StorageError]] = {each.__name__: each for each in (CorruptLog, NotAsSent)}


def row_of(error: StorageError) -> Sequence[str | int]:
    """The row of a packet that has it."""
    name, path = type(error).__name__, error.path
    if isinstance(error, DiskError):
        why = error.message.removeprefix(f"{error.operation} failed: ")[:MAX_TEXT]
        return name, path, error.operation, why, error.errno
    return name, path, error.message[:MAX_TEXT]


def error_of(row: Sequence[Any]) -> StorageError:
    """The error as it was raised."""
    name, *what = row
    if name in _OF_CALLS:
        return _OF_CALLS[name](*what)
    return _OF_BYTES.get(name, StorageError)(*what)
