"""Requests that name very much give way to others while they are answered."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from broker.runtime.answers import Answers
from broker.runtime.deferred import Deferred
from broker.security.acl import Acl
from broker.security.acl_book import AclBook
from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType
from protocol.apis import (
    create_topics,
    delete_topics,
    describe_acls,
    describe_topic_partitions,
    find_coordinator,
    list_offsets,
    list_transactions,
    metadata,
    offset_commit,
    txn_offset_commit,
)
from protocol.apis import offset_for_leader_epoch as epoch
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import World

NAMES = [f"t{number:05}" for number in range(5000)]
AT_A_TIME = 1000
"""Names that are looked at in one turn of the loop, at most."""


@pytest.fixture
async def slow() -> World:
    """A broker for which time passes whenever it looks at the clock."""
    world = World(horolog_durability="os")
    await world.make_topic(NAMES[1])
    await world.call(find_coordinators(), 4)  # which makes a topic of the broker's
    world.broker.answers = Answers(ticking())
    return world


def ticking() -> Callable[[], float]:
    """A clock that goes on by a millisecond whenever it is looked at."""
    return (number / 1000 for number in itertools.count()).__next__


async def turns_of(world: World, request: Any, version: int) -> tuple[int, Any]:
    """Turns of the loop while a request is answered, and the answer."""
    turns, answer = 0, world.begin(request, version)
    answered = asyncio.ensure_future(world.settled(answer))
    while not answered.done():
        turns += 1
        await asyncio.sleep(0)
    return turns, world.read(request, version, answered.result())


def describe_pages() -> Any:
    topics = [describe_topic_partitions.TopicRequest(name=name) for name in NAMES]
    return describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=topics, response_partition_limit=2000
    )


def metadata_of(names: list[str], **how: Any) -> Any:
    topics = [metadata.MetadataRequestTopic(name=name) for name in names]
    return metadata.MetadataRequest(topics=topics, **how)


def metadata_by_id() -> Any:
    topics = [
        metadata.MetadataRequestTopic(name=None, topic_id=UUID(int=n + 1)) for n in range(5000)
    ]
    return metadata.MetadataRequest(topics=topics)


def find_coordinators() -> Any:
    return find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=NAMES)


def epochs() -> Any:
    partitions = [epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    topics = [epoch.OffsetForLeaderTopic(topic=name, partitions=partitions) for name in NAMES[::2]]
    many = epoch.OffsetForLeaderTopic(topic=NAMES[1], partitions=partitions * (len(NAMES) // 2))
    return epoch.OffsetForLeaderEpochRequest(topics=[*topics, many])


def list_latest() -> Any:
    partitions = [
        list_offsets.ListOffsetsPartition(partition_index=index, timestamp=index - 1)
        for index in range(len(NAMES))
    ]
    topic = list_offsets.ListOffsetsTopic(name=NAMES[1], partitions=partitions)
    return list_offsets.ListOffsetsRequest(replica_id=-1, topics=[topic])


def list_open() -> Any:
    return list_transactions.ListTransactionsRequest(state_filters=NAMES)


def delete_names() -> Any:
    return delete_topics.DeleteTopicsRequest(topic_names=NAMES[2:])


def create_names() -> Any:
    topics = [
        create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in NAMES[2:502]
    ]
    return create_topics.CreateTopicsRequest(topics=topics, validate_only=True)


def commit_offsets() -> Any:
    partitions = [offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
    topics = [
        offset_commit.OffsetCommitRequestTopic(name=name, partitions=partitions) for name in NAMES
    ]
    return offset_commit.OffsetCommitRequest(group_id="g", topics=topics)


def commit_in_transaction() -> Any:
    partitions = [
        txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    ]
    topics = [
        txn_offset_commit.TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
        for name in NAMES
    ]
    return txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id="x", group_id="g", topics=topics
    )


REQUESTS: list[tuple[Callable[[], Any], int]] = [
    (describe_pages, 0),
    (lambda: metadata_of(NAMES, include_topic_authorized_operations=True), 10),
    (lambda: metadata_of(NAMES, allow_auto_topic_creation=True), 4),
    (metadata_by_id, 12),
    (find_coordinators, 4),
    (epochs, 4),
    (list_latest, 7),
    (list_open, 1),
    (commit_offsets, 8),
]


@pytest.mark.parametrize(("request_of", "version"), REQUESTS)
async def test_others_have_their_turn(
    slow: World, request_of: Callable[[], Any], version: int
) -> None:
    turns, _ = await turns_of(slow, request_of(), version)
    assert turns >= len(NAMES) // AT_A_TIME


@pytest.mark.parametrize(
    ("request_of", "version", "least"),
    [(delete_names, 5, 100), (create_names, 7, 60), (commit_in_transaction, 3, 10)],
)
async def test_changes_of_very_many_give_way(
    slow: World, request_of: Callable[[], Any], version: int, least: int
) -> None:
    turns, _ = await turns_of(slow, request_of(), version)
    assert turns >= least


@pytest.mark.parametrize(("request_of", "version"), [(delete_names, 5), (create_names, 7)])
async def test_who_waits_to_change_very_many_may_go(
    slow: World, request_of: Callable[[], Any], version: int
) -> None:
    async with slow.broker.topics.changing:
        answer = asyncio.ensure_future(slow.begin(request_of(), version))
        await asyncio.sleep(0)
        assert slow.last.ends_with_client
        answer.cancel()
        await asyncio.sleep(0)
        assert answer.cancelled()
    assert await slow.make_topic("later")


@pytest.mark.parametrize(("request_of", "version"), REQUESTS)
async def test_a_client_that_goes_leaves_no_work(
    slow: World, request_of: Callable[[], Any], version: int
) -> None:
    answer = slow.begin(request_of(), version)
    assert isinstance(answer, Deferred)
    assert answer.is_long
    answer.abandon()
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize(
    ("request_of", "version"), [(describe_pages, 0), (lambda: metadata_of(NAMES), 4)]
)
async def test_a_topic_that_goes_in_the_middle_is_not_there(
    slow: World, request_of: Callable[[], Any], version: int
) -> None:
    request = request_of()
    answer = slow.begin(request, version)
    await slow.broker.topics.delete([NAMES[1]])
    found = slow.read(request, version, await slow.settled(answer))
    codes = {each.name: each.error_code for each in found.topics}
    assert codes[NAMES[1]] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_entries_of_access_control_give_way_and_keep_their_order() -> None:
    world = World(authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer")
    operations = (AclOperation.WRITE, AclOperation.READ)
    world.broker.authority.book = AclBook(
        Acl(kind, pattern, name, "User:a", "*", operation, AclPermission.ALLOW)
        for name in NAMES[500::-1]
        for operation in operations
        for kind in (ResourceType.GROUP, ResourceType.TOPIC)
        for pattern in (PatternType.PREFIXED, PatternType.LITERAL)
    )
    world.broker.answers = Answers(ticking())
    request = describe_acls.DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
    )
    turns, found = await turns_of(world, request, 3)
    assert turns >= 4
    order = [
        (each.resource_type, each.pattern_type, each.resource_name) for each in found.resources
    ]
    assert order == sorted(order)
    assert len(order) == 501 * 4
    assert {tuple(acl.operation for acl in each.acls) for each in found.resources} == {operations}


async def test_a_commit_of_very_many_offsets_is_judged_as_small_ones_are(slow: World) -> None:
    _, found = await turns_of(slow, commit_offsets(), 8)
    codes = {each.name: each.partitions[0].error_code for each in found.topics}
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {name: 0 if name == NAMES[1] else missing for name in NAMES}
    assert [each.name for each in found.topics] == NAMES
    assert {name: value.offset for (name, _), value in group_of(slow).offsets.items()} == {
        NAMES[1]: 7
    }


async def test_nothing_overtakes_a_commit_of_very_many_offsets(slow: World) -> None:
    answer = slow.begin(commit_offsets(), 8)
    assert answer.keeps_order


async def test_a_commit_that_no_batch_can_take_is_refused_before_it_is_built(
    slow: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []
    monkeypatch.setattr("broker.state.state_topic.build_batch", lambda *_, **__: built.append(1))
    await slow.make_topic("many", partitions=400)
    partitions = [
        offset_commit.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=7, committed_metadata="m" * 4000
        )
        for index in range(400)
    ]
    topic = offset_commit.OffsetCommitRequestTopic(name="many", partitions=partitions)
    request = offset_commit.OffsetCommitRequest(group_id="g", topics=[topic])
    found = await slow.call(request, 8)
    codes = [each.error_code for each in found.topics[0].partitions]
    assert codes == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE] * 400
    assert not built
    assert not group_of(slow).offsets


def group_of(world: World) -> Any:
    return world.broker.groups.groups["g"]
