"""Places of tiers and back-ups: a bucket of an object store, or a directory for back-ups."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.env import Env
    from storage.tier.port import ObjectStore


def is_directory(place: str) -> bool:
    """True for a path, false for all that is written as a URL."""
    return "://" not in place


def place_to_read(env: "Env", place: str, *, allow_http: bool) -> "ObjectStore":
    """The store, for reading. TierRefused; NoPlace, DiskError."""
    if is_directory(place):
        from storage.backup.directory_store import DirectoryStore

        return DirectoryStore(env.fs, os.path.realpath(place))
    return _opened(place, allow_http=allow_http)


@contextmanager
def place_to_write(
    env: "Env", place: str, data_dir: str, *, allow_http: bool
) -> "Iterator[ObjectStore]":
    """The store, for one back-up of the data directory: a directory is locked meanwhile.

    TierRefused, StoreError: also where the store makes an object twice. NoPlace: the directory has
    other files, or one of both is inside the other; DirectoryLocked, DiskError.
    """
    if not is_directory(place):
        yield _proven(env, _opened(place, allow_http=allow_http))
        return
    from storage.backup.directory_store import DirectoryStore

    path = os.path.realpath(place)
    _check_apart(path, os.path.realpath(data_dir))
    store = DirectoryStore.for_writing(env.fs, path)
    try:
        yield store
    finally:
        store.close()


def _opened(url: str, *, allow_http: bool) -> "ObjectStore":
    from broker.access.store.objects import open_store

    return open_store(url, allow_http=allow_http)


def _proven(env: "Env", store: "ObjectStore") -> "ObjectStore":
    from broker.tier.create_only import prove_create_only
    from storage.tier.names import probe_name

    prove_create_only(store, probe_name(env.rng.uint64()))
    return store


def _check_apart(path: str, data_dir: str) -> None:
    from storage.backup.directory_store import NoPlace

    if os.path.commonpath((path, data_dir)) in {path, data_dir}:
        raise NoPlace(path, "back up", f"it and the data directory {data_dir} are not apart")
