"""The answers to a scrape: the broker's own names at /metrics, Kafka's at /metrics/kafka.

At /metrics also the series that clients pushed (KIP-714).

Both end with what the metrics library tells of the process; it is imported here alone, and late.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.process_collector import ProcessCollector

from broker.metrics.catalogue import CATALOGUE, KAFKA_CATALOGUE
from broker.metrics.declare import Family, cumulative, summed
from broker.metrics.telemetry import TelemetryView, client_lines
from broker.metrics.text import CONTENT_TYPE, buckets, header, plain
from broker.server.services import bound

PAUSE_SECONDS, PAUSE_EVERY = 0.0005, 16_384  # characters
CATALOGUES = {
    "metrics": CATALOGUE,
    "metrics/kafka": KAFKA_CATALOGUE,
}


WITH_CLIENTS = "metrics"
"""Path that also shows what clients pushed."""


class Scrape:
    """Answer to a scrape, computed each time."""

    def __init__(self, services: object) -> None:
        """Each family of metrics gets those of `services` that it names."""
        self._families = {
            path: [(each, bound(each.services, services)) for each in catalogue.families]
            for path, catalogue in CATALOGUES.items()
        }
        self._clients = bound(TelemetryView, services)
        self._process = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._process)

    def text(self, path: str = "metrics") -> tuple[str, bytes]:
        """Content type and body, for a path of `CATALOGUES`. Called from any thread but the loop's.

        It pauses now and then.
        """
        shown = _lines(self._families[path])
        if path == WITH_CLIENTS:
            shown = chain(shown, client_lines(self._clients))
        parts = list(_unhurried(shown))
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


def _lines(families: Sequence[tuple[Family[Any], Any]]) -> Iterator[str]:
    for family, services in families:
        for metric in family.metrics:
            name = f"{metric.name}_total" if metric.kind == "counter" else metric.name
            yield header(name, metric.kind, metric.help)
            yield from plain(name, metric.labels, metric.read(services))
        for each in family.durations:
            yield header(each.name, "histogram", each.help)
            for values, held in each.read(services):
                yield buckets(each.name, each.labels, values, cumulative(held), held.sum_seconds)
        for spread in family.spreads:
            yield header(spread.name, "histogram", spread.help)
            for values, counts in spread.read(services):
                shown = summed(spread.bounds, counts)
                yield buckets(spread.name, spread.labels, values, shown, None)
