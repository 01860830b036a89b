"""Contents of a partition's directory, from one look; left-overs are settled first.

Rules (semantics.md 8.5, 9.3): `.deleted` and `.cleaned` go; a `.swap` whose set is complete takes
the place of what it was made from; index files without their `.log` go. Unknown files stay. Each
step is durable before the next one, so that this, too, may be cut off at any call.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from storage.env import DirEntry, FileSystem
from storage.files.layout import (
    CLEANED,
    DELETED,
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    parse_segment_name,
    segment_name,
)
from storage.scan.batch_walk import last_batch


@dataclass(slots=True)
class PartitionListing:
    """Names in a partition's directory, by what they mean."""

    logs: dict[int, DirEntry] = field(default_factory=dict)
    """`.log` files by base offset."""
    beside: dict[int, list[str]] = field(default_factory=dict)
    """Suffixes of the index files, by base offset."""
    snapshots: dict[int, int] = field(default_factory=dict)
    """Size of the producer snapshots, by offset."""
    leftovers: list[str] = field(default_factory=list)
    """Names that end in `.deleted`, `.cleaned` or `.swap`."""
    others: set[str] = field(default_factory=set)

    @property
    def bases(self) -> list[int]:
        """Base offsets of the segments, in order."""
        return sorted(self.logs)

    def lacks_index(self, base_offset: int) -> bool:
        """True when a segment has lost its offset or time index."""
        beside = self.beside.get(base_offset, ())
        return OFFSET_INDEX not in beside or TIME_INDEX not in beside


def list_partition(fs: FileSystem, path: str) -> PartitionListing:
    """Look at the directory, once if there is nothing left over from before; settle what is."""
    listing = look_at(fs, path)
    if listing.leftovers:
        _settle(fs, path, listing)
        listing = look_at(fs, path)
    for base in listing.beside.keys() - listing.logs.keys():
        for suffix in listing.beside.pop(base):
            fs.remove(f"{path}/{segment_name(base, suffix)}")
    return listing


def look_at(fs: FileSystem, path: str) -> PartitionListing:
    """Contents of the directory, left-overs and all; nothing is changed. DiskError."""
    return listing_of(fs.list_dir(path))


def listing_of(entries: Iterable[DirEntry]) -> PartitionListing:
    """The same out of a directory's names."""
    listing = PartitionListing()
    for entry in entries:
        name = entry.name
        parsed = None if entry.is_dir else parse_segment_name(name)
        if name.endswith((DELETED, CLEANED, SWAP)):
            listing.leftovers.append(name)
        elif parsed is None:
            listing.others.add(name)
        elif parsed.suffix == LOG:
            listing.logs[parsed.base_offset] = entry
        elif parsed.suffix == SNAPSHOT:
            listing.snapshots[parsed.base_offset] = entry.size_bytes
        elif parsed.suffix in SEGMENT_SUFFIXES:
            listing.beside.setdefault(parsed.base_offset, []).append(parsed.suffix)
    return listing


def _settle(fs: FileSystem, path: str, listing: PartitionListing) -> None:
    swaps = _swaps_to_finish(listing.leftovers)
    undone = [name for name in listing.leftovers if name.endswith(SWAP) and name not in swaps]
    others = [name for name in listing.leftovers if not name.endswith(SWAP)]
    for names in (undone, others):  # without its `.cleaned` files a set would look complete
        for name in names:
            fs.remove(f"{path}/{name}")
        fs.sync_dir(path)
    swapped = sorted(base for base, suffix in swaps.values() if suffix == LOG)
    if swapped:
        end = _end_of_swap(fs, f"{path}/{segment_name(swapped[-1], LOG)}{SWAP}")
        for base in [b for b in listing.logs if swapped[0] <= b <= max(swapped[-1], end)]:
            for suffix in (LOG, *listing.beside.get(base, ())):
                fs.remove(f"{path}/{segment_name(base, suffix)}")
        fs.sync_dir(path)  # or what it replaces could come back beside it
    for name in sorted(swaps):
        fs.rename(f"{path}/{name}", f"{path}/{name.removesuffix(SWAP)}")
    fs.sync_dir(path)


def _end_of_swap(fs: FileSystem, path: str) -> int:
    """Offset of the last record of a segment that waits to take its place."""
    file = fs.open(path, write=False)
    try:
        last = last_batch(file, 0, file.size())
    finally:
        file.close()
    return -1 if last is None else last.last_offset


def _swaps_to_finish(leftovers: list[str]) -> dict[str, tuple[int, str]]:
    """`.swap` files of complete sets: all below the lowest base that is still being cleaned."""
    cleaned = [
        parsed.base_offset
        for name in leftovers
        if name.endswith(CLEANED) and (parsed := parse_segment_name(name.removesuffix(CLEANED)))
    ]
    swaps = {}
    for name in leftovers:
        parsed = parse_segment_name(name.removesuffix(SWAP)) if name.endswith(SWAP) else None
        if parsed is not None and parsed.base_offset < min(cleaned, default=parsed.base_offset + 1):
            swaps[name] = (parsed.base_offset, parsed.suffix)
    return swaps
