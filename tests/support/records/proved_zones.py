"""Checks that a reader of files may trust what it makes of a partition's zone maps."""

from protocol.records.record import read_records
from storage.env import FileSystem
from storage.files.layout import LOG, ZONES, segment_name
from storage.files.partition_listing import look_at
from storage.scan.log_scan import LogScan
from storage.zones.columns import ZoneColumns
from storage.zones.proved_rows import SeenLog, proved_rows
from storage.zones.rows import UNREAD


def judge_zones(fs: FileSystem, path: str) -> int:
    """Hold every believed row against the records that lie there; how many there were.

    Records are those of sound batches, with offsets in order: a sector that never came leaves zeros
    where a batch has its offset, which no CRC covers, and every reader ends before it.
    """
    if not fs.exists(path):
        return 0
    listing = look_at(fs, path)
    return sum(_judge_segment(fs, path, base) for base in listing.logs)


def _judge_segment(fs: FileSystem, path: str, base: int) -> int:
    file = fs.open(f"{path}/{segment_name(base, LOG)}", write=False)
    size = file.size()
    zones = proved_rows(fs, f"{path}/{segment_name(base, ZONES)}", SeenLog(file, base, size))
    if zones is None:
        return 0
    assert sorted(zones.offsets) == list(zones.offsets), "offsets of zones run back"
    ends = [*zones.positions[1:], size]
    for chunk in LogScan(file, limit=size, next_offset=base).chunks():
        for row in chunk.rows:
            begin = chunk.position + row[0]
            zone = next(at for at, end in enumerate(ends) if begin < end)
            assert zones.positions[zone] <= begin, "a batch is before its zone"
            assert base + zones.offsets[zone] <= row[1], "an offset is before its zone"
            if zone + 1 < len(zones):
                assert row[2] < base + zones.offsets[zone + 1], "an offset is behind its zone"
            if not zones.flags[zone] & UNREAD:
                _judge_times(zones, zone, chunk.data[row[0] : row[0] + row[5]])
    file.close()
    return sum(not flags & UNREAD for flags in zones.flags)


def _judge_times(zones: ZoneColumns, zone: int, batch: memoryview) -> None:
    times = [record.timestamp for record in read_records(batch)]
    assert zones.lows[zone] <= min(times), "a time is before its zone's"
    assert max(times) <= zones.highs[zone], "a time is behind its zone's"
