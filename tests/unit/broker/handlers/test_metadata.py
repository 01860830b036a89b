"""Metadata and its relatives: what a client learns of topics and of this node."""

from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from broker.runtime.request_context import RequestContext
from protocol.apis.api_versions import ApiVersionsRequest
from protocol.apis.describe_cluster import DescribeClusterRequest
from protocol.apis.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from protocol.apis.find_coordinator import FindCoordinatorRequest
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import NODE_ID, World

UNKNOWN_OPERATIONS = -(2**31)


def named(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


@pytest.mark.parametrize("version", range(14))
async def test_all_topics_in_every_version(world: World, version: int) -> None:
    await world.make_topic("b", partitions=2)
    await world.make_topic("a")
    everything = None if version else []
    response = await world.call(MetadataRequest(topics=everything), version)
    assert [each.name for each in response.topics] == ["a", "b"]
    assert [(each.node_id, each.host, each.port) for each in response.brokers] == [
        (NODE_ID, "broker.test", 9092)
    ]
    partition = response.topics[1].partitions[1]
    assert (partition.partition_index, partition.leader_id) == (1, NODE_ID)
    assert (partition.replica_nodes, partition.isr_nodes) == ([NODE_ID], [NODE_ID])
    if version >= 1:
        assert response.controller_id == NODE_ID
    if version >= 2:
        assert response.cluster_id == "test-cluster"
    if version >= 7:
        assert partition.leader_epoch == world.partition("b").log.leader_epoch
    if version >= 10:
        topics = world.broker.topics.image.topics
        assert response.topics[0].topic_id == topics["a"].topic_id
    if version >= 8:
        assert response.topics[0].topic_authorized_operations == UNKNOWN_OPERATIONS


async def test_an_empty_list_asks_for_no_topic(world: World) -> None:
    await world.make_topic("a")
    response = await world.call(MetadataRequest(topics=[]), 9)
    assert response.topics == []
    assert len(response.brokers) == 1


async def test_unknown_and_impossible_names(world: World) -> None:
    response = await world.call(MetadataRequest(topics=named("nope", "a/b")), 9)
    assert [(each.name, each.error_code) for each in response.topics] == [
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


@pytest.mark.parametrize("version", range(14))
async def test_an_empty_name_is_no_topic_in_any_version(world: World, version: int) -> None:
    response = await world.call(MetadataRequest(topics=named("")), version)
    assert [(each.name, each.error_code) for each in response.topics] == [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION)
    ]


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (10, ErrorCode.INVALID_REQUEST),
        (11, ErrorCode.INVALID_REQUEST),
        (12, ErrorCode.UNKNOWN_SERVER_ERROR),
        (13, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_neither_name_nor_id_is_answered_as_by_a_kafka(
    world: World, version: int, code: int
) -> None:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=None)])
    response = await world.call(asked, version)
    assert [(each.name, each.error_code) for each in response.topics] == [("", code)]


@pytest.mark.parametrize("version", [10, 11])
async def test_an_id_is_refused_in_versions_that_do_not_ask_by_it(
    world: World, version: int
) -> None:
    made = await world.make_topic("a")
    asked = [MetadataRequestTopic(name=name, topic_id=made.topic_id) for name in ("a", None)]
    response = await world.call(MetadataRequest(topics=asked), version)
    assert [each.error_code for each in response.topics] == [ErrorCode.INVALID_REQUEST] * 2


async def test_a_name_asked_for_twice_is_told_once(world: World) -> None:
    await world.make_topic("a")
    response = await world.call(MetadataRequest(topics=named("a", "a")), 9)
    assert [each.name for each in response.topics] == ["a"]


async def test_topics_by_id(world: World) -> None:
    made = await world.make_topic("a")
    asked = [MetadataRequestTopic(topic_id=each) for each in (made.topic_id, UUID(int=5))]
    response = await world.call(MetadataRequest(topics=asked), 12)
    assert [(each.name, each.topic_id, each.error_code) for each in response.topics] == [
        ("a", made.topic_id, 0),
        (None, UUID(int=5), ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize(
    ("enabled", "allowed", "made"),
    [("true", True, True), ("true", False, False), ("false", True, False)],
)
async def test_topics_are_made_when_both_sides_agree(
    enabled: str, allowed: bool, made: bool
) -> None:
    world = World(auto_create_topics_enable=enabled, num_partitions="3")
    request = MetadataRequest(topics=named("new"), allow_auto_topic_creation=allowed)
    topic = (await world.call(request, 9)).topics[0]
    assert (topic.error_code == 0) is made
    assert len(topic.partitions) == (3 if made else 0)
    assert ("new" in world.broker.topics.image.topics) is made


async def test_automatic_creation_keeps_the_rules() -> None:
    world = World(auto_create_topics_enable="true", horolog_max_partitions="2")
    await world.make_topic("a.b")
    response = await world.call(MetadataRequest(topics=named("a_b", "c", "d", "e/f")), 9)
    assert [each.error_code for each in response.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        0,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]


# -- ApiVersions


@pytest.mark.parametrize("version", range(5))
async def test_what_is_served_is_listed(world: World, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    response = await world.call(request, version)
    listed = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert listed[1] == (0, 18)
    assert listed[2] == (0, 11)
    assert listed[18] == (0, 4)
    assert sorted(listed) == list(listed)
    if version >= 3:
        levels = {each.name: each.max_version_level for each in response.finalized_features}
        assert levels["metadata.version"] >= 25
        assert levels["group.version"] == 1
        assert levels["share.version"] == 1


@pytest.mark.parametrize(
    ("name", "software_version"), [("", "1"), ("a b", "1"), ("-a", "1"), ("a", ""), ("a", "1_")]
)
async def test_a_client_names_its_software_properly(
    world: World, name: str, software_version: str
) -> None:
    request = ApiVersionsRequest(
        client_software_name=name, client_software_version=software_version
    )
    response = await world.call(request, 3)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.api_keys == []


# -- this node


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("key_type", [0, 1])
async def test_this_node_coordinates_everything(world: World, version: int, key_type: int) -> None:
    request = FindCoordinatorRequest(key="g", key_type=key_type, coordinator_keys=["g", "h"])
    response = await world.call(request, version)
    found = response.coordinators if version >= 4 else [response]
    for each in found:
        assert (each.error_code, each.node_id, each.host) == (0, NODE_ID, "broker.test")
    if version >= 4:
        assert [each.key for each in found] == ["g", "h"]


async def test_an_unknown_kind_of_coordinator(world: World) -> None:
    request = FindCoordinatorRequest(key_type=9, coordinator_keys=["g"])
    (only,) = (await world.call(request, 4)).coordinators
    assert (only.error_code, only.node_id) == (ErrorCode.INVALID_REQUEST, -1)


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster_is_one_broker(world: World, version: int) -> None:
    response = await world.call(DescribeClusterRequest(), version)
    assert (response.cluster_id, response.controller_id) == ("test-cluster", NODE_ID)
    assert [each.broker_id for each in response.brokers] == [NODE_ID]


async def test_controllers_are_elsewhere(world: World) -> None:
    response = await world.call(DescribeClusterRequest(endpoint_type=2), 1)
    assert response.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


# -- DescribeTopicPartitions


async def pages(world: World, limit: int, *names: str) -> list[list[tuple[str, list[int]]]]:
    """Every page, as topics with their partitions."""
    found: list[list[tuple[str, list[int]]]] = []
    cursor: Any = None
    while cursor is not None or not found:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor and Cursor(**{k: getattr(cursor, k) for k in cursor.__slots__}),
        )
        response = await world.call(request, 0)
        found.append(
            [
                (topic.name, [each.partition_index for each in topic.partitions])
                for topic in response.topics
            ]
        )
        cursor = response.next_cursor
    return found


async def test_pages_cover_everything_once(world: World) -> None:
    await world.make_topic("b", partitions=3)
    await world.make_topic("a", partitions=2)
    assert await pages(world, 100) == [[("a", [0, 1]), ("b", [0, 1, 2])]]
    assert await pages(world, 2) == [[("a", [0, 1])], [("b", [0, 1])], [("b", [2])]]
    assert await pages(world, 4) == [[("a", [0, 1]), ("b", [0, 1])], [("b", [2])]]
    assert await pages(world, 1, "b") == [[("b", [0])], [("b", [1])], [("b", [2])]]


async def test_names_of_no_topic_count_against_the_page(world: World) -> None:
    await world.make_topic("b", partitions=2)
    assert await pages(world, 2, "d", "c", "b", "a") == [
        [("a", []), ("b", [0])],
        [("b", [1]), ("c", [])],
        [("d", [])],
    ]


async def test_names_beyond_the_page_are_not_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Counter[str]()
    may = RequestContext.may

    def counted(context: Any, *right: Any) -> bool:
        looked[right[-1]] += 1
        return may(context, *right)

    monkeypatch.setattr(RequestContext, "may", counted)
    names = [TopicRequest(name=f"t{number:05}") for number in range(9000)]
    request = DescribeTopicPartitionsRequest(topics=names[::-1], response_partition_limit=50000)
    response = await world.call(request, 0)
    assert [each.name for each in response.topics] == [each.name for each in names[:2000]]
    assert response.next_cursor.topic_name == names[2000].name
    assert looked.total() == 2000


async def test_an_unknown_topic_has_its_error_and_a_bad_cursor_too(world: World) -> None:
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="nope")])
    (topic,) = (await world.call(request, 0)).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for cursor in (Cursor(topic_name="nope", partition_index=-1), Cursor(topic_name="a")):
        request.cursor = cursor
        (topic,) = (await world.call(request, 0)).topics
        assert topic.error_code == ErrorCode.INVALID_REQUEST
