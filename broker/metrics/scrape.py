"""The answer to a scrape, written by the metrics library, which is imported here alone and late."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from broker.metrics.catalogue import DURATIONS, METRICS, SPREADS
from broker.metrics.declare import cumulative, summed

if TYPE_CHECKING:
    from broker.app import Broker


class BrokerCollector(Collector):
    """Turns the declared metrics of one broker into the library's families."""

    def __init__(self, broker: "Broker") -> None:
        """Reads `broker` at each scrape."""
        self._broker = broker

    def describe(self) -> Iterable[Metric]:
        """Nothing in advance: registering must not read the broker."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """All families."""
        for metric in METRICS:
            family_of = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = family_of(metric.name, metric.help, labels=metric.labels)
            for labels, value in metric.read(self._broker):
                family.add_metric(labels, value)
            yield family
        for durations in DURATIONS:
            histogram = HistogramMetricFamily(
                durations.name, durations.help, labels=durations.labels
            )
            for labels, values in durations.read(self._broker):
                histogram.add_metric(labels, cumulative(values), values.sum_seconds)
            yield histogram
        for spread in SPREADS:
            histogram = HistogramMetricFamily(spread.name, spread.help, labels=spread.labels)
            for labels, counts in spread.read(self._broker):
                histogram.add_metric(labels, summed(spread.bounds, counts), None)
            yield histogram


class Scrape:
    """Everything /metrics answers with: the broker's metrics and the process's."""

    def __init__(self, broker: "Broker") -> None:
        """Registers both collectors."""
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(BrokerCollector(broker))
        ProcessCollector(registry=self._registry)

    def text(self) -> tuple[str, bytes]:
        """Content type and body. Runs on a thread."""
        return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(self._registry)
