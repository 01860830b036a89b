"""Zone maps that lack rows, or have those of records that nobody looked into."""

from storage.segment.zone_repair import mend_zones
from storage.timestamps import INT64_MAX
from storage.zones.rows import UNREAD
from tests.support.records.clock_logs import NOW, filled

RECORDS, READ_FROM = 30, 12


def test_records_behind_an_unread_zone_get_zones_of_their_own() -> None:
    log = filled(RECORDS)
    log.roll()
    segment = log.snapshot.segments[0]
    indexes, rules = log.search.lookup
    zones = indexes.of(segment, segment.size_bytes, rules).zones
    zones.truncate_to(0)
    zones.add_unread(0, 0, READ_FROM, segment.mtime_ms)
    mend_zones(segment, zones, segment.size_bytes, INT64_MAX)
    zones.close_zone()
    unread, *others = zones.zones()
    assert unread.flags & UNREAD
    assert (unread.first_offset, unread.record_count) == (0, READ_FROM)
    assert not any(each.flags & UNREAD for each in others)
    assert others[0].first_offset == READ_FROM
    assert others[0].min_timestamp == NOW + 10 * READ_FROM
    assert sum(each.record_count for each in others) == RECORDS - READ_FROM
