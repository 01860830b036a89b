"""CreateTopics, CreatePartitions, DeleteTopics: Kafka's rules for a cluster of one broker."""

from typing import Any
from uuid import UUID

import pytest

from protocol.apis.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import LOG_DIR, NODE_ID, World


def topic(
    name: str = "t", partitions: int = 1, replicas: int = 1, configs: Any = (), assigned: Any = ()
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs],
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in assigned
        ],
    )


async def create(world: World, *topics: CreatableTopic, version: int = 7, **how: Any) -> Any:
    return (await world.call(CreateTopicsRequest(topics=list(topics), **how), version)).topics


def names(world: World) -> list[str]:
    return list(world.broker.topics.image.topics)


@pytest.mark.parametrize("version", range(2, 8))
async def test_a_topic_is_made_in_every_version(world: World, version: int) -> None:
    (made,) = await create(world, topic(partitions=2), version=version)
    assert (made.name, made.error_code) == ("t", 0)
    found = world.broker.topics.image.topics["t"]
    assert len(found.partitions) == 2
    assert world.fs.exists("/data/t-1")
    if version >= 5:
        assert (made.num_partitions, made.replication_factor) == (2, 1)
        assert {each.name for each in made.configs} >= {"retention.ms", "segment.bytes"}
    if version >= 7:
        assert made.topic_id == found.topic_id


async def test_what_is_made_outlives_the_process(world: World) -> None:
    (made,) = await create(world, topic(partitions=2, configs=[("retention.ms", "5")]))
    again = world.restarted()
    found = again.broker.topics.image.topics["t"]
    assert (found.topic_id, len(found.partitions)) == (made.topic_id, 2)
    assert again.partition("t", 1).log.config.retention_ms == 5


REFUSED = [
    (topic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("__consumer_offsets"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("have.this"), ErrorCode.TOPIC_ALREADY_EXISTS),
    (topic("have_this"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic(partitions=0), ErrorCode.INVALID_PARTITIONS),
    (topic(partitions=-2), ErrorCode.INVALID_PARTITIONS),
    (topic(partitions=10_001), ErrorCode.POLICY_VIOLATION),
    (topic(partitions=2**31 - 1), ErrorCode.POLICY_VIOLATION),
    (topic(replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR),
    (topic(replicas=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
    (topic(replicas=3), ErrorCode.INVALID_REPLICATION_FACTOR),
    (topic(assigned=[(0, [NODE_ID])]), ErrorCode.INVALID_REQUEST),
    (topic(partitions=-1, replicas=-1, assigned=[(1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (topic(partitions=-1, replicas=-1, assigned=[(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (topic(partitions=-1, replicas=-1, assigned=[(0, [9])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (
        topic(partitions=-1, replicas=-1, assigned=[(0, [1, 1])]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
    (
        topic(partitions=-1, replicas=-1, assigned=[(0, [1]), (0, [1])]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
    (topic(configs=[("no.such.key", "1")]), ErrorCode.INVALID_CONFIG),
    (topic(configs=[("retention.ms", "soon")]), ErrorCode.INVALID_CONFIG),
    (topic(configs=[("segment.bytes", "1")]), ErrorCode.INVALID_CONFIG),
    (topic(configs=[("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
]


@pytest.mark.parametrize(("wanted", "code"), REFUSED)
@pytest.mark.parametrize("validate_only", [False, True])
async def test_what_is_refused(
    world: World, wanted: CreatableTopic, code: int, validate_only: bool
) -> None:
    await create(world, topic("have.this"))
    (result,) = await create(world, wanted, validate_only=validate_only)
    assert result.error_code == code
    assert result.error_message
    assert names(world) == ["have.this"]


async def test_defaults_of_the_broker() -> None:
    world = World(num_partitions="4")
    (made,) = await create(world, topic(partitions=-1, replicas=-1))
    assert (made.num_partitions, made.replication_factor) == (4, 1)


async def test_a_manual_assignment_to_this_broker(world: World) -> None:
    assigned = [(1, [NODE_ID]), (0, [NODE_ID])]
    (made,) = await create(world, topic(partitions=-1, replicas=-1, assigned=assigned))
    assert (made.error_code, made.num_partitions) == (0, 2)


async def test_each_topic_of_a_request_is_judged_by_itself(world: World) -> None:
    results = await create(
        world, topic("a"), topic("twice"), topic("b/b"), topic("twice"), topic("c.d"), topic("c_d")
    )
    assert [(each.name, each.error_code) for each in results] == [
        ("a", 0),
        ("twice", ErrorCode.INVALID_REQUEST),
        ("b/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("c.d", 0),
        ("c_d", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    assert names(world) == ["a", "c.d"]


async def test_validation_alone_makes_nothing_and_shows_the_settings(world: World) -> None:
    (judged,) = await create(world, topic(configs=[("retention.ms", "5")]), validate_only=True)
    assert judged.error_code == 0
    shown = {each.name: (each.value, each.config_source) for each in judged.configs}
    assert shown["retention.ms"] == ("5", 1)
    assert names(world) == []
    assert world.restarted().broker.topics.image.topics == {}


async def test_validation_shows_what_the_making_then_shows(world: World) -> None:
    configs = [
        ("retention.ms", " 1h "),
        ("segment.bytes", "2MiB"),
        ("cleanup.policy", " compact , delete "),
        ("message.timestamp.type", " LogAppendTime"),
    ]
    for version in (5, 6, 7):
        wanted = topic(f"t{version}", configs=configs)
        (judged,) = await create(world, wanted, version=version, validate_only=True)
        (made,) = await create(world, wanted, version=version)
        assert (judged.error_code, made.error_code) == (0, 0)
        assert judged.configs == made.configs
        shown = {each.name: each.value for each in judged.configs}
        assert shown["retention.ms"] == "3600000"
        assert shown["segment.bytes"] == "2097152"


async def test_a_full_disk_makes_nothing_and_later_it_works(world: World) -> None:
    world.fs.inject("make directory", path="t-1", error="enospc")
    (refused,) = await create(world, topic(partitions=3, configs=[("retention.ms", "5")]))
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert names(world) == []
    (made,) = await create(world, topic(partitions=3))
    assert made.error_code == 0
    assert world.partition("t", 2).log.config.retention_ms != 5
    assert len(world.restarted().broker.topics.image.topics["t"].partitions) == 3


# -- CreatePartitions


async def grow(world: World, count: int, name: str = "t", **how: Any) -> Any:
    assigned = how.pop("assigned", None)
    wanted = CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=assigned
        and [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assigned],
    )
    request = CreatePartitionsRequest(topics=[wanted], **how)
    return (await world.call(request, how.pop("version", 3))).results[0]


async def test_partitions_are_added_and_stay(world: World) -> None:
    await world.make_topic()
    await world.produce(b"kept")
    assert (await grow(world, 3)).error_code == 0
    assert (await world.produce(b"new", partition=2)).error_code == 0
    again = world.restarted()
    assert len(again.broker.topics.image.topics["t"].partitions) == 3
    assert again.partition("t", 0).log.snapshot.log_end_offset == 1


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"count": 2}, ErrorCode.INVALID_PARTITIONS),
        ({"count": 1}, ErrorCode.INVALID_PARTITIONS),
        ({"count": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"count": 10_001}, ErrorCode.POLICY_VIOLATION),
        ({"count": 3, "name": "nope"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"count": 4, "assigned": [[NODE_ID]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"count": 3, "assigned": [[9]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"count": 3, "assigned": [[NODE_ID]], "validate_only": True}, 0),
    ],
)
async def test_what_growth_is_refused(world: World, how: dict[str, Any], code: int) -> None:
    await world.make_topic(partitions=2)
    assert (await grow(world, **how)).error_code == code
    assert len(world.broker.topics.image.topics["t"].partitions) == 2


async def test_a_topic_named_twice_does_not_grow(world: World) -> None:
    await world.make_topic()
    twice = [CreatePartitionsTopic(name="t", count=count, assignments=None) for count in (2, 3)]
    response = await world.call(CreatePartitionsRequest(topics=twice), 3)
    assert [each.error_code for each in response.results] == [ErrorCode.INVALID_REQUEST]


async def test_growth_that_failed_half_way_can_be_asked_for_again(world: World) -> None:
    await world.make_topic()
    world.fs.inject("make directory", path="t-2", error="enospc")
    assert (await grow(world, 4)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(world.broker.topics.image.topics["t"].partitions) == 1
    assert (await grow(world, 4)).error_code == 0
    assert (await world.produce(b"new", partition=1)).error_code == 0
    again = world.restarted()
    assert len(again.broker.topics.image.topics["t"].partitions) == 4
    assert again.partition("t", 1).log.snapshot.log_end_offset == 1


# -- DeleteTopics


async def delete(world: World, *wanted: Any, version: int = 6) -> Any:
    if version >= 6:
        states = [
            DeleteTopicState(topic_id=each)
            if isinstance(each, UUID)
            else DeleteTopicState(name=each)
            for each in wanted
        ]
        request = DeleteTopicsRequest(topics=states)
    else:
        request = DeleteTopicsRequest(topic_names=list(wanted))
    return (await world.call(request, version)).responses


@pytest.mark.parametrize("version", range(1, 7))
async def test_a_topic_is_deleted_in_every_version(world: World, version: int) -> None:
    await world.make_topic()
    (gone,) = await delete(world, "t", version=version)
    assert (gone.name, gone.error_code) == ("t", 0)
    assert names(world) == []
    assert (await world.produce(b"a")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.restarted().broker.topics.image.topics == {}


async def test_a_topic_is_deleted_by_id(world: World) -> None:
    made = await world.make_topic()
    gone, unknown = await delete(world, made.topic_id, UUID(int=3))
    assert (gone.name, gone.topic_id, gone.error_code) == ("t", made.topic_id, 0)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_what_deletion_is_refused(world: World) -> None:
    made = await world.make_topic()
    (unknown,) = await delete(world, "nope")
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for wanted in (["t", "t"], ["t", made.topic_id]):
        twice = await delete(world, *wanted)
        assert {each.error_code for each in twice} == {ErrorCode.INVALID_REQUEST}
    odd = [DeleteTopicState(name="t", topic_id=made.topic_id), DeleteTopicState()]
    response = await world.call(DeleteTopicsRequest(topics=odd), 6)
    assert {each.error_code for each in response.responses} == {ErrorCode.INVALID_REQUEST}
    assert names(world) == ["t"]


@pytest.mark.parametrize(
    ("version", "code"), [(6, ErrorCode.TOPIC_DELETION_DISABLED), (2, ErrorCode.INVALID_REQUEST)]
)
async def test_deletion_can_be_forbidden(version: int, code: int) -> None:
    world = World(delete_topic_enable="false")
    await world.make_topic()
    (refused,) = await delete(world, "t", version=version)
    assert refused.error_code == code
    assert names(world) == ["t"]


async def test_a_new_topic_of_the_same_name_is_empty_and_plain(world: World) -> None:
    old = await world.make_topic(retention_ms="5")
    await world.produce(b"old")
    await delete(world, "t")
    new = await world.make_topic()
    assert new.topic_id != old.topic_id
    assert world.partition().log.snapshot.log_end_offset == 0
    assert world.partition().log.config.retention_ms != 5


async def test_a_directory_that_cannot_be_renamed_is_in_nobody_s_way_for_long(world: World) -> None:
    """Deletion is decided: the directory goes with the next topic of its name, or is in its way."""
    await world.make_topic(partitions=3)
    await world.produce(b"old")
    world.fs.inject("rename", path="/t-0", times=2)
    (gone,) = await delete(world, "t")
    assert gone.error_code == 0
    left = {entry.name for entry in world.fs.list_dir(LOG_DIR) if entry.is_dir}
    assert [name for name in left if not name.endswith("-delete")] == ["t-0"]
    (refused,) = await create(world, topic(partitions=3))
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert names(world) == []
    (made,) = await create(world, topic(partitions=3))
    assert made.error_code == 0
    assert (await world.produce(b"new")).error_code == 0
    again = world.restarted()
    assert again.broker.topics.image.topics["t"].topic_id == made.topic_id
    assert [again.partition("t", at).log.snapshot.log_end_offset for at in range(3)] == [1, 0, 0]
