"""Makes the files beside a `.log` durable: indexes, zones, aborted transactions, a snapshot.

Rules: marks that rely on these files (the recovery point, the clean mark) are written after their
sync and that of their directory, which is the caller's. The page cache is not trusted after a
failed sync: the next one writes again what was lost; a snapshot is removed.
"""

from storage.env import FileSystem
from storage.errors import DiskError, FileMissing
from storage.files.layout import SNAPSHOT
from storage.segment.index_rebuild import write_indexes
from storage.segment.segment import Segment


def sync_files(segment: Segment) -> None:
    """Write out what is in memory only, and sync it; the names are the caller's. DiskError."""
    if segment.indexes is not None:
        write_indexes(segment.indexes)
        for index in segment.indexes:
            index.sync()
    segment.sync_aborted()
    sync_snapshot(segment.files.fs, segment.path_of(SNAPSHOT))


def sync_snapshot(fs: FileSystem, path: str) -> None:
    """Make a producers' snapshot durable, if there is one. DiskError: there is none any more."""
    try:
        file = fs.open(path)
    except FileMissing:
        return
    try:
        file.sync()
    except DiskError:
        fs.remove(path)  # a short cut: the one before it and the log tell the same
        raise
    finally:
        file.close()
