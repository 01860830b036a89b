"""Audit of times in a partition: wrong times, late records, cost of a watermark. Pure.

A partition is gone over in the order of its offsets. Skew is arrival minus the claimed time: below
zero a record is ahead of the broker's clock. Lateness is how far a record is behind the latest
time before it; times that are ahead by more than the bound are no such time, or one record of 2055
would make all others late. Numbers are exact; quantiles come from `histogram`.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.decode.arrays import numbers_of
from pipeline.decode.schemas import ALL_COLUMNS
from pipeline.transforms.event_time import TimeLimits, Times, reasons_of
from pipeline.transforms.histogram import count_into, quantile
from protocol.records.batch import NO_TIMESTAMP

READ = pa.schema(
    [
        ALL_COLUMNS.field(name)
        for name in ("offset", "createTimeMs", "appendTime", "producerId", "key")
    ]
)
"""Columns that are read from a source."""
QUARTILES = {"p01": 0.01, "p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
KEPT_OUTLIERS = 20
KEPT_SHARE = 0.999
_NEVER = np.iinfo(np.int64).min
_UNKNOWN = np.iinfo(np.int64).max


class AuditBounds(NamedTuple):
    """Largest distances of a claimed time from the arrival, in ms; `now_ms` where that is
    unknown.
    """

    ahead_ms: int
    behind_ms: int
    now_ms: int


class Outlier(NamedTuple):
    """A record whose time is outside of the bounds."""

    offset: int
    time_ms: int
    skew_ms: int
    reason: str
    producer_id: int
    key_hash: str


class SeenTimes(NamedTuple):
    """Records of a batch outside of the bounds, and the times that they were judged by."""

    outside: NDArray[np.bool_]
    times: Times
    since: Times
    producers: Times


@dataclass(slots=True)
class AuditedClock:
    """The times of one producer in a partition."""

    count: int = 0
    untimed: int = 0
    without_arrival: int = 0
    min_ms: int = _UNKNOWN
    max_ms: int = _NEVER
    min_skew_ms: int = _UNKNOWN
    max_skew_ms: int = _NEVER
    skew: Counter[int] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, times: Times, arrivals: Times) -> None:
        """Count records."""
        timed = times != NO_TIMESTAMP
        known = timed & (arrivals != _UNKNOWN)
        self.count += len(times)
        self.untimed += int(len(times) - timed.sum())
        self.without_arrival += int(timed.sum() - known.sum())
        if timed.any():
            self.min_ms = min(self.min_ms, int(times[timed].min()))
            self.max_ms = max(self.max_ms, int(times[timed].max()))
        if known.any():
            skew = skew_of(times[known], arrivals[known])
            self.min_skew_ms = min(self.min_skew_ms, int(skew.min()))
            self.max_skew_ms = max(self.max_skew_ms, int(skew.max()))
            count_into(self.skew, skew)

    def as_json(self) -> dict[str, Any]:
        """Numbers and quantiles; null where there is nothing."""
        return {
            "records": self.count,
            "without_time": self.untimed,
            "without_arrival": self.without_arrival,
            "min_ms": None if self.min_ms == _UNKNOWN else self.min_ms,
            "max_ms": None if self.max_ms == _NEVER else self.max_ms,
            "skew_min_ms": None if self.min_skew_ms == _UNKNOWN else self.min_skew_ms,
            "skew_max_ms": None if self.max_skew_ms == _NEVER else self.max_skew_ms,
            "skew_ms": quantiles(self.skew),
            "outliers": dict(self.reasons),
        }


@dataclass(slots=True)
class PartitionAudit:
    """The times of one partition."""

    topic: str
    partition: int
    latest_ms: int = _NEVER
    late: int = 0
    max_lateness_ms: int = 0
    lateness: Counter[int] = field(default_factory=Counter)
    producers: defaultdict[int, AuditedClock] = field(
        default_factory=lambda: defaultdict(AuditedClock)
    )
    future: list[Outlier] = field(default_factory=list)
    past: list[Outlier] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch, bounds: AuditBounds) -> None:
        """Go over records that follow those before."""
        if not batch.num_rows:
            return
        times = numbers_of(batch.column("createTimeMs"))
        arrivals = arrivals_of(batch)
        producers = numbers_of(batch.column("producerId"))
        for producer in np.unique(producers).tolist():
            mine = producers == producer
            self.producers[producer].add(times[mine], arrivals[mine])
        since = np.where(arrivals == _UNKNOWN, bounds.now_ms, arrivals)
        good = (times >= 0) & (times <= since + bounds.ahead_ms)
        inside = good & (times >= since - bounds.behind_ms)
        self._measure_lateness(times, good)
        if not inside.all():
            self._note_outliers(batch, SeenTimes(~inside, times, since, producers), bounds)

    @property
    def outlier_count(self) -> int:
        """Records outside of the bounds, those without a time included."""
        return sum(sum(clock.reasons.values()) for clock in self.producers.values())

    @property
    def watermark_ms(self) -> int | None:
        """Delay of a watermark that loses one record in a thousand at most, in ms."""
        enough = quantile(self.lateness, KEPT_SHARE)
        return None if enough is None else min(enough, self.max_lateness_ms)

    def as_json(self) -> dict[str, Any]:
        """The whole answer."""
        records = sum(clock.count for clock in self.producers.values())
        return {
            "topic": self.topic,
            "partition": self.partition,
            "records": records,
            "outliers": self.outlier_count,
            "late_records": self.late,
            "max_lateness_ms": self.max_lateness_ms,
            "lateness_ms": quantiles(self.lateness),
            "watermark_ms": self.watermark_ms,
            "producers": [
                {"producer_id": producer, **clock.as_json()}
                for producer, clock in sorted(self.producers.items())
            ],
            "future": [each._asdict() for each in self.future],
            "past": [each._asdict() for each in self.past],
        }

    def _measure_lateness(self, times: Times, good: NDArray[np.bool_]) -> None:
        kept = times[good]
        if not len(kept):
            return
        latest = np.maximum.accumulate(np.concatenate(([self.latest_ms], kept)))
        before = latest[:-1]
        lateness = np.where(before == _NEVER, 0, np.maximum(before, kept) - kept)
        count_into(self.lateness, lateness)
        self.late += int((lateness > 0).sum())
        self.max_lateness_ms = max(self.max_lateness_ms, int(lateness.max()))
        self.latest_ms = int(latest[-1])

    def _note_outliers(self, batch: pa.RecordBatch, seen: SeenTimes, bounds: AuditBounds) -> None:
        outside, times, since, producers = seen
        where = np.flatnonzero(outside)
        now = int(since[where[-1]])
        limits = TimeLimits(now, now - bounds.behind_ms, now + bounds.ahead_ms)
        reasons = reasons_of(times[where], limits)
        skews = skew_of(times[where], since[where])
        for at, reason in zip(where.tolist(), reasons, strict=True):
            self.producers[int(producers[at])].reasons[reason or "out of bounds"] += 1
        order = np.argsort(skews, kind="stable")
        chosen = {*order[:KEPT_OUTLIERS].tolist(), *order[-KEPT_OUTLIERS:].tolist()}
        offsets, keys = numbers_of(batch.column("offset")), batch.column("key")
        for index in sorted(chosen):
            at = int(where[index])
            found = Outlier(
                int(offsets[at]), int(times[at]), int(skews[index]),
                reasons[index] or "out of bounds", int(producers[at]), _hash(keys[at].as_py()),
            )  # fmt: skip
            if found.time_ms != NO_TIMESTAMP:
                (self.future if found.skew_ms < 0 else self.past).append(found)
        self.future = nlargest(KEPT_OUTLIERS, self.future, key=lambda each: -each.skew_ms)
        self.past = nlargest(KEPT_OUTLIERS, self.past, key=lambda each: each.skew_ms)


def quantiles(counts: Counter[int]) -> dict[str, int | None]:
    """The usual ones."""
    return {name: quantile(counts, share) for name, share in QUARTILES.items()}


def skew_of(times: Times, arrivals: Times) -> Times:
    """Arrival minus claimed time, limited to 64 bits."""
    exact = arrivals.astype(np.float64) - times.astype(np.float64)
    skew = arrivals - times
    wrapped = np.abs(exact) > 2.0**62
    if wrapped.any():
        skew = np.where(wrapped, np.where(exact > 0, 2**62, -(2**62)), skew)
    return skew


def arrivals_of(batch: pa.RecordBatch) -> Times:
    """Arrival of each record, in ms; the largest number where it is unknown."""
    column = batch.column("appendTime")
    if column.null_count == len(column):
        return np.full(len(column), _UNKNOWN, np.int64)
    micros = column.cast(pa.int64())
    known = np.asarray(micros.is_valid().to_numpy(zero_copy_only=False))
    values = np.asarray(micros.fill_null(0).to_numpy(zero_copy_only=False), np.int64) // 1000
    return np.where(known, values, _UNKNOWN)


class Wrote(NamedTuple):
    """A row of the broker's audit stream: a client wrote somewhere between these offsets."""

    topic: str
    partition: int
    first: int
    last: int
    client_id: str
    address: str
    records: int
    dirty: int


def writers_of(
    rows: Iterable[Wrote], topic: str, partition: int, offset: int
) -> list[tuple[str, str]]:
    """Possible writers of the offset: clients and addresses, those with dirty times first."""
    found = [
        each
        for each in rows
        if (each.topic, each.partition) == (topic, partition) and each.first <= offset <= each.last
    ]
    found.sort(key=lambda each: (-each.dirty, each.last - each.first))
    return list(dict.fromkeys((each.client_id, each.address) for each in found))


def by_client(rows: Sequence[Wrote]) -> dict[tuple[str, str], Counter[str]]:
    """Of each client: records and dirty ones."""
    totals: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for each in rows:
        totals[each.client_id, each.address].update(records=each.records, dirty=each.dirty)
    return totals


def _hash(key: bytes | None) -> str:
    return "" if key is None else hashlib.blake2b(key, digest_size=8).hexdigest()
