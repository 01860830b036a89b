"""Metrics of /metrics/kafka about the tier: Kafka's BrokerTopicMetrics of KIP-405 and KIP-963.

Only what is measured here has a name; docs/differences.md says what is absent, and why.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from broker.metrics.declare import Metric, Sample, counter, gauge
from broker.metrics.tier.segments import by_topic, lag, lag_bytes
from broker.runtime.probes import OTHERS
from broker.tier.store_account import TopicKind
from broker.tier.tier import Tier
from broker.topics.topic_catalog import TopicCatalog
from storage.directory.log_manager import LogManager

if TYPE_CHECKING:
    from storage.log.log import Log

ALL_TOPICS = ""


class KafkaTierView(NamedTuple):
    """Services that metrics of the tier in the names of Kafka read."""

    tier: Tier | None
    topics: TopicCatalog
    logs: LogManager


def _name(bean: str) -> str:
    return f"kafka_server_brokertopicmetrics_remote{bean}"


def _meter(bean: str, text: str, kind: TopicKind) -> Metric[KafkaTierView]:
    """Of each topic that there is, and of all there ever were under the empty name."""

    def samples(view: KafkaTierView) -> Iterable[Sample]:
        if view.tier is None:
            return
        found = view.tier.account.by_topic(kind)
        topics = view.topics.image.topics
        for name, number in found.items():
            if name in topics or name == OTHERS:
                yield (name,), float(number)
        yield (ALL_TOPICS,), float(sum(found.values()))

    return counter(_name(bean), text, ("topic",), samples)


def _gauge(
    bean: str, text: str, read: Callable[[KafkaTierView], Iterable[Sample]]
) -> Metric[KafkaTierView]:
    """Of each topic, and their sum under the empty name."""

    def samples(view: KafkaTierView) -> Iterable[Sample]:
        if view.tier is None:
            return
        found = list(read(view))
        yield from found
        yield (ALL_TOPICS,), sum(number for _, number in found)

    return gauge(_name(bean), text, ("topic",), samples)


def _uploaded(read: "Callable[[Log], float]") -> Callable[[KafkaTierView], Iterable[Sample]]:
    def of_log(log: "Log") -> float | None:
        return read(log) if log.config.remote_storage_enable or log.tiers.uploaded else None

    return lambda view: by_topic(view.topics, of_log)


KAFKA_TIER_METRICS: tuple[Metric[KafkaTierView], ...] = (
    _meter("fetchbytes", "Bytes of segments that came for reads.", TopicKind.READ_BYTES),
    _meter("fetchrequests", "Requests for bytes of segments, for reads.", TopicKind.READS),
    _meter("fetcherrors", "Those that failed, or brought damage.", TopicKind.FAILED_READS),
    _meter("copybytes", "Bytes of segments and their indexes sent.", TopicKind.COPIED_BYTES),
    _meter("copyrequests", "Segments that were begun to be sent.", TopicKind.COPIES),
    _meter("copyerrors", "Requests of copies that failed.", TopicKind.FAILED_COPIES),
    _meter("deleterequests", "Removals of segments.", TopicKind.DELETIONS),
    _meter("deleteerrors", "Removals of segments that failed.", TopicKind.FAILED_DELETIONS),
    _gauge(
        "copylagbytes",
        "Bytes of closed segments that the store does not have.",
        lambda view: lag(view, lag_bytes),
    ),
    _gauge(
        "copylagsegments",
        "Closed segments that the store does not have.",
        lambda view: lag(view, len),
    ),
    _gauge(
        "logsizebytes",
        "Bytes of segments in the store.",
        _uploaded(lambda log: float(log.tiers.uploaded_bytes)),
    ),
    _gauge(
        "logmetadatacount",
        "Segments in the store.",
        _uploaded(lambda log: float(len(log.tiers.uploaded))),
    ),
)
