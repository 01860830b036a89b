"""States of the partitions that a share group reads: none, being made, made, being deleted.

A partition is assigned once its state is made. Pure values; `ShareGroup` keeps one of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from uuid import UUID

from broker.groups.records.share import ShareStatesValue, StatePartitions, StateTopicGone
from broker.groups.subscriptions import Target
from broker.topics.metadata_image import MetadataImage

NOTHING: Target = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """Partitions by topic. `names` has the name of every topic that is mentioned."""

    making: Target = field(default_factory=dict)
    made: Target = field(default_factory=dict)
    going: frozenset[UUID] = frozenset()
    names: Mapping[UUID, str] = field(default_factory=dict)

    def missing(self, names: Iterable[str], image: MetadataImage) -> Target:
        """Partitions of topics with these names whose state is not made."""
        found: dict[UUID, frozenset[int]] = {}
        for name in names:
            topic = image.topics.get(name)
            if topic is None:
                continue
            indexes = frozenset(range(len(topic.partitions)))
            lacking = indexes - self.made.get(topic.topic_id, frozenset())
            if lacking:
                found[topic.topic_id] = lacking
        return found

    def begun(self, partitions: Target, image: MetadataImage) -> "PartitionStates":
        """The state of these is being made, though it was to be deleted."""
        known = {topic: image.by_id[topic].name for topic in partitions}
        return replace(
            self,
            making=joined(self.making, partitions),
            going=self.going.difference(partitions),
            names={**self.names, **known},
        )

    def finished(self, partitions: Target) -> "PartitionStates":
        """The state of these is made, as far as their topics are still read."""
        kept = {topic: each for topic, each in partitions.items() if topic in self.making}
        return replace(self, making=without(self.making, kept), made=joined(self.made, kept))

    def failed(self, partitions: Target) -> "PartitionStates":
        """The state of these could not be made."""
        return replace(self, making=without(self.making, partitions))

    def ended(self, topics: Iterable[UUID]) -> "PartitionStates":
        """The states of these topics are being deleted."""
        gone = {each for each in topics if each in self.names} - self.going
        return replace(
            self,
            making={topic: each for topic, each in self.making.items() if topic not in gone},
            made={topic: each for topic, each in self.made.items() if topic not in gone},
            going=self.going | gone,
        )

    def forgotten(self, topics: Iterable[UUID]) -> "PartitionStates":
        """The states of these topics are deleted."""
        gone = set(topics) & self.going
        names = {topic: name for topic, name in self.names.items() if topic not in gone}
        return replace(self, going=self.going - gone, names=names)

    def value(self) -> ShareStatesValue:
        """As stored."""
        return ShareStatesValue(
            initializing=self._stored(self.making),
            initialized=self._stored(self.made),
            deleting=[
                StateTopicGone(topic_id=each, topic_name=self.names[each])
                for each in sorted(self.going)
            ],
        )

    def _stored(self, partitions: Target) -> list[StatePartitions]:
        return [
            StatePartitions(
                topic_id=topic, topic_name=self.names[topic], partitions=sorted(indexes)
            )
            for topic, indexes in partitions.items()
        ]


def remembered_states(value: ShareStatesValue) -> PartitionStates:
    """As they were. What was being made is made again when a member asks for it."""
    names = {each.topic_id: each.topic_name for each in (*value.initializing, *value.initialized)}
    names.update((each.topic_id, each.topic_name) for each in value.deleting)
    return PartitionStates(
        making={each.topic_id: frozenset(each.partitions) for each in value.initializing},
        made={each.topic_id: frozenset(each.partitions) for each in value.initialized},
        going=frozenset(each.topic_id for each in value.deleting),
        names=names,
    )


def joined(some: Target, more: Target) -> Target:
    """Partitions of both."""
    return {
        topic: some.get(topic, frozenset()) | more.get(topic, frozenset())
        for topic in (*some, *(each for each in more if each not in some))
    }


def without(some: Target, fewer: Target) -> Target:
    """Partitions of the first that are not in the second."""
    left = {topic: each - fewer.get(topic, frozenset()) for topic, each in some.items()}
    return {topic: each for topic, each in left.items() if each}
