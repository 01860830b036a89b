"""The times that a segment spans, by both clocks, from its zone map; remembered for closed ones.

A row is read for every 64 KiB of the log, so a large segment takes milliseconds: never on the loop.
"""

import threading
from collections import OrderedDict
from typing import NamedTuple
from uuid import UUID

from storage.log.log import Log
from storage.segment.segment import Segment
from storage.zones.zone_map import ARRIVAL_ESTIMATED, LOG_APPEND_TIME, UNREAD, Zone

REMEMBERED = 20_000
NO_TIME = -1

_Key = tuple[UUID | None, int, int, int]  # topic, partition, base offset, size


class TimeSpan(NamedTuple):
    """Milliseconds, -1 where there is none. Record times are those that the producers claim."""

    first_record_ms: int = NO_TIME
    last_record_ms: int = NO_TIME
    first_arrival_ms: int = NO_TIME
    last_arrival_ms: int = NO_TIME
    is_estimated: bool = False
    """Some arrivals are estimates: their zone map was lost."""
    is_append_time: bool = False
    """The records carry their arrival as time, whatever was claimed."""


class TimeSpans:
    """Spans that were computed. Used from any thread."""

    def __init__(self) -> None:
        """None yet."""
        self._lock = threading.Lock()
        self._spans: OrderedDict[_Key, TimeSpan] = OrderedDict()

    def of(self, log: Log, segment: Segment, limit: int, *, is_active: bool) -> TimeSpan:
        """The span of the first `limit` bytes. DiskError, CorruptLog."""
        key = log.topic_id, log.partition, segment.base_offset, limit
        known = self._spans.get(key)
        if known is not None:
            return known
        indexes, rules = log.search.lookup
        span = _span(list(indexes.of(segment, limit, rules).zones.zones())) if limit else TimeSpan()
        if not is_active:
            self._remember(key, span)
        return span

    def _remember(self, key: _Key, span: TimeSpan) -> None:
        with self._lock:
            self._spans[key] = span
            while len(self._spans) > REMEMBERED:
                self._spans.popitem(last=False)


def _span(zones: list[Zone]) -> TimeSpan:
    if not zones:
        return TimeSpan()
    timed = [
        zone
        for zone in zones
        if not zone.max_timestamp == NO_TIME == zone.min_timestamp and not zone.flags & UNREAD
    ]
    flags = 0
    for zone in zones:
        flags |= zone.flags
    return TimeSpan(
        min((zone.min_timestamp for zone in timed), default=NO_TIME),
        max((zone.max_timestamp for zone in timed), default=NO_TIME),
        zones[0].first_arrival_ms,
        zones[-1].last_arrival_ms,
        bool(flags & ARRIVAL_ESTIMATED),
        bool(flags & LOG_APPEND_TIME),
    )
