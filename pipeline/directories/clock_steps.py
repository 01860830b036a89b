"""Where the clock of a broker had gone back, as the zone maps of a partition tell.

A zone map keeps its arrivals from running backwards: what comes while the clock lies behind the
last arrival gets that one, and its zone is marked. So what came before may have been stamped by a
clock that was ahead.
"""

from storage.env import FileSystem
from storage.errors import FileMissing
from storage.files.layout import ZONES, segment_name
from storage.files.partition_listing import look_at
from storage.zones.rows import LIFTED, ROW_BYTES, Zone, iter_rows, sound_rows


def stepped_back_until(fs: FileSystem, path: str, offset: int) -> int:
    """The offset that follows the last zone, at `offset` or later, in which the clock lay behind.

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
