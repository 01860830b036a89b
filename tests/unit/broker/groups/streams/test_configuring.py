"""Numbers of a topology: tasks, partitions of internal topics, and what stands in the way."""

import pytest

from broker.groups.records.streams import (
    StoredCopartitionGroup,
    StoredSetting,
    StoredSubtopology,
    StoredTopic,
    TopologyValue,
)
from broker.groups.streams.configuring import (
    MAX_SUBTOPOLOGIES,
    MAX_TASKS,
    ConfiguredTopology,
    check_size,
    configured,
)
from broker.groups.streams.status import Status
from broker.groups.streams.topology import Topology
from protocol.errors import ErrorCode, KafkaError

TOPICS = {"four": 4, "two": 2, "six": 6}


def part(name: str, *sources: str, **fields: object) -> StoredSubtopology:
    return StoredSubtopology(subtopology_id=name, source_topics=list(sources), **fields)


def topic(name: str, partitions: int = 0) -> StoredTopic:
    settings = [StoredSetting(key="cleanup.policy", value="compact")]
    return StoredTopic(name=name, partitions=partitions, topic_configs=settings)


def of(*parts: StoredSubtopology, **more: int) -> ConfiguredTopology:
    topics = TOPICS | {name.replace("_", "-"): count for name, count in more.items()}
    topology = Topology(TopologyValue(subtopologies=list(parts)))
    check_size(topology)
    return configured(topology, topics.get)


def tasks(found: ConfiguredTopology) -> dict[str, int]:
    assert found.subtopologies is not None
    return {name: each.task_count for name, each in found.subtopologies.items()}


def obstacle(found: ConfiguredTopology) -> tuple[Status, str]:
    assert found.obstacle is not None
    assert not found.is_ready
    return found.obstacle.status, found.obstacle.text


CHAIN = (
    part("2", repartition_source_topics=[topic("r2")], state_changelog_topics=[topic("c2")]),
    part("1", "six", repartition_source_topics=[topic("r1")], repartition_sink_topics=["r2"]),
    part("0", "four", "two", repartition_sink_topics=["r1"]),
)


def test_topics_get_as_many_partitions_as_what_feeds_them() -> None:
    found = of(*CHAIN)
    assert tasks(found) == {"0": 4, "1": 6, "2": 6}
    assert {name: each.partition_count for name, each in found.missing.items()} == {
        "r1": 4, "r2": 6, "c2": 6,
    }  # fmt: skip
    assert found.missing["c2"].settings == {"cleanup.policy": "compact"}
    assert obstacle(found)[0] is Status.MISSING_INTERNAL_TOPICS
    made = of(*CHAIN, r1=4, r2=6, c2=6)
    assert (made.is_ready, made.missing) == (True, {})


def test_topics_that_are_there_with_other_partitions_stand_in_the_way() -> None:
    assert obstacle(of(*CHAIN, r1=4, r2=6, c2=5)) == (
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Existing topic c2 has different number of partitions: expected 6, found 5",
    )


def test_sources_have_to_be_there() -> None:
    assert obstacle(of(part("0", "four", "z", "y", "x", "w"))) == (
        Status.MISSING_SOURCE_TOPICS,
        "Source topics w, x, y and 1 additional topics are missing.",
    )


def both(*sources: int, repartition: tuple[int, ...] = ()) -> list[StoredCopartitionGroup]:
    group = StoredCopartitionGroup(
        source_topics=list(sources), repartition_source_topics=list(repartition)
    )
    return [group]


def test_topics_that_are_read_together_have_as_many_partitions() -> None:
    assert obstacle(of(part("0", "four", "two", copartition_groups=both(0, 1)))) == (
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Following topics do not have the same number of partitions: [{four=4, two=2}]",
    )
    joined = part(
        "1",
        "two",
        repartition_source_topics=[topic("r")],
        copartition_groups=both(0, repartition=(0,)),
    )
    found = of(joined, part("0", "four", repartition_sink_topics=["r"]))
    assert found.missing["r"].partition_count == 2, "the repartition topic gives way"
    joined.repartition_source_topics = [topic("r", 4)]
    assert obstacle(of(joined, part("0", "four", repartition_sink_topics=["r"]))) == (
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        (
            "Number of partitions [4] of repartition topic [r] doesn't match number of partitions "
            "[2] of the source topic."
        ),
    )


def test_repartition_topics_that_are_read_together_get_the_most() -> None:
    joined = part(
        "1",
        repartition_source_topics=[topic("r"), topic("s")],
        copartition_groups=both(repartition=(0, 1)),
    )
    feeds = (
        part("0", "four", repartition_sink_topics=["r"]),
        part("2", "six", repartition_sink_topics=["s"]),
    )
    assert tasks(of(joined, *feeds)) == {"0": 4, "1": 6, "2": 6}
    joined.repartition_source_topics = [topic("r", 3), topic("s")]
    assert tasks(of(joined, *feeds))["1"] == 3, "a number that the application gave counts"


@pytest.mark.parametrize(
    "parts",
    [
        [part("0", repartition_source_topics=[topic("r")])],
        [part("0", repartition_source_topics=[topic("r")], repartition_sink_topics=["r"])],
        [part("0", "four", repartition_source_topics=[topic("r")])],
        [part("0")],
        [part("0", "four"), part("0", "two")],
        [part("0", "four", copartition_groups=both(1))],
        [part("0", "four", copartition_groups=both(0, repartition=(-1,)))],
        [part("0", "four", repartition_source_topics=[topic("r", -1)])],
        [part(str(number), "four") for number in range(MAX_SUBTOPOLOGIES + 1)],
    ],
)
def test_what_can_never_be_is_refused(parts: list[StoredSubtopology]) -> None:
    with pytest.raises(KafkaError) as refused:
        of(*parts)
    assert refused.value.code == ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_tasks_have_a_limit() -> None:
    with pytest.raises(KafkaError) as refused:
        of(part("0", "huge"), huge=MAX_TASKS + 1)
    assert refused.value.code == ErrorCode.STREAMS_INVALID_TOPOLOGY
