"""Whether a reader of files may believe what it makes of a partition's zone maps."""

from pipeline.sources.zone_proof import SeenLog, proved_rows
from protocol.records.record import read_records
from protocol.records.scan import scan_batches
from storage.env import FileSystem
from storage.layout import LOG, ZONES, segment_name
from storage.partition_listing import look_at
from storage.zone_rows import UNREAD


def judge_zones(fs: FileSystem, path: str) -> int:
    """Hold every believed row against the records that lie there; how many there were."""
    if not fs.exists(path):
        return 0
    listing = look_at(fs, path)
    return sum(_judge_segment(fs, path, base) for base in listing.logs)


def _judge_segment(fs: FileSystem, path: str, base: int) -> int:
    data = memoryview(fs.read_bytes(f"{path}/{segment_name(base, LOG)}"))
    file = fs.open(f"{path}/{segment_name(base, LOG)}", write=False)
    zones = proved_rows(fs, f"{path}/{segment_name(base, ZONES)}", SeenLog(file, base, len(data)))
    file.close()
    if zones is None:
        return 0
    ends = [*zones.positions[1:], len(data)]
    for row in scan_batches(data).batches:
        index = next(at for at, end in enumerate(ends) if row[0] < end)
        assert zones.positions[index] <= row[0], "a batch lies before its zone"
        assert base + zones.offsets[index] <= row[1], "an offset lies before its zone"
        if not zones.flags[index] & UNREAD:
            times = [record.timestamp for record in read_records(data[row[0] : row[0] + row[5]])]
            assert zones.lows[index] <= min(times), "a time lies before its zone's"
            assert max(times) <= zones.highs[index], "a time lies behind its zone's"
    return sum(not flags & UNREAD for flags in zones.flags)
