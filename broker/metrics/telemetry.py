"""Metrics of client telemetry: how much clients push; and the series that they pushed.

The names and labels of the latter are the clients' own, bounded in `broker.telemetry`. They begin
with `kafka_client_`, which no metric of the broker does.
"""

from collections.abc import Iterator
from typing import NamedTuple

from broker.metrics.declare import Metric, Sample, counter, gauge, labelled, one
from broker.metrics.text import header, plain
from broker.telemetry.client_telemetry import ClientTelemetry
from broker.telemetry.points import Labels


class TelemetryView(NamedTuple):
    """Services that metrics of client telemetry read."""

    client_telemetry: ClientTelemetry


TELEMETRY_METRICS: tuple[Metric[TelemetryView], ...] = (
    gauge(
        "horolog_client_telemetry_instances",
        "Clients that ask for subscriptions to their metrics, or push them (KIP-714).",
        (),
        one(lambda view: len(view.client_telemetry.instances)),
    ),
    gauge(
        "horolog_client_telemetry_series",
        "Series of clients' metrics, shown below as kafka_client_*.",
        (),
        one(lambda view: view.client_telemetry.series.count),
    ),
    counter(
        "horolog_client_telemetry_pushes",
        "Pushes of clients' metrics that were taken.",
        (),
        one(lambda view: view.client_telemetry.pushes),
    ),
    counter(
        "horolog_client_telemetry_dropped_points",
        "Points of clients' metrics that were not taken, by the reason; busy: whole pushes.",
        ("reason",),
        lambda view: labelled(view.client_telemetry.series.dropped),
    ),
    counter(
        "horolog_client_telemetry_evicted_instances",
        "Clients that were forgotten to make room for others.",
        (),
        one(lambda view: view.client_telemetry.instances.evicted),
    ),
)


def client_lines(view: TelemetryView) -> Iterator[str]:
    """The series of clients, in the text format."""
    for name, family in view.client_telemetry.series.families():
        yield header(name, family.kind, f"{family.source}, as clients push it.")
        for columns, samples in _by_columns(family.values.copy()).items():
            yield from plain(name, columns, samples)


def _by_columns(values: dict[Labels, float]) -> dict[tuple[str, ...], list[Sample]]:
    """The samples, by the names of their labels."""
    found: dict[tuple[str, ...], list[Sample]] = {}
    for labels, value in values.items():
        columns = tuple(name for name, _ in labels)
        found.setdefault(columns, []).append((tuple(each for _, each in labels), value))
    return found
