"""A directory that a restore fills: empty before, and marked until all in it is durable.

No broker starts on a marked directory, and the next restore into it begins again.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from storage.env import DirEntry, FileSystem, make_dir_durably
from storage.errors import DiskError, StorageError
from storage.files.layout import LOCK_FILE, RESTORING_FILE

_MARK_TEXT = b"A restore is at work here. If none is, it was cut off: run it once more.\n"
_OF_NOBODY = frozenset((LOCK_FILE, f"{RESTORING_FILE}.tmp", "lost+found"))
"""Names in a directory that count as nothing."""


class RestoreRefused(StorageError):  # noqa: N818 - what happened
    """There is nothing to restore from, or no room to restore into. Nothing was changed."""


@contextmanager
def marked_directory(fs: FileSystem, log_dir: str) -> Iterator[None]:
    """An empty directory that nobody else has, made if absent; marked unless all goes well.

    RestoreRefused when it is not empty; DirectoryLocked, DiskError.
    """
    make_dir_durably(fs, log_dir)
    lock = fs.lock(f"{log_dir}/{LOCK_FILE}")
    mark = f"{log_dir}/{RESTORING_FILE}"
    try:
        _empty(fs, log_dir)
        fs.write_atomically(mark, _MARK_TEXT)
        yield
        fs.sync_dir(log_dir)
        _unmark(fs, log_dir, mark)
    finally:
        lock.release()


def _unmark(fs: FileSystem, log_dir: str, mark: str) -> None:
    """Takes the mark away. DiskError: it is there, unless the disk refuses that, too."""
    fs.remove(mark)
    try:
        fs.sync_dir(log_dir)
    except DiskError:
        fs.write_atomically(mark, _MARK_TEXT)
        raise


def _empty(fs: FileSystem, log_dir: str) -> None:
    """Removes the files of a restore that was cut off. RestoreRefused for anything else."""
    found = [each for each in fs.list_dir(log_dir) if each.name not in _OF_NOBODY]
    if not found:
        return
    if not any(each.name == RESTORING_FILE for each in found):
        names = ", ".join(sorted(each.name for each in found)[:3])
        raise RestoreRefused(log_dir, f"it is not empty, there is {names}")
    for each in found:
        if each.name != RESTORING_FILE:
            _remove(fs, log_dir, each)


def _remove(fs: FileSystem, log_dir: str, entry: DirEntry) -> None:
    path = f"{log_dir}/{entry.name}"
    (fs.remove_tree if entry.is_dir else fs.remove)(path)
