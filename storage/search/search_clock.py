"""`horolog.search.clock`: which time of a record a search looks at (time.md 3).

- record: what the record claims or, in batches that the broker stamped, the stamp; as Kafka.
- arrival: the last arrival of the record's zone, so never earlier than it came, and later by the
  width of the zone at most; in stamped batches the stamp, which is exact.
- earlier: the earlier of the two; of a record that claims no time, its arrival.

One function, `time_of`, is the rule for searches, ranges and tests. Milliseconds.
"""

from enum import StrEnum

from protocol.records.batch import NO_TIMESTAMP
from storage.zones.rows import Zone


class SearchClock(StrEnum):
    """The clocks of a search by time."""

    RECORD = "record"
    ARRIVAL = "arrival"
    EARLIER = "earlier"


RECORD, ARRIVAL, EARLIER = SearchClock  # a member is looked up slowly, a name is not
CLOCKS = {clock.value: clock for clock in SearchClock}
"""By the names that the setting has."""


def time_of(clock: SearchClock, timestamp: int, zone: Zone, *, is_stamped: bool) -> int:
    """A record's time by this clock; -1 if it has none. `timestamp`: its own, or the stamp."""
    if clock is RECORD:
        return timestamp
    arrival = zone.last_arrival_ms
    if is_stamped:
        arrival = min(max(timestamp, zone.first_arrival_ms), arrival)
    if clock is ARRIVAL or timestamp == NO_TIMESTAMP:
        return arrival
    return min(timestamp, arrival)


def likely_arrival(zone: Zone, offset: int) -> int:
    """Estimated arrival of the record in ms: on the straight line between its zone's two arrivals.

    For lags, where one number is wanted and being too late is as bad as too early.
    """
    steps = zone.record_count - 1
    if steps <= 0:
        return zone.last_arrival_ms
    step = min(max(offset - zone.first_offset, 0), steps)
    width = zone.last_arrival_ms - zone.first_arrival_ms
    return zone.first_arrival_ms + width * step // steps
