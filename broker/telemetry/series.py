"""Series of what clients pushed: the last value of each, bounded in number, gone with the client.

Changes on the event loop; a scrape copies from its thread.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from broker.telemetry.points import Labels, MetricPoint

MOST_OF_A_CLIENT = 1000
STALE_PUSHES = 3
"""A series that so many pushes in a row leave out is gone."""


class SeriesId(NamedTuple):
    """One series."""

    name: str
    labels: Labels


class PushedFamily:
    """All series of one name."""

    __slots__ = ("kind", "source", "values")

    def __init__(self, kind: str, source: str) -> None:
        """None yet; `source` is the name that the client gave."""
        self.kind = kind
        self.source = source
        self.values: dict[Labels, float] = {}


class _ClientRecord:
    """Series of one client."""

    __slots__ = ("ends_ms", "pushes", "seen")

    def __init__(self) -> None:
        """A client that pushed nothing."""
        self.ends_ms = 0
        self.pushes = 0
        self.seen: dict[SeriesId, int] = {}
        """Number of the last push that had it."""


class ClientSeries:
    """All of them."""

    def __init__(self, most: int) -> None:
        """At most `most` series."""
        self._most = most
        self._families: dict[str, PushedFamily] = {}
        self._clients: dict[UUID, _ClientRecord] = {}
        self.count = 0
        """Series that there are."""
        self.dropped: Counter[str] = Counter()
        """Points that were not taken, by the reason."""

    def take(self, instance_id: UUID, points: Iterable[MetricPoint], ends_ms: int) -> None:
        """Takes a push of a client, which is to be forgotten at `ends_ms` unless it is heard of."""
        record = self._clients.get(instance_id) or _ClientRecord()
        record.pushes += 1
        record.ends_ms = ends_ms
        for point in points:
            reason = self._taken(record, point)
            if reason is not None:
                self.dropped[reason] += 1
        oldest = record.pushes - STALE_PUSHES
        self._remove(record, [each for each, push in record.seen.items() if push <= oldest])
        if record.seen:
            self._clients[instance_id] = record
        else:  # else clients without series would have records, without a limit
            self._clients.pop(instance_id, None)

    def _taken(self, record: _ClientRecord, point: MetricPoint) -> str | None:
        """None, or the reason for which the point is dropped."""
        family = self._families.get(point.name)
        series = SeriesId(point.name, point.labels)
        if family is not None and family.kind != point.kind:
            return "type"
        if series not in record.seen:
            if len(record.seen) >= MOST_OF_A_CLIENT:
                return "client_limit"
            if self.count >= self._most:
                return "limit"
            self.count += 1
        if family is None:
            family = self._families[point.name] = PushedFamily(point.kind, point.source)
        record.seen[series] = record.pushes
        before = family.values.get(point.labels, 0.0) if point.is_delta else 0.0
        family.values[point.labels] = before + point.value
        return None

    def leave(self, instance_id: UUID, ends_ms: int) -> None:
        """The client is gone: its series end at `ends_ms`, unless that is sooner anyway."""
        record = self._clients.get(instance_id)
        if record is not None:
            record.ends_ms = min(record.ends_ms, ends_ms)

    def expire(self, now_ms: int) -> None:
        """Removes the series of clients that are gone."""
        for instance_id in [key for key, each in self._clients.items() if each.ends_ms <= now_ms]:
            record = self._clients.pop(instance_id)
            self._remove(record, list(record.seen))

    def _remove(self, record: _ClientRecord, gone: Iterable[SeriesId]) -> None:
        for series in gone:
            del record.seen[series]
            family = self._families[series.name]
            del family.values[series.labels]
            self.count -= 1
            if not family.values:
                del self._families[series.name]

    def families(self) -> Iterator[tuple[str, PushedFamily]]:
        """Families by name, in the order of the names. From any thread."""
        yield from sorted(self._families.copy().items())
