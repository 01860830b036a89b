"""Topics that are read together need as many partitions each: repartition topics give way.

Rules: Kafka 4.3's `CopartitionedTopicsEnforcer`.
"""

from collections.abc import Callable, Iterable

from broker.groups.records.streams import StoredCopartitionGroup, StoredSubtopology
from broker.groups.streams.status import Obstacle, Status
from protocol.errors import ErrorCode, KafkaError

Counts = dict[str, int]
"""Partitions of topics, by name."""


def agreed_counts(
    parts: Iterable[StoredSubtopology], counts: Counts, count_of: Callable[[str], int | None]
) -> None:
    """Changes the counts of repartition topics to those of what they are read with.

    Raises Obstacle where that is impossible, STREAMS_INVALID_TOPOLOGY (130) for a number without a
    topic.
    """
    listed = list(parts)
    topics = [topic for each in listed for topic in each.repartition_source_topics]
    fixed = {topic.name for topic in topics if topic.partitions}
    repartition = {topic.name for topic in topics}
    for part in listed:
        for group in part.copartition_groups:
            names = _names(part, group)
            known = {name: count_of(name) or counts[name] for name in names}
            pinned = {name: count_of(name) or counts[name] for name in fixed}
            counts.update(_agreed(known, pinned, repartition))


def _names(part: StoredSubtopology, group: StoredCopartitionGroup) -> set[str]:
    sources, repartition = part.source_topics, part.repartition_source_topics
    lists = ((group.source_topics, sources), (group.repartition_source_topics, repartition))
    for numbers, named in lists:
        if any(not 0 <= number < len(named) for number in numbers):
            raise KafkaError(
                ErrorCode.STREAMS_INVALID_TOPOLOGY,
                f"A copartition group of subtopology {part.subtopology_id} has a number without a "
                "topic.",
            )
    names = {sources[number] for number in group.source_topics}
    return names | {repartition[number].name for number in group.repartition_source_topics}


def _agreed(known: Counts, pinned: Counts, repartition: set[str]) -> Counts:
    """The counts of the repartition topics among those that are read together.

    As in Kafka, where all of them are repartition topics, `pinned` of the whole topology count.
    """
    if not known:
        return {}
    flexible = {name: count for name, count in known.items() if name in repartition}
    others = {name: count for name, count in known.items() if name not in repartition}
    if others:
        agreed = _same(others, others)
    elif pinned:
        agreed = _same(pinned, flexible)
    else:
        agreed = max(flexible.values())
    for name, count in flexible.items():
        if name in pinned and count != agreed:
            raise Obstacle(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{count}] of repartition topic [{name}] doesn't match "
                f"number of partitions [{agreed}] of the source topic.",
            )
    return dict.fromkeys(flexible, agreed)


def _same(counts: Counts, named: Counts) -> int:
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name}={named[name]}" for name in sorted(named))
        raise Obstacle(
            Status.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return next(iter(counts.values()))
