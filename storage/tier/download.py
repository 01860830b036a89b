"""Segments brought back from the store as ordinary files of a partition's directory.

Every file is compared with its CRC-32C in the manifest while it is written, and is synced. Names
are not: the caller syncs the directory when all of it is there.
"""

from collections.abc import Callable, Iterator

from protocol.checksum import crc32c
from storage.env import Buffer, File, FileSystem
from storage.errors import CorruptLog
from storage.files.layout import LOG, SNAPSHOT, segment_name
from storage.tier.manifests.manifest import FilePart, RemoteSegment
from storage.tier.names import PartitionKeys
from storage.tier.past_state import object_key
from storage.tier.port import ObjectMissing, ObjectStore, in_pieces

Fetched = Callable[[int], object]
"""Called with the bytes that have come."""
TRIES = 2
"""Bytes may change on their way: a file with another CRC is asked for again."""


class Download:
    """Files of one partition on their way from the store to its directory."""

    def __init__(
        self,
        store: ObjectStore,
        keys: PartitionKeys,
        fs: FileSystem,
        directory: str,
        fetched: Fetched,
    ) -> None:
        """Nothing is asked."""
        self._store = store
        self._keys = keys
        self._fs = fs
        self._directory = directory
        self._fetched = fetched

    def segment(self, segment: RemoteSegment) -> None:
        """All files of a segment. CorruptLog for one that is lost or changed; DiskError."""
        for suffix in segment.parts:
            if suffix != SNAPSHOT:
                self._bring(segment, suffix, segment_name(segment.base_offset, suffix))
        self.snapshot(segment)
        log = f"{self._directory}/{segment_name(segment.base_offset, LOG)}"
        self._fs.set_mtime(log, segment.modified_ms)

    def snapshot(self, segment: RemoteSegment) -> bool:
        """The producers of a segment's end; False where the store has none. As `segment`."""
        if SNAPSHOT not in segment.parts:
            return False
        self._bring(segment, SNAPSHOT, segment_name(segment.end_offset, SNAPSHOT))
        return True

    def empty_segment(self, base_offset: int) -> None:
        """A `.log` without a record, so that the next one gets this offset. DiskError."""
        file = self._fs.open(f"{self._directory}/{segment_name(base_offset, LOG)}", create=True)
        try:
            file.sync()
        finally:
            file.close()

    def _bring(self, segment: RemoteSegment, suffix: str, name: str) -> None:
        key, part = object_key(self._keys, segment, suffix), segment.parts[suffix]
        file = self._fs.open(f"{self._directory}/{name}", create=True)
        try:
            if not any(self._written(file, key, part) == part.crc for _ in range(TRIES)):
                raise CorruptLog(key, f"its {suffix} is not what was copied to the store")
            file.sync()
        finally:
            file.close()

    def _written(self, file: File, key: str, part: FilePart) -> int:
        crc = came = 0
        for piece in self._pieces(key, part):
            file.write_at(came, piece)
            crc, came = crc32c(piece, crc), came + len(piece)
            self._fetched(len(piece))
        if came != part.size_bytes:
            text = f"{came} instead of {part.size_bytes} bytes at {part.position}"
            raise CorruptLog(key, text)
        return crc

    def _pieces(self, key: str, part: FilePart) -> Iterator[Buffer]:
        try:
            yield from in_pieces(self._store, key, part.position, part.size_bytes)
        except ObjectMissing as error:
            raise CorruptLog(key, "the store has lost this object") from error
