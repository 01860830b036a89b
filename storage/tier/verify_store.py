"""Proof that the store has what its manifests name: the objects, their sizes, and their bytes.

Partitions are looked at one after the other. A broker may be at work meanwhile: what seems to be
lost is asked for once more, and looked up in the manifest as it is then.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from protocol.checksum import crc32c
from storage.errors import CorruptCheckpoint, NewerFormat
from storage.files.layout import LOG
from storage.tier.manifests.manifest import Manifest, RemoteSegment
from storage.tier.manifests.reading import read_newest
from storage.tier.names import RECORDS, SIDE, PartitionKeys, number_of, object_of
from storage.tier.port import ObjectFacts, ObjectMissing, ObjectStore, in_pieces
from storage.tier.side_files import side_bytes


class TierFault(Enum):
    """Kinds of damage, each with its consequence and what to do."""

    MANIFEST = (
        "the broker goes on by its file horolog-remote; without its directory the partition is "
        "lost: bring the object back from a version or a copy of the bucket"
    )
    RECORDS = (
        "reads of these offsets fail with CORRUPT_MESSAGE, unless the disk has them: bring the "
        "object back from a version or a copy of the bucket; DeleteRecords gives up what cannot be "
        "brought back"
    )
    SIDE = (
        "indexes are made again from the records; reads of committed records fail where there are "
        "transactions: bring the object back from a version or a copy of the bucket"
    )


class TierFinding(NamedTuple):
    """One damaged object."""

    keys: PartitionKeys
    base_offset: int | None
    """Of the segment; None for a manifest."""
    key: str
    fault: TierFault
    detail: str


class VerifiedPartition(NamedTuple):
    """Result for one partition."""

    keys: PartitionKeys
    segments: int
    size_bytes: int
    """Of the objects that the manifest names."""
    unnamed: int
    """Objects of segments that no manifest names: the broker's sweep removes them."""
    findings: tuple[TierFinding, ...]


def verify_partition(store: ObjectStore, keys: PartitionKeys, *, deep: bool) -> VerifiedPartition:
    """Compares the store with the newest manifest of a partition. `deep`: reads all bytes.

    StoreError: nothing is proven.
    """
    found = {each.key: each for each in store.list(keys.prefix)}
    gaps = tuple(_gaps(keys, found))
    try:
        newest = read_newest(store, keys)
    except (CorruptCheckpoint, NewerFormat, ObjectMissing) as error:
        finding = TierFinding(keys, None, keys.manifests, TierFault.MANIFEST, str(error))
        return VerifiedPartition(keys, 0, 0, 0, (*gaps, finding))
    rows = () if newest is None else newest.segments
    damage = damaged_segments(store, keys, rows, found, deep=deep)
    if damage:
        damage = _still(store, damage)
    named = {keys.segment(row.base_offset, row.unique, end) for row in rows for end in _ENDS}
    segments = {key for key in found if (name := object_of(key)) is not None and name.unique}
    size_bytes = sum(row.size_bytes + side_bytes(row) for row in rows)
    unnamed = len(segments - named)
    return VerifiedPartition(keys, len(rows), size_bytes, unnamed, (*gaps, *damage))


def damaged_segments(
    store: ObjectStore,
    keys: PartitionKeys,
    rows: Iterable[RemoteSegment],
    found: Mapping[str, ObjectFacts],
    *,
    deep: bool,
) -> list[TierFinding]:
    """Damage of these segments. `found`: objects of the partition, as the store has listed them.

    StoreError: nothing is proven.
    """
    return [each for row in rows for each in _Segment(store, keys, row).faults(found, deep=deep)]


_ENDS = (RECORDS, SIDE)


def _gaps(keys: PartitionKeys, found: dict[str, ObjectFacts]) -> Iterator[TierFinding]:
    """Manifests that are missing between others."""
    names = (key for key in found if key.startswith(keys.manifests))
    numbers = sorted(number for key in names if (number := number_of(key)) is not None)
    expected = numbers[0] if numbers else 0
    for number in numbers:
        if number != expected:
            detail = f"manifests {expected} to {number - 1} are missing: no --at of their time"
            key = keys.manifest(expected)
            yield TierFinding(keys, None, key, TierFault.MANIFEST, detail)
        expected = number + 1


def _still(store: ObjectStore, damage: list[TierFinding]) -> list[TierFinding]:
    """Those whose segments are still named, and not on their way out of the store."""
    newest = read_newest(store, damage[0].keys)
    named = _uniques(newest)
    return [each for each in damage if (found := object_of(each.key)) and found.unique in named]


def _uniques(manifest: Manifest | None) -> frozenset[str]:
    return frozenset(() if manifest is None else (row.unique for row in manifest.segments))


class _Segment:
    """The two objects of a segment."""

    def __init__(self, store: ObjectStore, keys: PartitionKeys, row: RemoteSegment) -> None:
        self._store = store
        self._keys = keys
        self._row = row

    def faults(self, found: Mapping[str, ObjectFacts], *, deep: bool) -> Iterator[TierFinding]:
        row = self._row
        objects = (
            (RECORDS, TierFault.RECORDS, row.size_bytes),
            (SIDE, TierFault.SIDE, side_bytes(row)),
        )
        for suffix, fault, size_bytes in objects:
            key = self._keys.segment(row.base_offset, row.unique, suffix)
            detail = self._size_fault(found.get(key), key, size_bytes)
            if not detail and deep:
                detail = self._content_fault(key, suffix)
            if detail:
                yield TierFinding(self._keys, row.base_offset, key, fault, detail)

    def _size_fault(self, found: ObjectFacts | None, key: str, size_bytes: int) -> str:
        if found is None:
            return self._missing(key)
        if found.size_bytes != size_bytes:
            return f"it has {found.size_bytes} bytes, not {size_bytes}"
        return ""

    def _missing(self, key: str) -> str:
        """Asked for, since it may have come after the list."""
        try:
            self._store.get_range(key, 0, 1)
        except ObjectMissing:
            return "it is not there"
        return ""

    def _content_fault(self, key: str, suffix: str) -> str:
        try:
            return self._records_fault(key) if suffix == RECORDS else self._side_fault(key)
        except ObjectMissing:
            return "it is not there"

    def _records_fault(self, key: str) -> str:
        part, crc, came = self._row.parts[LOG], 0, 0
        for piece in in_pieces(self._store, key, 0, part.size_bytes):
            crc, came = crc32c(piece, crc), came + len(piece)
        if came != part.size_bytes:
            return f"it ends at {came}"
        return "" if crc == part.crc else "its CRC-32C is not that of what was copied"

    def _side_fault(self, key: str) -> str:
        data, row = self._store.get(key), self._row
        parts = {suffix: part for suffix, part in row.parts.items() if suffix != LOG}
        if row.sums is not None:
            parts["block sums"] = row.sums
        for name, (position, size_bytes, crc) in parts.items():
            if crc32c(data[position : position + size_bytes]) != crc:
                return f"the CRC-32C of its {name} is not that of what was copied"
        return ""
