"""The segments of a partition that lie in the store, as segments of its log.

Such a segment is read and searched as any other: its `.log` is a `RemoteObject`, its indexes are
read through `SideFiles`. Its times are known from the manifest, so that a search asks the store
for nothing but what answers it.
"""

from collections.abc import Iterable
from functools import partial
from weakref import ref

from storage.errors import CorruptIndex, CorruptLog, FileMissing
from storage.files.layout import LOG, SNAPSHOT, TXN_INDEX, segment_name
from storage.files.partition_files import FilePool, PartitionFiles
from storage.segment.segment import Segment
from storage.segment.verified_ranges import VerifiedRanges
from storage.tier.manifests.manifest import RemoteSegment
from storage.tier.names import RECORDS, PartitionKeys
from storage.tier.remote_object import Reach, RemoteObject, sums_anew
from storage.tier.side_files import SideFiles, ending_of


def unique_of(segment: Segment) -> str:
    """The unique text of a segment in the store, as its row has it."""
    return segment.swap_suffix.removeprefix("-")


class RemoteSegments:
    """Makes them, each once. One thread at a time."""

    def __init__(self, reach: Reach, keys: PartitionKeys) -> None:
        """None yet."""
        self._reach = reach
        self._keys = keys
        self._side = SideFiles(reach, keys)
        self._files = PartitionFiles(self._side, FilePool(self._side), keys.prefix.rstrip("/"))
        self._made: dict[str, Segment] = {}

    def of(self, rows: Iterable[RemoteSegment]) -> tuple[Segment, ...]:
        """Segments for rows of a manifest, in their order; the same one for the same row."""
        return tuple(self._made.get(row.unique) or self._make(row) for row in rows)

    def forget(self, row: RemoteSegment) -> None:
        """The segment's objects are about to go: who still reads it asks the log again."""
        segment = self._made.pop(row.unique, None)
        if segment is not None:
            segment.is_removed = True
        self._side.forget(row.unique)
        if segment is not None and segment.away is not None:
            segment.away.let_go(0, row.size_bytes)

    def producers_at_end(self, row: RemoteSegment) -> bytes:
        """The snapshot of its end; nothing where the store has none that is sound. StoreError."""
        path = f"{segment_name(row.base_offset, SNAPSHOT)}{ending_of(row.unique)}"
        try:
            return self._side.read_bytes(path)
        except (FileMissing, CorruptIndex, CorruptLog):
            return b""

    def _make(self, row: RemoteSegment) -> Segment:
        segment = Segment(self._files, row.base_offset, row.size_bytes, row.modified_ms)
        segment.swap_suffix = ending_of(row.unique)
        segment.max_timestamp = row.max_timestamp
        segment.max_timestamp_offset = row.max_timestamp_offset
        segment.first_timestamp = row.first_timestamp
        segment.first_arrival_ms = row.first_arrival_ms
        segment.last_arrival_ms = row.last_arrival_ms
        segment.arrival_floor_ms = max(row.first_arrival_ms, 0)
        segment.untimed = row.has_untimed, row.size_bytes
        key = self._keys.segment(row.base_offset, row.unique, RECORDS)
        made = ref(segment)  # segment and object would hold each other

        def renewed() -> None:
            segment = made()
            if segment is not None:
                segment.sound = VerifiedRanges(row.size_bytes)

        sums = partial(_sums, self._reach, self._side, row, key)
        segment.away = RemoteObject(self._reach, key, row.size_bytes, renewed, sums)
        if TXN_INDEX not in row.parts:
            segment.aborted.reset()
        self._side.know(row)
        self._made[row.unique] = segment
        return segment


def _sums(reach: Reach, side: SideFiles, row: RemoteSegment, key: str) -> bytes:
    """Checksums of the blocks of its `.log`: those that were copied, else made of all of it.

    CorruptLog when it is not what was copied; StoreError.
    """
    return side.sums(row) or sums_anew(reach, key, row.parts[LOG])
