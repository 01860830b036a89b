"""A topology: the parts of a Kafka Streams application, as its members describe it (KIP-1071).

Read from a record, or made of a heartbeat. Never changed.
"""

from collections.abc import Mapping
from functools import cached_property

from broker.groups.records.streams import (
    StoredCopartitionGroup,
    StoredSetting,
    StoredSubtopology,
    StoredTopic,
    TopologyValue,
)
from broker.groups.subscriptions import NAME_BYTES
from protocol.apis.streams_group_heartbeat import (
    StreamsSubtopology,
    StreamsTopicInfo,
    StreamsTopology,
)


class Topology:
    """The parts of an application, by their ids."""

    def __init__(self, value: TopologyValue) -> None:
        """`value` is as stored."""
        self.value = value
        self.epoch = value.epoch
        self.subtopologies: Mapping[str, StoredSubtopology] = {
            each.subtopology_id: each for each in value.subtopologies
        }

    @cached_property
    def required_topics(self) -> frozenset[str]:
        """The names of topics that are read, and of those that the broker makes."""
        names = (
            name
            for each in self.subtopologies.values()
            for name in (*source_names(each), *(log.name for log in each.state_changelog_topics))
        )
        return frozenset(names)

    @cached_property
    def by_source(self) -> Mapping[str, str]:
        """The subtopology that reads each topic."""
        return {
            name: key for key, each in self.subtopologies.items() for name in source_names(each)
        }

    @cached_property
    def size_bytes(self) -> int:
        """About what it takes in memory."""
        return sum(len(name) + NAME_BYTES for name in self.words)

    @property
    def words(self) -> list[str]:
        """All texts of it."""
        return words_of(self.value)

    def says_as(self, other: "Topology") -> bool:
        """True when both describe the same; the order of their parts does not matter."""
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies


def source_names(subtopology: StoredSubtopology) -> list[str]:
    """The names of topics that a subtopology reads."""
    return [
        *subtopology.source_topics,
        *(each.name for each in subtopology.repartition_source_topics),
    ]


def words_of(value: TopologyValue) -> list[str]:
    """All texts of a topology."""
    words = []
    for each in value.subtopologies:
        internal = [*each.state_changelog_topics, *each.repartition_source_topics]
        words += [each.subtopology_id, *each.source_topics, *each.repartition_sink_topics]
        words += [topic.name for topic in internal]
        words += [
            text
            for topic in internal
            for setting in topic.topic_configs
            for text in (setting.key, setting.value)
        ]
    return words


def stored_topology(said: StreamsTopology) -> TopologyValue:
    """A topology of a heartbeat, as stored."""
    return TopologyValue(
        epoch=said.epoch, subtopologies=[_subtopology(each) for each in said.subtopologies]
    )


def _subtopology(said: StreamsSubtopology) -> StoredSubtopology:
    return StoredSubtopology(
        subtopology_id=said.subtopology_id,
        source_topics=said.source_topics,
        source_topic_regex=said.source_topic_regex,
        state_changelog_topics=[_topic(each) for each in said.state_changelog_topics],
        repartition_sink_topics=said.repartition_sink_topics,
        repartition_source_topics=[_topic(each) for each in said.repartition_source_topics],
        copartition_groups=[
            StoredCopartitionGroup(
                source_topics=each.source_topics,
                source_topic_regex=each.source_topic_regex,
                repartition_source_topics=each.repartition_source_topics,
            )
            for each in said.copartition_groups
        ],
    )


def _topic(said: StreamsTopicInfo) -> StoredTopic:
    return StoredTopic(
        name=said.name,
        partitions=said.partitions,
        replication_factor=said.replication_factor,
        topic_configs=[
            StoredSetting(key=each.key, value=each.value) for each in said.topic_configs
        ],
    )
