"""The picture of the topics that every request reads: immutable, replaced by one assignment.

Readers take the image once per request and keep it; `TopicCatalog` is the only writer of the next
one. The partitions inside are live objects (a log plus the rules of serving it), the picture of
which of them exist is not.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from uuid import UUID

from broker.partitions.partition import Partition
from protocol.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class TopicImage:
    """One topic: its name, its id and its partitions in order of their index."""

    name: str
    topic_id: UUID
    partitions: tuple[Partition, ...]

    def partition(self, index: int) -> Partition | None:
        """The partition with this index, None when there is none."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None

    def led_here(self) -> Iterator[Partition]:
        """Partitions that this node leads: all of them, without a fleet."""
        return (each for each in self.partitions if each.leader_elsewhere is None)


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """All topics by name and by id."""

    topics: Mapping[str, TopicImage] = field(default_factory=lambda: MappingProxyType({}))
    by_id: Mapping[UUID, TopicImage] = field(default_factory=lambda: MappingProxyType({}))
    partition_count: int = 0

    def topic(self, name: str | None, topic_id: UUID) -> TopicImage | None:
        """By name when there is one, else by id."""
        return self.topics.get(name) if name else self.by_id.get(topic_id)

    def partition(self, name: str, index: int) -> Partition | None:
        """One partition by its topic's name and its index."""
        topic = self.topics.get(name)
        return topic.partition(index) if topic is not None else None

    def require(self, name: str, index: int) -> Partition:
        """As `partition`, or UNKNOWN_TOPIC_OR_PARTITION (3)."""
        topic = self.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            raise _unknown_partition(index, name)
        return topic.partitions[index]

    def require_by_id(self, topic_id: UUID, index: int) -> Partition:
        """By the topic's id, or UNKNOWN_TOPIC_ID (100), or UNKNOWN_TOPIC_OR_PARTITION (3)."""
        topic = self.by_id.get(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"No topic has the id {topic_id}")
        partition = topic.partition(index)
        if partition is None:
            raise _unknown_partition(index, topic.name)
        return partition

    def led_here(self) -> Iterator[Partition]:
        """Partitions that this node leads: all of them, without a fleet."""
        for topic in self.topics.values():
            yield from topic.led_here()

    def with_topics(self, changed: Iterable[TopicImage]) -> "MetadataImage":
        """The next image: these topics added, or put in place of their older selves."""
        topics = dict(self.topics)
        topics.update((topic.name, topic) for topic in changed)
        return image_of(topics.values())

    def without(self, names: Iterable[str]) -> "MetadataImage":
        """The next image: these topics gone."""
        gone = set(names)
        return image_of(topic for name, topic in self.topics.items() if name not in gone)


def _unknown_partition(index: int, name: str) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {index} of topic {name!r}"
    )


def image_of(topics: Iterable[TopicImage]) -> MetadataImage:
    """An image of exactly these topics, in the order of their names."""
    ordered = sorted(topics, key=lambda topic: topic.name)
    return MetadataImage(
        topics=MappingProxyType({topic.name: topic for topic in ordered}),
        by_id=MappingProxyType({topic.topic_id: topic for topic in ordered}),
        partition_count=sum(len(topic.partitions) for topic in ordered),
    )
