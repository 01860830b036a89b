"""Last arrival before a segment, as far as it is known: estimates of lost arrivals begin there.

Looked for only where a zone map has to be made from nothing, so that a start reads no more for it.
"""

from collections.abc import Iterable
from itertools import pairwise

from storage.errors import DiskError
from storage.files.layout import ZONES
from storage.segment.segment import Segment
from storage.zones.rows import UNREAD
from storage.zones.zone_map import ZoneMap


def link(segments: Iterable[Segment]) -> None:
    """Tell each of a log's segments, in their order, which one is before it."""
    for before, segment in pairwise(segments):
        segment.before = before


def arrival_floor(segment: Segment) -> int:
    """The latest arrival before it that is known, in ms; 0: none is.

    That of the nearest segment of the directory whose zone map has one, in memory or in its file.
    """
    floor, before = segment.arrival_floor_ms, segment.before
    while before is not None:
        floor = max(floor, before.arrival_floor_ms)
        known = _last_known(before)
        if known is not None:
            return max(floor, known)
        before = before.before
    return floor


def _last_known(segment: Segment) -> int | None:
    """The last arrival in a zone that was looked into; a file that cannot be read tells none."""
    indexes = segment.indexes
    if indexes is not None:
        zones = indexes.zones
    else:
        zones = ZoneMap(segment.files.fs, segment.path_of(ZONES), segment.base_offset)
    try:
        view = zones.view()
    except DiskError:
        return None
    for number in reversed(range(view.total)):
        zone = view.zone(number)
        if not zone.flags & UNREAD:
            return zone.last_arrival_ms
    return None
