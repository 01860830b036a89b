"""The list of all metrics that the broker's own parts give; see declare.py for the rules."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from broker.fetching.sessions import FetchSessions
from broker.metrics.compaction import COMPACTION_METRICS, CompactionView
from broker.metrics.declare import Catalogue, Family, Metric, Sample, counter, gauge, labelled, one
from broker.metrics.disk import DISK_METRICS, DiskView
from broker.metrics.durability import DURABILITY_DURATIONS, DURABILITY_METRICS, DurabilityView
from broker.metrics.exporter_names import EXPORTER_METRICS, ExporterView
from broker.metrics.fleet import FLEET_DURATIONS, FLEET_METRICS, FleetView
from broker.metrics.groups import GROUP_METRICS, GroupView
from broker.metrics.kafka_names import KAFKA_METRICS, KafkaView
from broker.metrics.memory import MEMORY_METRICS, MemoryView
from broker.metrics.network import NETWORK_METRICS, NetworkView
from broker.metrics.partitions import PARTITION_METRICS, LogView
from broker.metrics.process import PROCESS_METRICS, ProcessView
from broker.metrics.quotas import QUOTA_METRICS, QuotaView
from broker.metrics.requests import REQUEST_DURATIONS, REQUEST_METRICS, RequestView
from broker.metrics.retention import RETENTION_METRICS, RetentionView
from broker.metrics.scrub import SCRUB_METRICS, ScrubView
from broker.metrics.security import SECURITY_METRICS, SecurityView
from broker.metrics.share import KAFKA_SHARE_METRICS, SHARE_METRICS, SHARE_SPREADS, ShareView
from broker.metrics.telemetry import TELEMETRY_METRICS, TelemetryView
from broker.metrics.tier.kafka_names import KAFKA_TIER_METRICS, KafkaTierView
from broker.metrics.tier.segments import TIER_METRICS, TierView
from broker.metrics.tier.store import TIER_STORE_METRICS, TierStoreView
from broker.metrics.topics import TOPIC_METRICS, TOPIC_SPREADS, TopicView
from broker.metrics.transactions import TRANSACTION_METRICS, TransactionView
from broker.partitions.fetch_waiters import FetchWaiters
from broker.runtime import callbacks
from broker.runtime.readiness import Readiness
from broker.topics.topic_catalog import TopicCatalog
from storage.directory.log_manager import LogManager


class BrokerView(NamedTuple):
    """Services that metrics of the broker as a whole read."""

    logs: LogManager
    node_id: int
    readiness: Readiness


class ServingView(NamedTuple):
    """Services that metrics of waiting fetches and of topics read."""

    waiters: FetchWaiters
    fetch_sessions: FetchSessions
    topics: TopicCatalog


def _version(view: BrokerView) -> Iterable[Sample]:
    from importlib.metadata import version

    return [((version("horolog"), view.logs.cluster_id, str(view.node_id)), 1.0)]


BROKER_METRICS: Final[tuple[Metric[BrokerView], ...]] = (
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
        one(lambda view: float(view.readiness.is_ready)),
    ),
)

SERVING_METRICS: Final[tuple[Metric[ServingView], ...]] = (
    gauge(
        "horolog_waiting_fetches",
        "Fetches that wait for data.",
        (),
        one(lambda view: len(view.waiters)),
    ),
    gauge(
        "horolog_fetch_sessions",
        "Incremental fetch sessions.",
        (),
        one(lambda view: len(view.fetch_sessions)),
    ),
    gauge("horolog_topics", "Topics.", (), one(lambda view: len(view.topics.image.topics))),
    gauge(
        "horolog_partitions",
        "Partitions of all topics.",
        (),
        one(lambda view: view.topics.image.partition_count),
    ),
)

FAILURE_METRICS: Final[tuple[Metric[ProcessView], ...]] = (
    counter(
        "horolog_callback_failures",
        "Callbacks of timers, waiters, commits, turns and answers that ended in an error.",
        ("caller",),
        lambda _: labelled(callbacks.failures),
    ),
    counter(
        "horolog_task_failures",
        "Periodic tasks that ended in an error.",
        ("task",),
        lambda view: labelled(view.probes.failed_tasks),
    ),
)

CATALOGUE: Final = Catalogue(
    (
        Family(BrokerView, BROKER_METRICS),
        Family(RequestView, REQUEST_METRICS, REQUEST_DURATIONS),
        Family(NetworkView, NETWORK_METRICS),
        Family(SecurityView, SECURITY_METRICS),
        Family(DurabilityView, DURABILITY_METRICS, DURABILITY_DURATIONS),
        Family(ServingView, SERVING_METRICS),
        Family(TopicView, TOPIC_METRICS, spreads=TOPIC_SPREADS),
        Family(ProcessView, (*FAILURE_METRICS, *PROCESS_METRICS)),
        Family(MemoryView, MEMORY_METRICS),
        Family(DiskView, DISK_METRICS),
        Family(ScrubView, SCRUB_METRICS),
        Family(LogView, PARTITION_METRICS),
        Family(GroupView, GROUP_METRICS),
        Family(ShareView, SHARE_METRICS, spreads=SHARE_SPREADS),
        Family(TransactionView, TRANSACTION_METRICS),
        Family(TelemetryView, TELEMETRY_METRICS),
        Family(QuotaView, QUOTA_METRICS),
        Family(RetentionView, RETENTION_METRICS),
        Family(CompactionView, COMPACTION_METRICS),
        Family(TierView, TIER_METRICS),
        Family(FleetView, FLEET_METRICS, FLEET_DURATIONS),
        Family(TierStoreView, TIER_STORE_METRICS),
    )
)
"""Metrics in the names of the broker."""
KAFKA_CATALOGUE: Final = Catalogue(
    (
        Family(KafkaView, KAFKA_METRICS),
        Family(KafkaTierView, KAFKA_TIER_METRICS),
        Family(ShareView, KAFKA_SHARE_METRICS),
        Family(ExporterView, EXPORTER_METRICS),
    )
)
"""Metrics in the names that dashboards for Kafka read."""
