"""Steps back of a broker's clock, as marked in the zone maps of a partition.

Arrivals in a zone map never run backwards: while the clock is behind the last arrival, batches get
that arrival and their zone is marked. Batches before such a zone may have been stamped by a clock
that was ahead."""

from storage.env import FileSystem
from storage.errors import FileMissing
from storage.files.layout import ZONES, segment_name
from storage.files.partition_listing import look_at
from storage.zones.rows import LIFTED, ROW_BYTES, Zone, iter_rows, sound_rows


def stepped_back_until(fs: FileSystem, path: str, offset: int) -> int:
    """The offset that follows the last zone, at `offset` or later, in which the clock was behind.

    `offset` itself where there is none. DiskError.
    """
    end: int | None = None  # of the zones that were looked at before: the next one's first offset
    for base in reversed(look_at(fs, path).bases):
        for zone in reversed(_zones_of(fs, f"{path}/{segment_name(base, ZONES)}")):
            if zone.flags & LIFTED:
                behind = base + zone.first_offset + zone.record_count if end is None else end
                return max(offset, behind)
            end = base + zone.first_offset
        if base <= offset:
            break
    return offset


def _zones_of(fs: FileSystem, path: str) -> list[Zone]:
    try:
        rows = fs.read_bytes(path)
    except FileMissing:
        return []
    sound, _ = sound_rows(rows)
    return [Zone(*fields) for *fields, _ in iter_rows(rows[: sound * ROW_BYTES])]
