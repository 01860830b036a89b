"""Start offsets of logs whose first records were deleted: Kafka's checkpoint, and our copy.

Start offsets cannot be made again from the logs, so they are kept twice. The copy counts when the
checksum of Kafka's file is wrong. Only a file of ours has one; a Kafka that wrote later left a file
without, and a copy that may speak of topics that were deleted since.
"""

from collections.abc import Mapping

from storage.env import FileSystem
from storage.files.checkpoints import OffsetCheckpoint, OffsetsLoad
from storage.files.layout import LOG_START_OFFSETS_FILE, LOG_STARTS_COPY_FILE


class StartOffsets:
    """The start offsets of one data directory, in Kafka's file and in a copy of ours."""

    def __init__(self, fs: FileSystem, log_dir: str) -> None:
        """Nothing is read."""
        self._file = OffsetCheckpoint(fs, f"{log_dir}/{LOG_START_OFFSETS_FILE}")
        self._copy = OffsetCheckpoint(fs, f"{log_dir}/{LOG_STARTS_COPY_FILE}")

    def load(self) -> OffsetsLoad:
        """Those of the file, or of the copy if the file is a damaged one of ours. DiskError."""
        load, copy = self._file.load(), self._copy.load()
        if load.damage is None or not load.is_ours or copy.damage is not None:
            return load
        return OffsetsLoad(copy.offsets, f"{load.damage}; its copy is whole and was taken", True)

    def may_hold(self, name: tuple[str, int]) -> bool:
        """True when file or copy may have an entry of that partition. Reads nothing."""
        return self._file.may_hold(name) or self._copy.may_hold(name)

    def save(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Replace both, durably. DiskError: ask again."""
        self._file.save(offsets)
        self._copy.save(offsets)
