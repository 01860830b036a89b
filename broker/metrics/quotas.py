"""Metrics of quotas: how many limits there are, and whom they hold back (never by name)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.metrics.declare import Sample, counter, gauge, one

if TYPE_CHECKING:
    from broker.metrics.view import MetricsView


def _throttled_requests(broker: "MetricsView") -> Iterable[Sample]:
    counts = dict(broker.quotas.throttled.requests)
    return [((key,), float(count)) for key, count in counts.items()]


def _throttled_seconds(broker: "MetricsView") -> Iterable[Sample]:
    sums = dict(broker.quotas.throttled.milliseconds)
    return [((key,), total / 1000) for key, total in sums.items()]


QUOTA_METRICS = (
    gauge(
        "horolog_quota_entities",
        "Users and clients, and defaults of these, that a quota was set for.",
        (),
        one(lambda broker: len(broker.quotas.table.entries)),
    ),
    counter(
        "horolog_quota_throttled_requests",
        "Requests whose client was over its quota.",
        ("quota",),
        _throttled_requests,
    ),
    counter(
        "horolog_quota_throttle_seconds",
        "Sum of the throttle times sent to clients over their quota.",
        ("quota",),
        _throttled_seconds,
    ),
    gauge(
        "horolog_quota_muted_connections",
        "Connections that are not read because the client is over its quota.",
        (),
        one(lambda broker: sum(each.is_muted for each in tuple(broker.server.connections))),
    ),
)
