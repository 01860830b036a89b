"""Errors of storage: faults of the disk, damaged files, directories that are not ours.

Disk faults never turn into expected outcomes or bugs on their own: the caller takes the log
offline and says so (operations B3). Every error carries the path it speaks of.
"""

# ruff: noqa: N818 - an error is named after what happened: NoSpace, CorruptIndex

from errno import EIO, ENODEV, ENXIO, EROFS

DEVICE_ERRORS = frozenset({EIO, EROFS, ENODEV, ENXIO})
"""Numbers of errors of a device that is broken or gone, or whose file system has stopped writing.
The disk of a partition whose name or room is at fault reports others."""


class StorageError(Exception):
    """Anything that storage reports about a file or directory.

    `path` is the one it means, `message` says the rest.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


class DiskError(StorageError):
    """The operating system refused `operation` on `path`. `errno` is its number, 0 if unknown."""

    def __init__(self, path: str, operation: str, message: str, errno: int = 0) -> None:
        super().__init__(path, f"{operation} failed: {message}")
        self.operation = operation
        self.errno = errno

    @property
    def is_of_device(self) -> bool:
        """True when the device or its file system has failed, for all files that are on it."""
        return self.errno in DEVICE_ERRORS


class NoSpace(DiskError):
    """The disk or the quota is full. A part of the bytes may have been written."""


class FileMissing(DiskError):
    """There is no file or directory of that name."""


class DirectoryLocked(StorageError):
    """Another process, or another part of this one, holds the lock of the data directory."""


class CorruptIndex(StorageError):
    """An index or zone file contradicts itself or its log. It can be rebuilt from the log."""


class CorruptLog(StorageError):
    """The log itself is damaged where good data follows: kept as it is and reported, never cut."""


class LogOffline(StorageError):
    """The log takes no writes: it is closed, damaged, or its disk has failed."""


class CorruptCheckpoint(StorageError):
    """A checkpoint, snapshot or properties file cannot be read: absent then, never zero."""


class NewerFormat(StorageError):
    """The file was written by a newer version than this one: refused, so nothing gets lost."""


class InvalidOffset(StorageError):
    """An index entry would go backwards or does not fit its segment. Nothing was changed."""
