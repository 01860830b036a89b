"""The answers to a scrape: the broker's own names at /metrics, Kafka's at /metrics/kafka.

Both end with what the metrics library tells of the process; it is imported here alone, and late.
"""

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.process_collector import ProcessCollector

from broker.metrics.catalogue import CATALOGUE
from broker.metrics.declare import Catalogue, cumulative, summed
from broker.metrics.exporter_names import EXPORTER_METRICS
from broker.metrics.kafka_names import KAFKA_METRICS
from broker.metrics.text import CONTENT_TYPE, buckets, header, plain

if TYPE_CHECKING:
    from broker.metrics.view import MetricsView

PAUSE_SECONDS, PAUSE_EVERY = 0.0005, 16_384  # characters
CATALOGUES = {
    "metrics": CATALOGUE,
    "metrics/kafka": Catalogue((*KAFKA_METRICS, *EXPORTER_METRICS)),
}


class Scrape:
    """Answer to a scrape, computed each time."""

    def __init__(self, broker: "MetricsView") -> None:
        """Reads `broker` at each scrape."""
        self._broker = broker
        self._process = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._process)

    def text(self, path: str = "metrics") -> tuple[str, bytes]:
        """Content type and body, for a path of `CATALOGUES`. Called from any thread but the loop's.

        It pauses now and then.
        """
        parts = list(_unhurried(_lines(CATALOGUES[path], self._broker)))
        return CONTENT_TYPE, "".join(parts).encode() + generate_latest(self._process)


def _unhurried(parts: Iterable[str]) -> Iterator[str]:
    """Now and then the event loop has its turn: it would else wait for the interpreter."""
    written = 0
    for part in parts:
        yield part
        written += len(part)
        if written >= PAUSE_EVERY:
            time.sleep(PAUSE_SECONDS)
            written = 0


def _lines(catalogue: Catalogue, broker: "MetricsView") -> Iterator[str]:
    for metric in catalogue.metrics:
        name = f"{metric.name}_total" if metric.kind == "counter" else metric.name
        yield header(name, metric.kind, metric.help)
        yield from plain(name, metric.labels, metric.read(broker))
    for each in catalogue.durations:
        yield header(each.name, "histogram", each.help)
        for values, held in each.read(broker):
            yield buckets(each.name, each.labels, values, cumulative(held), held.sum_seconds)
    for spread in catalogue.spreads:
        yield header(spread.name, "histogram", spread.help)
        for values, counts in spread.read(broker):
            yield buckets(spread.name, spread.labels, values, summed(spread.bounds, counts), None)
