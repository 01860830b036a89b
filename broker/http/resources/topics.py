"""/api/topics: which topics there are, and how each of its partitions stands."""

from typing import TYPE_CHECKING

from broker.http.port.messages import ApiError
from broker.http.port.parameters import Asked, Parameter, ParameterKind, count
from broker.http.port.route import HttpRoute
from broker.topics.metadata_image import TopicImage
from config.quantities import instant_or_none

if TYPE_CHECKING:
    from broker.http.port.services import HttpServices
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


def find_topic(broker: "HttpServices", name: str) -> TopicImage:
    """The topic; ApiError 404 when there is none."""
    topic = broker.topics.image.topics.get(name)
    if topic is None:
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


def settings_of(broker: "HttpServices", topic: str) -> dict[str, dict[str, object]]:
    """The settings that decide over a topic's time: value, and where it comes from."""
    return {
        each.name: {"value": each.value, "source": each.source.name}
        for each in broker.config.describe_topic(topic, TIME_SETTINGS)
    }


def _topics(broker: "HttpServices", asked: Asked) -> object:
    names = [name for name in broker.topics.image.topics if name > asked.fields["after"]]
    page = names[: asked.fields["limit"]]
    topics = broker.topics.image.topics
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


def _topic(broker: "HttpServices", asked: Asked) -> object:
    topic = find_topic(broker, asked.path["topic"])
    return {
        **_summary(topic),
        "settings": settings_of(broker, topic.name),
        "partition_states": [_partition(broker, each) for each in topic.partitions],
    }


def _partition(broker: "HttpServices", partition: "Partition") -> dict[str, object]:
    log = partition.log
    snapshot = log.snapshot
    verdict = broker.retention.verdicts.get(log)
    largest = max(segment.max_timestamp for segment in snapshot.segments)
    fault = log.failed or log.corruption
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


_NAME = ParameterKind(lambda text, _: text)
ROUTES = (
    HttpRoute(
        "GET",
        "/api/topics",
        "The topics in the order of their names, a page at a time.",
        read=_topics,
        parameters=(
            Parameter("after", _NAME, "Begin behind this name", ""),
            Parameter("limit", count(1, MAX_TOPICS), "Topics in the answer", MAX_TOPICS),
        ),
    ),
    HttpRoute(
        "GET",
        "/api/topics/{topic}",
        "One topic: the settings that decide over its time, and its partitions.",
        read=_topic,
    ),
)
