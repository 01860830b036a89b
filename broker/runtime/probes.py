"""Counters of events in the broker. Read by the scrape, never by logic.

Every verb is a few integer additions: no metric object, no label string, no lock on the hot path.
All verbs are called on the event loop. Label values are bounded: API keys, error codes, topics
that exist, and the closed sets of reasons declared here.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from threading import Lock
from time import thread_time

from broker.runtime.places import Places

MAX_API_KEY = 128
MAX_TOPICS, MAX_SPREAD_TOPICS = 1000, 200  # that have series of their own
OTHERS = "(others)"
"""The series of all other topics; no topic can have this name."""
LATENCY_BUCKETS = 24  # powers of two of a microsecond: 1 us .. 8.4 s, and the rest


SKEW_BOUNDS_MS = (
    -86_400_000, -3_600_000, -60_000, -1000, 0,
    10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000, 604_800_000,
)  # fmt: skip


class Histogram:
    """Counts by powers of two of a microsecond; the cheapest thing that still gives percentiles."""

    __slots__ = ("buckets", "count", "sum_seconds")

    def __init__(self) -> None:
        """Empty."""
        self.buckets = [0] * (LATENCY_BUCKETS + 1)
        self.count = 0
        self.sum_seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Counts one duration."""
        self.count += 1
        self.sum_seconds += seconds
        bucket = int(seconds * 1e6).bit_length()
        self.buckets[min(LATENCY_BUCKETS, bucket)] += 1


class TopicTraffic:
    """Bytes and records of one topic since start."""

    __slots__ = (
        "batches_in",
        "bytes_in",
        "bytes_out",
        "damaged_reads",
        "failed_appends",
        "failed_reads",
        "reads",
        "records_in",
        "skew",
    )

    def __init__(self, skew: list[int] | None = None) -> None:
        """Nothing yet. `skew` is counted into together with other topics."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.records_in = 0
        self.batches_in = 0
        self.reads = 0
        self.failed_appends = 0
        self.failed_reads = 0
        self.damaged_reads = 0
        self.skew = [0] * (len(SKEW_BOUNDS_MS) + 1) if skew is None else skew
        """Batches by arrival minus the time of their latest record."""

    def add(self, other: "TopicTraffic") -> None:
        """Counts the other's numbers here too, all but its skew."""
        for name in self.__slots__:
            if name != "skew":
                setattr(self, name, getattr(self, name) + getattr(other, name))


class BrokerProbes:
    """The counters of one broker."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """`monotonic` gives seconds and is used by callers to time what they report."""
        self.monotonic = monotonic
        self.latency = [Histogram() for _ in range(MAX_API_KEY)]
        self.fetch = Histogram()
        """As `latency` of Fetch, without the time it waited for records."""
        self.time_lookup = Histogram()
        self.errors: Counter[tuple[int, int]] = Counter()
        self.topics: dict[str, TopicTraffic] = {}
        """By name; topics without series of their own share `other_topics`."""
        self.other_topics = TopicTraffic()
        self.deleted_topics = TopicTraffic()
        """Counts of topics that are gone: part of the sums over all topics."""
        self._places, self._dirty_places = Places(), Places()
        self._deleting = Lock()
        self.dirty: Counter[tuple[str, str, str, str]] = Counter()
        """By topic, or `OTHERS`; direction, reason, and what became of the records."""
        self.bytes_received = 0
        self.bytes_sent = 0
        self.connections_accepted = 0
        self.connections_refused: Counter[str] = Counter()
        self.connections_closed: Counter[str] = Counter()
        self.http_refusals: Counter[str] = Counter()
        self.foreign: Counter[str] = Counter()
        self.tls_handshakes: Counter[str] = Counter()
        """By listener."""
        self.tls_failures: Counter[str] = Counter()
        self.authentications: Counter[tuple[str, str]] = Counter()
        """By mechanism, and `first` or `again` (KIP-368)."""
        self.crashes: Counter[int] = Counter()
        self.failed_tasks: Counter[str] = Counter()
        self.fsync = Histogram()
        self.fsync_errors = 0
        self.refused_writes = 0
        self.loop_lag_seconds = 0.0
        self.loop_lag_max_seconds = 0.0
        self.loop_busy_seconds = 0.0
        self.loop_idle_ratio = 1.0
        self._loop_seen = 0.0

    def refused(self, api_key: int, code: int) -> None:
        """An answer carried this error code."""
        self.errors[api_key, code] += 1

    def crashed(self, api_key: int) -> None:
        """A handler ended with an error nobody expected."""
        self.crashes[api_key] += 1

    def task_failed(self, name: str) -> None:
        """A periodic task ended with an error."""
        self.failed_tasks[name] += 1

    def appended(self, topic: str, size_bytes: int, records: int, skew_ms: int | None) -> None:
        """One batch was written; its latest record is `skew_ms` old, None without any time."""
        traffic = self.topics.get(topic)
        if traffic is None:
            traffic = self._new_topic(topic)
        traffic.bytes_in += size_bytes
        traffic.records_in += records
        traffic.batches_in += 1
        if skew_ms is not None:
            traffic.skew[bisect_left(SKEW_BOUNDS_MS, skew_ms)] += 1

    def fetched(self, topic: str, size_bytes: int) -> None:
        """Records of one partition went out to a consumer."""
        traffic = self.topics.get(topic)
        if traffic is None:
            traffic = self._new_topic(topic)
        traffic.bytes_out += size_bytes
        traffic.reads += 1

    def append_failed(self, topic: str) -> None:
        """An append to a partition of a topic that exists was refused or went wrong."""
        self._traffic(topic).failed_appends += 1

    def read_failed(self, topic: str) -> None:
        """A fetch was answered with an error for a partition of a topic that exists."""
        self._traffic(topic).failed_reads += 1

    def damage_met(self, topic: str) -> None:
        """A fetch was refused because what it wanted is not what was written."""
        self._traffic(topic).damaged_reads += 1

    def topic_deleted(self, topic: str) -> None:
        """The series of a topic that is gone end; sums that it was part of stay."""
        with self._deleting:
            traffic = self.topics.pop(topic, None)
            if traffic is not None and traffic is not self.other_topics:
                self.deleted_topics.add(traffic)
        self._places.free(topic)
        self._dirty_places.free(topic)
        for key in [key for key in self.dirty if key[0] == topic]:
            del self.dirty[key]

    def of_all_topics(self, read: Callable[[TopicTraffic], int]) -> int:
        """A number added up over every topic there ever was; called from any thread."""
        with self._deleting:
            live, others = list(self.topics.values()), self.other_topics
            gone = read(self.deleted_topics)
        return gone + read(others) + sum(read(each) for each in live if each is not others)

    def _traffic(self, topic: str) -> TopicTraffic:
        return self.topics.get(topic) or self._new_topic(topic)

    def _new_topic(self, topic: str) -> TopicTraffic:
        place = self._places.take(topic)
        if place >= MAX_TOPICS:
            traffic = self.other_topics
        else:
            traffic = TopicTraffic(self.other_topics.skew if place >= MAX_SPREAD_TOPICS else None)
        self.topics[topic] = traffic
        return traffic

    def dirty_timestamps(
        self, topic: str, direction: str, reason: str, action: str, count: int
    ) -> None:
        """`count` records had a bad time; the label values are those of time.md 10."""
        shown = topic if self._dirty_places.take(topic) < MAX_TOPICS else OTHERS
        self.dirty[shown, direction, reason, action] += count

    def synced(self, seconds: float, error: BaseException | None) -> None:
        """One fsync of a log took so long; `error` when it failed."""
        self.fsync.observe(seconds)
        if error is not None:
            self.fsync_errors += 1

    def write_refused(self) -> None:
        """A disk refused to take a batch. From any thread."""
        self.refused_writes += 1

    def connection_refused(self, reason: str) -> None:
        """A connection was not accepted: max_connections, max_connections_per_ip."""
        self.connections_refused[reason] += 1

    def connection_closed(self, reason: str) -> None:
        """We closed a connection, and why (a closed set, see broker/server/connection.py)."""
        self.connections_closed[reason] += 1

    def http_refused(self, code: str) -> None:
        """The API refused a request: the code of its answer (a closed set, see broker/http)."""
        self.http_refusals[code] += 1

    def foreign_protocol(self, kind: str) -> None:
        """A client spoke tls, http or ssh on the Kafka port."""
        self.foreign[kind] += 1

    def handshake_done(self, listener_name: str) -> None:
        """A client of this listener has TLS."""
        self.tls_handshakes[listener_name] += 1

    def handshake_failed(self, reason: str) -> None:
        """A handshake came to no good end (a closed set, see broker/server/tls_listener.py)."""
        self.tls_failures[reason] += 1

    def authenticated(self, mechanism: str, *, again: bool) -> None:
        """A client has proven who it is by SASL, for the first time or once more."""
        self.authentications[mechanism, "again" if again else "first"] += 1

    def loop_lagged(self, seconds: float) -> None:
        """The loop, which calls this now and then, was late by so much this time."""
        self.loop_lag_seconds = seconds
        self.loop_lag_max_seconds = max(self.loop_lag_max_seconds, seconds)
        now, busy = self.monotonic(), thread_time()
        passed = now - self._loop_seen
        if self._loop_seen and passed > 0:
            share = (busy - self.loop_busy_seconds) / passed
            self.loop_idle_ratio = min(1.0, max(0.0, 1.0 - share))
        self._loop_seen, self.loop_busy_seconds = now, busy
