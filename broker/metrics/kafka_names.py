"""Metrics of /metrics/kafka under the names of jmx_exporter, as Strimzi's rules spell Kafka's own.

So dashboards that people have light up without an exporter (operations A3). Each row has the name,
type and labels that those rules give; what has no meaning on one node has its constant truth.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from broker.metrics.declare import Metric, Sample, counter, gauge, one
from broker.metrics.partitions import per_partition
from broker.metrics.process import disk_bytes
from broker.metrics.topics import traffic
from broker.runtime.probes import BrokerProbes, TopicTraffic
from broker.server.server import Server
from broker.topics.topic_catalog import TopicCatalog
from protocol.api import Api

if TYPE_CHECKING:
    from storage.log.log import Log


class KafkaView(NamedTuple):
    """Services that metrics in the names of Kafka read."""

    probes: BrokerProbes
    topics: TopicCatalog
    server: Server
    served: tuple[Api, ...]


ALL_TOPICS = ""


def _meter(bean: str, text: str, read: Callable[[TopicTraffic], int]) -> Metric[KafkaView]:
    """One of BrokerTopicMetrics: of each topic, and of all under the empty name, as Kafka does."""

    def samples(view: KafkaView) -> Iterable[Sample]:
        total = float(view.probes.of_all_topics(read))
        return [*traffic(view.probes, read), ((ALL_TOPICS,), total)]

    return counter(f"kafka_server_brokertopicmetrics_{bean}", text, ("topic",), samples)


def _partitions(view: KafkaView) -> float:
    return view.topics.image.partition_count


def _led(view: KafkaView) -> float:
    return sum(1 for _ in view.topics.image.led_here())


def _offline(view: KafkaView) -> float:
    return sum(
        partition.log.fault is not None
        for topic in view.topics.image.topics.values()
        for partition in topic.partitions
    )


def _at_least_in_sync(log: "Log") -> float:
    return float(log.config.min_insync_replicas <= 1)


def _connections(view: KafkaView) -> Iterable[Sample]:
    found = Counter(dict.fromkeys(view.server.listeners, 0))
    peers = [getattr(each, "peer", None) for each in tuple(view.server.connections)]
    found.update(peer.listener_name for peer in peers if peer is not None)
    return [((name, "0"), number) for name, number in found.items()]


def _requests(view: KafkaView) -> Iterable[Sample]:
    for api in view.served:
        latency = view.probes.latency[api.key]
        if latency.count:
            yield (api.name,), latency.count


def _truth(name: str, text: str, number: float) -> Metric[KafkaView]:
    return gauge(name, text, (), one(lambda _: number))


_TRAFFIC: tuple[Metric[KafkaView], ...] = (
    _meter("bytesin", "Bytes appended.", lambda t: t.bytes_in),
    _meter("bytesout", "Bytes of records fetched.", lambda t: t.bytes_out),
    _meter("messagesin", "Records appended.", lambda t: t.records_in),
    _meter(
        "totalproducerequests",
        "Appends to partitions.",
        lambda t: t.batches_in + t.failed_appends,
    ),
    _meter("failedproducerequests", "Appends that failed.", lambda t: t.failed_appends),
    _meter("totalfetchrequests", "Reads of partitions.", lambda t: t.reads + t.failed_reads),
    _meter("failedfetchrequests", "Reads that failed.", lambda t: t.failed_reads),
)

_NODE: tuple[Metric[KafkaView], ...] = (
    gauge("kafka_server_replicamanager_leadercount", "Partitions led.", (), one(_led)),
    gauge("kafka_server_replicamanager_partitioncount", "Partitions.", (), one(_partitions)),
    _truth(
        "kafka_server_replicamanager_underreplicatedpartitions",
        "None on one node.",
        0,
    ),
    gauge(
        "kafka_server_replicamanager_offlinereplicacount",
        "Partitions that take no writes: their disk failed, or the start found damage.",
        (),
        one(_offline),
    ),
    _truth("kafka_controller_kafkacontroller_activecontrollercount", "This node is it.", 1),
    gauge(
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "Partitions that take no writes: their disk failed, or the start found damage.",
        (),
        one(_offline),
    ),
    counter(
        "kafka_controller_controllerstats_uncleanleaderelections",
        "None on one node.",
        (),
        one(lambda _: 0.0),
    ),
    gauge(
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "Share of the last second in which the event loop had nothing to do (0 to 1).",
        (),
        one(lambda view: view.probes.loop_idle_ratio),
    ),
    gauge(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "The same: one loop does both.",
        (),
        one(lambda view: view.probes.loop_idle_ratio),
    ),
    gauge(
        "kafka_server_kafkaserver_linux_disk_read_bytes",
        "Bytes that this process has made the disk read.",
        (),
        lambda _: disk_bytes("read"),
    ),
    gauge(
        "kafka_server_kafkaserver_linux_disk_write_bytes",
        "Bytes that this process has made the disk write.",
        (),
        lambda _: disk_bytes("write"),
    ),
    gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "Open connections.",
        ("listener", "networkProcessor"),
        _connections,
    ),
    counter("kafka_network_requestmetrics_requests", "Requests answered.", ("request",), _requests),
)

_PARTITIONS: tuple[Metric[KafkaView], ...] = (
    per_partition(
        "kafka_cluster_partition_replicascount", "Replicas: one node.", lambda _: 1.0, max
    ),
    per_partition("kafka_cluster_partition_underreplicated", "Never.", lambda _: 0.0, max),
    per_partition(
        "kafka_cluster_partition_atminisr",
        "1 when the one replica is as many as min.insync.replicas asks for.",
        _at_least_in_sync,
        max,
    ),
    per_partition(
        "kafka_cluster_partition_underminisr",
        "1 when min.insync.replicas asks for more than this one node.",
        lambda log: 1.0 - _at_least_in_sync(log),
        max,
    ),
    per_partition(
        "kafka_log_log_size",
        "Bytes of all segments.",
        lambda log: log.snapshot.local_bytes,
        add,
    ),
    per_partition(
        "kafka_log_log_numlogsegments",
        "Segments.",
        lambda log: len(log.snapshot.segments),
        add,
    ),
    per_partition(
        "kafka_log_log_logstartoffset",
        "First offset.",
        lambda log: log.snapshot.log_start_offset,
        add,
    ),
    per_partition(
        "kafka_log_log_logendoffset",
        "Offset that the next record gets.",
        lambda log: log.snapshot.log_end_offset,
        add,
    ),
)

KAFKA_METRICS: tuple[Metric[KafkaView], ...] = (*_TRAFFIC, *_NODE, *_PARTITIONS)
