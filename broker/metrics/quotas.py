"""Metrics of quotas: how many limits there are, and whom they hold back (never by name)."""

from collections.abc import Iterable
from typing import NamedTuple

from broker.metrics.declare import Metric, Sample, counter, gauge, one
from broker.quotas.service import Quotas
from broker.server.server import Server


class QuotaView(NamedTuple):
    """Services that metrics of quotas read."""

    quotas: Quotas
    server: Server


def _throttled_requests(view: QuotaView) -> Iterable[Sample]:
    counts = dict(view.quotas.throttled.requests)
    return [((key,), float(count)) for key, count in counts.items()]


def _throttled_seconds(view: QuotaView) -> Iterable[Sample]:
    sums = dict(view.quotas.throttled.milliseconds)
    return [((key,), total / 1000) for key, total in sums.items()]


QUOTA_METRICS: tuple[Metric[QuotaView], ...] = (
    gauge(
        "horolog_quota_entities",
        "Users, clients and addresses, and defaults of these, that a quota was set for.",
        (),
        one(lambda view: len(view.quotas.table.entries)),
    ),
    counter(
        "horolog_quota_throttled_requests",
        "Requests whose client was over its quota; disk_space: producers slowed for want of room; "
        "connection_creation_rate: connections that were closed.",
        ("quota",),
        _throttled_requests,
    ),
    counter(
        "horolog_quota_throttle_seconds",
        "Sum of the throttle times sent to clients over their quota, or for want of room.",
        ("quota",),
        _throttled_seconds,
    ),
    gauge(
        "horolog_quota_muted_connections",
        "Connections that are not read because the client is over its quota, or for want of room.",
        (),
        one(lambda view: sum(each.is_muted for each in tuple(view.server.connections))),
    ),
)
