"""Contents of a file of a data directory, row by row, by its name (semantics.md 12).

Reads only, in bounded memory, with or without a broker at work on it: a file that grows is shown as
long as it was when it was opened.
"""

from collections.abc import Callable, Iterator

from storage.dump.indexes import dump_offset_index, dump_time_index, dump_txn_index, dump_zones
from storage.dump.log import Detail, dump_log
from storage.dump.rows import Dumped
from storage.dump.state import dump_epochs, dump_offsets, dump_snapshot
from storage.env import FileSystem
from storage.errors import StorageError
from storage.files.layout import (
    CLEANED,
    CLEANER_OFFSETS_FILE,
    DELETED,
    HIGH_WATERMARKS_FILE,
    LEADER_EPOCHS_FILE,
    LOG,
    LOG_START_OFFSETS_FILE,
    OFFSET_INDEX,
    RECOVERY_POINTS_FILE,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    ZONES,
    parse_segment_name,
)
from storage.scan.log_window import LogWindow

_BESIDE: dict[str, Callable[[LogWindow, int], Iterator[Dumped]]] = {
    OFFSET_INDEX: dump_offset_index,
    TIME_INDEX: dump_time_index,
    TXN_INDEX: dump_txn_index,
    ZONES: dump_zones,
}
_BY_NAME = {
    LEADER_EPOCHS_FILE: dump_epochs,
    RECOVERY_POINTS_FILE: dump_offsets,
    LOG_START_OFFSETS_FILE: dump_offsets,
    HIGH_WATERMARKS_FILE: dump_offsets,
    CLEANER_OFFSETS_FILE: dump_offsets,
}
KNOWN_FILES = ", ".join((LOG, *_BESIDE, SNAPSHOT, *_BY_NAME))


class UnknownFile(StorageError):  # noqa: N818 - the state it found
    """The name is none that a data directory gives to a file that can be dumped."""


def dump_file(fs: FileSystem, path: str, detail: Detail) -> Iterator[Dumped]:
    """The rows of one file. UnknownFile by its name, DiskError when it cannot be read."""
    name = path.rpartition("/")[2]
    for suffix in (DELETED, CLEANED, SWAP):
        name = name.removesuffix(suffix)
    segment = parse_segment_name(name)
    if name not in _BY_NAME and (
        segment is None or segment.suffix not in {LOG, SNAPSHOT, *_BESIDE}
    ):
        raise UnknownFile(path, f"its name is none of {KNOWN_FILES} (20 digits before a dot)")
    file = fs.open(path, write=False)
    try:
        size = file.size()
        if segment is None:
            yield from _BY_NAME[name](fs, path, size)
        elif segment.suffix == SNAPSHOT:
            yield from dump_snapshot(fs, path, size)
        elif segment.suffix == LOG:
            yield from dump_log(file, size, segment.base_offset, detail)
        else:
            yield from _BESIDE[segment.suffix](LogWindow(file, size), segment.base_offset)
    finally:
        file.close()
