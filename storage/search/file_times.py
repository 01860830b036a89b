"""Offsets by the modification times of segments: what ListOffsets 0 asks for (semantics.md 5.5).

Record times and indexes have no part in it. The answer is a list, latest offset first.
"""

from storage.files.layout import LOG, segment_name
from storage.files.partition_files import PartitionFiles
from storage.segment.log_snapshot import LogSnapshot

LATEST, EARLIEST = -1, -2


def offsets_before(
    snapshot: LogSnapshot, files: PartitionFiles, timestamp: int, max_count: int, now_ms: int
) -> list[int]:
    """At most `max_count` starts of segments that were last written by `timestamp` (ms).

    -1 begins with the log's end, -2 with its start. DiskError when the directory is not readable.
    """
    places = _places(snapshot, files, now_ms)
    if timestamp == LATEST:
        last = len(places)
    elif timestamp == EARLIEST:
        last = 1
    else:
        last = next((n for n in range(len(places), 0, -1) if places[n - 1][1] <= timestamp), 0)
    chosen = [offset for offset, _ in places[max(0, last - max(0, max_count)) : last]]
    return sorted(chosen, reverse=True)


def visible_to_consumers(offsets: list[int], high_watermark: int) -> list[int]:
    """Those above the high watermark give way to the watermark itself."""
    kept = [offset for offset in offsets if offset <= high_watermark]
    return offsets if len(kept) == len(offsets) else [high_watermark, *kept]


def _places(snapshot: LogSnapshot, files: PartitionFiles, now_ms: int) -> list[tuple[int, int]]:
    """(offset, time) of each segment, and of the log's end unless the last segment is empty."""
    times = {entry.name: entry.mtime_ms for entry in files.fs.list_dir(files.path)}
    places = [
        (
            max(segment.base_offset, snapshot.log_start_offset),
            times.get(segment_name(segment.base_offset, LOG), segment.mtime_ms),
        )
        for segment in snapshot.segments
    ]
    if snapshot.end_position:
        places.append((snapshot.log_end_offset, now_ms))
    return places
