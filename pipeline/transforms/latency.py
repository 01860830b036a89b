"""Latency from claimed time to arrival at the broker: by topic and hour of arrival. Pure.

The figure that others need is how late a record of the cluster can be: MaxLatencyOfCluster of
KIP-33. The largest latency seen is one that a quantile of all records does not exceed, with a
confidence that grows with their number, whatever the distribution (1 - quantile^n).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.decode.arrays import numbers_of
from pipeline.decode.schemas import ALL_COLUMNS
from pipeline.transforms.histogram import count_into, quantile
from pipeline.transforms.time_audit import (
    AuditBounds,
    arrivals_of,
    quantiles,
    skew_of,
)

READ = pa.schema([ALL_COLUMNS.field(name) for name in ("createTimeMs", "appendTime")])
HOUR_MS = 3_600_000
_UNKNOWN = np.iinfo(np.int64).max


@dataclass(slots=True)
class TopicLatency:
    """Of one topic, as much of it as was looked at; adds up."""

    topic: str
    hours: defaultdict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    counts: Counter[int] = field(default_factory=Counter)
    max_ms: int | None = None
    outside: int = 0
    """Records whose time is ahead, or too far back to be a latency; they do not count."""
    unknown: int = 0
    """Without a time, or without an arrival."""

    def add(self, batch: pa.RecordBatch, bounds: AuditBounds) -> None:
        """Count records."""
        times, arrivals = numbers_of(batch.column("createTimeMs")), arrivals_of(batch)
        known = (times >= 0) & (arrivals != _UNKNOWN)
        self.unknown += int(len(times) - known.sum())
        arrivals, latency = arrivals[known], skew_of(times[known], arrivals[known])
        inside = (latency >= -bounds.ahead_ms) & (latency <= bounds.behind_ms)
        self.outside += int(len(latency) - inside.sum())
        arrivals, latency = arrivals[inside], np.maximum(latency[inside], 0)
        if not len(latency):
            return
        count_into(self.counts, latency)
        largest = int(latency.max())
        self.max_ms = largest if self.max_ms is None else max(self.max_ms, largest)
        hours = arrivals // HOUR_MS
        for hour in np.unique(hours).tolist():
            count_into(self.hours[hour], latency[hours == hour])

    def merge(self, other: "TopicLatency") -> None:
        """Add what was counted elsewhere."""
        self.counts.update(other.counts)
        for hour, counts in other.hours.items():
            self.hours[hour].update(counts)
        tops = [each for each in (self.max_ms, other.max_ms) if each is not None]
        self.max_ms = max(tops, default=None)
        self.outside += other.outside
        self.unknown += other.unknown

    def max_latency(self, share: float) -> int | None:
        """So long, at the most, do so large a share of the records take; 1: all that were seen."""
        if self.max_ms is None or share >= 1:
            return self.max_ms
        found = quantile(self.counts, share)
        return None if found is None else min(found, self.max_ms)

    def as_json(self, share: float) -> dict[str, Any]:
        """The whole answer."""
        count = sum(self.counts.values())
        return {
            "topic": self.topic,
            "records": count,
            "outside": self.outside,
            "unknown": self.unknown,
            "latency_ms": quantiles(self.counts),
            "max_ms": self.max_ms,
            "max_latency_ms": self.max_latency(share),
            "confidence": {f"{each}": round(1 - each**count, 6) for each in (0.99, 0.999, 0.9999)},
            "hours": [
                {
                    "hour_ms": hour * HOUR_MS,
                    "records": sum(counts.values()),
                    **quantiles(counts),
                }
                for hour, counts in sorted(self.hours.items())
            ],
        }


def merged(found: Iterable[TopicLatency]) -> list[TopicLatency]:
    """One of each topic."""
    topics: dict[str, TopicLatency] = {}
    for each in found:
        if each.topic in topics:
            topics[each.topic].merge(each)
        else:
            topics[each.topic] = each
    return [topics[name] for name in sorted(topics)]
