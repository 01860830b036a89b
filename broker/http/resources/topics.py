"""/api/topics: which topics there are, and how each of its partitions stands."""

from typing import TYPE_CHECKING, NamedTuple

from broker.http.port.caller import Caller, Needs
from broker.http.port.messages import ApiError
from broker.http.port.parameters import Asked, page_of
from broker.http.port.route import HttpRoute
from broker.tasks.retention import Retention
from broker.topics.metadata_image import TopicImage
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant_or_none
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType

if TYPE_CHECKING:
    from broker.partitions.partition import Partition

MAX_TOPICS = 1000
TIME_SETTINGS = (
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "horolog.retention.clock",
    "horolog.retention.min.stay.ms",
    "horolog.retention.before.timestamp",
    "segment.ms",
    "segment.bytes",
    "message.timestamp.type",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
)
"""Settings that decide over a topic's time."""
SEES_TOPIC = Needs(AclOperation.DESCRIBE, ResourceType.TOPIC, "topic")
SEES_TOPICS = Needs(AclOperation.DESCRIBE, ResourceType.TOPIC)


class TopicServices(NamedTuple):
    """The services that the answers are made with."""

    topics: TopicCatalog
    config: ConfigStore
    retention: Retention


def find_topic(topics: TopicCatalog, name: str, caller: Caller) -> TopicImage:
    """The topic; ApiError 404 when there is none, or none that the caller may know of."""
    is_seen, topic = caller.sees_topic(name), topics.image.topics.get(name)
    if topic is None or not is_seen:
        raise ApiError(404, "unknown_topic", f"There is no topic {name!r}: see /api/topics")
    return topic


def find_partitions(topic: TopicImage, index: int | None) -> "tuple[Partition, ...]":
    """All partitions, or the one asked for; ApiError 404 when there is none."""
    if index is None:
        return topic.partitions
    found = topic.partition(index)
    if found is None:
        last = len(topic.partitions) - 1
        raise ApiError(
            404, "unknown_partition", f"{topic.name} has partitions 0 to {last}, not {index}"
        )
    return (found,)


def settings_of(config: ConfigStore, topic: str, caller: Caller) -> dict[str, dict[str, object]]:
    """The settings that decide over a topic's time: value, and where it comes from.

    None without the right to describe them.
    """
    if not caller.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic):
        return {}
    return {
        each.name: {"value": each.value, "source": each.source.name}
        for each in config.describe_topic(topic, TIME_SETTINGS)
    }


def _topics(services: TopicServices, asked: Asked) -> object:
    topics = services.topics.image.topics
    behind = [name for name in topics if name > asked.fields["after"]]
    names = asked.caller.seen(ResourceType.TOPIC, behind)
    page = names[: asked.fields["limit"]]
    return {
        "topics": [_summary(topics[name]) for name in page if name in topics],
        "next": page[-1] if len(names) > len(page) else None,
    }


def _summary(topic: TopicImage) -> dict[str, object]:
    snapshots = [each.log.snapshot for each in topic.partitions]
    return {
        "topic": topic.name,
        "topic_id": str(topic.topic_id),
        "partitions": len(topic.partitions),
        "segments": sum(len(each.segments) for each in snapshots),
        "size_bytes": sum(each.size_bytes for each in snapshots),
        "offsets": sum(each.log_end_offset - each.log_start_offset for each in snapshots),
    }


def _topic(services: TopicServices, asked: Asked) -> object:
    topic = find_topic(services.topics, asked.path["topic"], asked.caller)
    return {
        **_summary(topic),
        "settings": settings_of(services.config, topic.name, asked.caller),
        "partition_states": [_partition(services, each) for each in topic.partitions],
    }


def _partition(services: TopicServices, partition: "Partition") -> dict[str, object]:
    log = partition.log
    snapshot = log.snapshot
    verdict = services.retention.verdicts.get(log)
    largest = max(segment.max_timestamp for segment in snapshot.segments)
    fault = log.fault
    return {
        "partition": partition.index,
        "log_start_offset": snapshot.log_start_offset,
        "high_watermark": snapshot.high_watermark,
        "last_stable_offset": snapshot.last_stable_offset,
        "log_end_offset": snapshot.log_end_offset,
        "size_bytes": snapshot.size_bytes,
        "segments": len(snapshot.segments),
        "largest_record_time": instant_or_none(largest),
        "overdue_segments": verdict.overdue_segments if verdict else None,
        "next_deadline": instant_or_none(verdict.next_deadline_ms) if verdict else None,
        "offline_because": str(fault) if fault else None,
    }


ROUTES = (
    HttpRoute(
        TopicServices,
        "GET",
        "/api/topics",
        "The topics in the order of their names, a page at a time.",
        needs=SEES_TOPICS,
        read=_topics,
        parameters=page_of("Topics", MAX_TOPICS),
    ),
    HttpRoute(
        TopicServices,
        "GET",
        "/api/topics/{topic}",
        "One topic: the settings that decide over its time, and its partitions.",
        needs=SEES_TOPIC,
        read=_topic,
    ),
)
