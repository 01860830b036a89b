"""Configures a topology: how many tasks and partitions there are, given the topics that exist.

Source topics must be there. Repartition topics get as many partitions as what feeds them, unless
the application says how many; changelogs as many as their subtopology has tasks. Rules: Kafka 4.3's
`InternalTopicManager`, `RepartitionTopics`, `ChangelogTopics`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from broker.groups.records.streams import StoredSubtopology, StoredTopic
from broker.groups.streams.copartitioning import Counts, agreed_counts
from broker.groups.streams.status import Obstacle, Status
from broker.groups.streams.topology import Topology, source_names
from protocol.errors import ErrorCode, KafkaError

CountOf = Callable[[str], int | None]
"""The number of partitions of a topic that exists, or None."""

MAX_SUBTOPOLOGIES = 1000
MAX_TASKS = 10_000  # assigned in a fifth of a second, with two standbys each
NAMED = 3  # topics that a text names, at most


class InternalTopic(NamedTuple):
    """A topic that the broker makes for an application; no replication factor: the default."""

    name: str
    partition_count: int
    replication_factor: int
    settings: Mapping[str, str]


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with all its numbers."""

    task_count: int
    said: StoredSubtopology
    repartition_sources: list[InternalTopic]
    changelogs: list[InternalTopic]

    @property
    def is_stateful(self) -> bool:
        """True when its tasks have a state, of which there may be standbys."""
        return bool(self.changelogs)


class ConfiguredTopology(NamedTuple):
    """A topology with all its numbers; None for them while they cannot be found."""

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing: Mapping[str, InternalTopic]
    """Internal topics that are not there yet."""
    obstacle: Obstacle | None
    """A reason why tasks cannot be assigned."""

    @property
    def is_ready(self) -> bool:
        """True when tasks can be assigned."""
        return self.obstacle is None


def check_size(topology: Topology) -> None:
    """STREAMS_INVALID_TOPOLOGY (130) for one beyond our limits, or that contradicts itself."""
    count = len(topology.value.subtopologies)
    if count > MAX_SUBTOPOLOGIES:
        raise invalid_topology(f"{count} subtopologies: at most {MAX_SUBTOPOLOGIES} are possible.")
    if topology.epoch < 0:
        raise invalid_topology("Topology epoch must be non-negative.")
    if count != len(topology.subtopologies):
        raise invalid_topology("Two subtopologies have the same id.")
    for each in topology.subtopologies.values():
        if any(topic.partitions < 0 for topic in each.repartition_source_topics):
            raise invalid_topology("A repartition topic has less than no partitions.")


def invalid_topology(text: str) -> KafkaError:
    """STREAMS_INVALID_TOPOLOGY (130)."""
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)


def configured(topology: Topology, count_of: CountOf) -> ConfiguredTopology:
    """The topology with its numbers. STREAMS_INVALID_TOPOLOGY (130) if it can never have them."""
    parts = [topology.subtopologies[key] for key in sorted(topology.subtopologies)]
    try:
        _check_sources(parts, count_of)
        counts = _counts(parts, count_of)
        found = {each.subtopology_id: _configured(each, counts, count_of) for each in parts}
        _check_tasks(found)
        missing = _missing(found.values(), count_of)
    except Obstacle as obstacle:
        return ConfiguredTopology(topology.epoch, None, {}, obstacle)
    if not missing:
        return ConfiguredTopology(topology.epoch, found, {}, None)
    text = f"Internal topics are missing: {_named(missing)}"
    lacking = Obstacle(Status.MISSING_INTERNAL_TOPICS, text)
    return ConfiguredTopology(topology.epoch, found, missing, lacking)


def _check_sources(parts: Iterable[StoredSubtopology], count_of: CountOf) -> None:
    missing = {name for each in parts for name in each.source_topics if count_of(name) is None}
    if missing:
        text = f"Source topics {_named(sorted(missing))} are missing."
        raise Obstacle(Status.MISSING_SOURCE_TOPICS, text)


def _counts(parts: list[StoredSubtopology], count_of: CountOf) -> Counts:
    """Partitions of the topics that the broker makes."""
    counts = _repartition_counts(parts, count_of)
    for each in parts:
        for topic in each.repartition_source_topics:
            if topic.name not in counts:
                raise invalid_topology(
                    "Failed to compute number of partitions for all repartition topics, because "
                    "a repartition source topic is never used as a sink topic."
                )
    agreed_counts(parts, counts, count_of)
    for each in parts:
        tasks = _task_count(each, counts, count_of)
        counts.update((topic.name, tasks) for topic in each.state_changelog_topics)
    return counts


def _repartition_counts(parts: list[StoredSubtopology], count_of: CountOf) -> Counts:
    counts = {
        topic.name: topic.partitions
        for each in parts
        for topic in each.repartition_source_topics
        if topic.partitions
    }
    waiting = parts
    while waiting:
        left = [each for each in waiting if not _feeds(each, counts, count_of)]
        if len(left) == len(waiting):
            raise invalid_topology(
                "Failed to compute number of partitions for all repartition topics. There may be "
                "loops in the topology that cannot be resolved."
            )
        waiting = left
    return counts


def _feeds(part: StoredSubtopology, counts: Counts, count_of: CountOf) -> bool:
    """Counts the topics that a subtopology writes to; False while that is not possible."""
    unknown = [name for name in part.repartition_sink_topics if name not in counts]
    if not unknown:
        return True
    known = [counts.get(topic.name) for topic in part.repartition_source_topics]
    known += [count_of(name) for name in part.source_topics]
    found = [each for each in known if each is not None]
    if not found:
        return False
    counts.update(dict.fromkeys(unknown, max(found)))
    return True


def _task_count(part: StoredSubtopology, counts: Counts, count_of: CountOf) -> int:
    names = source_names(part)
    if not names:
        raise invalid_topology(f"No source topics found for subtopology {part.subtopology_id}")
    return max(count_of(name) or counts[name] for name in names)


def _configured(
    part: StoredSubtopology, counts: Counts, count_of: CountOf
) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        _task_count(part, counts, count_of),
        part,
        [_internal(topic, counts) for topic in part.repartition_source_topics],
        [_internal(topic, counts) for topic in part.state_changelog_topics],
    )


def _internal(topic: StoredTopic, counts: Counts) -> InternalTopic:
    settings = {each.key: each.value for each in topic.topic_configs}
    count = topic.partitions or counts[topic.name]
    return InternalTopic(topic.name, count, topic.replication_factor, settings)


def _check_tasks(parts: Mapping[str, ConfiguredSubtopology]) -> None:
    count = sum(each.task_count for each in parts.values())
    if count > MAX_TASKS:
        raise invalid_topology(f"{count} tasks: at most {MAX_TASKS} are possible.")


def _missing(
    parts: Iterable[ConfiguredSubtopology], count_of: CountOf
) -> Mapping[str, InternalTopic]:
    wanted = {
        topic.name: topic
        for each in parts
        for topic in (*each.repartition_sources, *each.changelogs)
    }
    for name, topic in wanted.items():
        count = count_of(name)
        if count is not None and count != topic.partition_count:
            raise Obstacle(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected "
                f"{topic.partition_count}, found {count}",
            )
    return {name: topic for name, topic in wanted.items() if count_of(name) is None}


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - NAMED
    rest = f" and {more} additional topics" if more > 0 else ""
    return ", ".join(listed[:NAMED]) + rest
