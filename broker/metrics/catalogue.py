"""The list of all metrics that the broker's own parts give; see declare.py for the rules."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from broker.metrics.compaction import COMPACTION_METRICS
from broker.metrics.declare import Catalogue, Durations, Metric, Sample, counter, gauge, one
from broker.metrics.disk import DISK_METRICS
from broker.metrics.groups import GROUP_METRICS
from broker.metrics.memory import MEMORY_METRICS
from broker.metrics.partitions import PARTITION_METRICS
from broker.metrics.process import PROCESS_METRICS
from broker.metrics.quotas import QUOTA_METRICS
from broker.metrics.retention import RETENTION_METRICS
from broker.metrics.scrub import SCRUB_METRICS
from broker.metrics.topics import TOPIC_METRICS, TOPIC_SPREADS
from broker.metrics.transactions import TRANSACTION_METRICS
from broker.runtime import callbacks
from broker.runtime.probes import Histogram
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.metrics.view import MetricsView


def _labelled(values: Mapping[str, int]) -> Iterable[Sample]:
    return [((label,), float(value)) for label, value in dict(values).items()]


def _api_names(broker: "MetricsView") -> dict[int, str]:
    return {api.key: api.name for api in broker.served}


def _requests(broker: "MetricsView") -> Iterable[Sample]:
    return [
        ((name,), float(broker.probes.latency[key].count))
        for key, name in _api_names(broker).items()
    ]


def _latencies(broker: "MetricsView") -> Iterable[tuple[tuple[str, ...], Histogram]]:
    for key, name in _api_names(broker).items():
        histogram = broker.probes.latency[key]
        if histogram.count:
            yield (name,), histogram


def _errors(broker: "MetricsView") -> Iterable[Sample]:
    names = _api_names(broker)
    for (key, code), count in dict(broker.probes.errors).items():
        known = code in ErrorCode._value2member_map_
        yield (names.get(key, "unknown"), ErrorCode(code).name if known else str(code)), count


def _crashes(broker: "MetricsView") -> Iterable[Sample]:
    names = _api_names(broker)
    for key, count in dict(broker.probes.crashes).items():
        yield (names.get(key, "unknown"),), count


def _version(broker: "MetricsView") -> Iterable[Sample]:
    from importlib.metadata import version

    return [((version("horolog"), broker.logs.cluster_id, str(broker.node_id)), 1.0)]


METRICS: tuple[Metric, ...] = (
    gauge(
        "horolog_build_info",
        "Always 1; labels name the version, the cluster and the node.",
        ("version", "cluster_id", "node_id"),
        _version,
    ),
    gauge(
        "horolog_ready",
        "1 when the broker serves clients.",
        (),
        one(lambda broker: float(broker.readiness.is_ready)),
    ),
    counter("horolog_requests", "Requests answered.", ("api",), _requests),
    counter(
        "horolog_request_errors",
        "Error codes in answers, by API and Kafka's name of the code.",
        ("api", "error"),
        _errors,
    ),
    counter(
        "horolog_request_failures",
        "Requests that ended in an unexpected error; each closed its connection.",
        ("api",),
        _crashes,
    ),
    counter(
        "horolog_network_received_bytes",
        "Bytes received from clients.",
        (),
        one(lambda broker: broker.server.received_bytes),
    ),
    counter(
        "horolog_network_sent_bytes",
        "Bytes sent to clients.",
        (),
        one(lambda broker: broker.server.sent_bytes),
    ),
    gauge(
        "horolog_network_queued_bytes",
        "Memory in answers that clients have not read yet.",
        (),
        one(lambda broker: broker.server.queued_bytes),
    ),
    gauge(
        "horolog_network_request_buffer_bytes",
        "Memory that large requests are being received into.",
        (),
        one(lambda broker: broker.server.pool.used_bytes),
    ),
    gauge(
        "horolog_connections",
        "Open connections.",
        (),
        one(lambda broker: len(broker.server.connections)),
    ),
    counter(
        "horolog_connections_accepted",
        "Connections accepted.",
        (),
        one(lambda broker: broker.probes.connections_accepted),
    ),
    counter(
        "horolog_connections_refused",
        "Connections refused by a limit.",
        ("reason",),
        lambda broker: _labelled(broker.probes.connections_refused),
    ),
    counter(
        "horolog_connections_closed",
        "Connections that the broker closed, by the reason.",
        ("reason",),
        lambda broker: _labelled(broker.probes.connections_closed),
    ),
    counter(
        "horolog_foreign_protocol_connections",
        "Connections that spoke another protocol on the Kafka port.",
        ("protocol",),
        lambda broker: _labelled(broker.probes.foreign),
    ),
    counter(
        "horolog_http_refused_requests",
        "Requests that the HTTP API refused, by the code in the answer.",
        ("code",),
        lambda broker: _labelled(broker.probes.http_refusals),
    ),
    gauge(
        "horolog_waiting_fetches",
        "Fetches that wait for data.",
        (),
        one(lambda broker: len(broker.waiters)),
    ),
    gauge(
        "horolog_fetch_sessions",
        "Incremental fetch sessions.",
        (),
        one(lambda broker: len(broker.fetch_sessions)),
    ),
    counter(
        "horolog_quarantine_refusals",
        "Batches refused because their quarantine could not be used, or its disk failed.",
        ("reason",),
        lambda broker: _labelled(broker.quarantine.refusals),
    ),
    counter(
        "horolog_fsync_errors",
        "Failed fsyncs; each took its partition offline.",
        (),
        one(lambda broker: broker.probes.fsync_errors),
    ),
    gauge(
        "horolog_unsynced_bytes",
        "Bytes written and not yet forced to the disk.",
        (),
        one(lambda broker: broker.commit.unsynced_bytes),
    ),
    counter(
        "horolog_cold_fetches",
        "Reads that had to go to the disk before records could be sent.",
        (),
        one(lambda broker: broker.server.page_cache.visits),
    ),
    gauge(
        "horolog_recovered_logs",
        "Logs that had to be recovered at the start.",
        (),
        one(lambda broker: broker.logs.recovered_logs),
    ),
    counter(
        "horolog_rebuilt_indexes",
        "Segments whose indexes were rebuilt since the start.",
        (),
        one(lambda broker: broker.logs.rebuilt_indexes),
    ),
    counter(
        "horolog_callback_failures",
        "Callbacks of timers, waiters, commits, turns and answers that ended in an error.",
        ("caller",),
        lambda _: _labelled(callbacks.failures),
    ),
    counter(
        "horolog_task_failures",
        "Periodic tasks that ended in an error.",
        ("task",),
        lambda broker: _labelled(broker.probes.failed_tasks),
    ),
    gauge("horolog_topics", "Topics.", (), one(lambda broker: len(broker.topics.image.topics))),
    gauge(
        "horolog_partitions",
        "Partitions of all topics.",
        (),
        one(lambda broker: broker.topics.image.partition_count),
    ),
    *TOPIC_METRICS,
    *PROCESS_METRICS,
    *MEMORY_METRICS,
    *DISK_METRICS,
    *SCRUB_METRICS,
    *PARTITION_METRICS,
    *GROUP_METRICS,
    *TRANSACTION_METRICS,
    *QUOTA_METRICS,
    *RETENTION_METRICS,
    *COMPACTION_METRICS,
)

DURATIONS: tuple[Durations, ...] = (
    Durations(
        "horolog_request_duration_seconds",
        "Time from a complete request to its answer, waiting included.",
        ("api",),
        _latencies,
    ),
    Durations(
        "horolog_fetch_duration_seconds",
        "Time from a complete fetch to its answer, without the wait for records.",
        (),
        lambda broker: [((), broker.probes.fetch)],
    ),
    Durations(
        "horolog_time_lookup_duration_seconds",
        "Time of one look-up of an offset by time in one partition, from the disk or from memory.",
        (),
        lambda broker: [((), broker.probes.time_lookup)],
    ),
    Durations(
        "horolog_fsync_duration_seconds",
        "Time of one fsync of one log.",
        (),
        lambda broker: [((), broker.probes.fsync)],
    ),
)

CATALOGUE = Catalogue(METRICS, DURATIONS, TOPIC_SPREADS)
