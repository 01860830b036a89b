"""Limits on partitions that are made and deleted: who waits, who is refused, what counts."""

from typing import Any

import pytest

from broker.quotas.mutations import MAX_BUCKETS, MutationBuckets, TokenBucket
from broker.runtime.principals import USER, Principal
from protocol.apis import create_partitions, create_topics, delete_topics, metadata
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import World
from tests.unit.broker.quotas.test_quota_apis import alter, entry

EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
NOBODY = [("user", "ANONYMOUS")]
BURST = 11  # seconds for which is saved up


def test_a_bucket_begins_full_and_may_be_taken_below_nothing() -> None:
    bucket = TokenBucket()
    assert bucket.rest_ms(2, 20, 1000) == 0
    bucket.take(24)
    assert bucket.rest_ms(2, 20, 1000) == 2000
    assert bucket.rest_ms(2, 20, 2500) == 500
    assert bucket.rest_ms(2, 20, 3000) == 0


def test_a_bucket_saves_no_more_than_a_burst() -> None:
    bucket = TokenBucket()
    bucket.rest_ms(2, 20, 0)
    bucket.take(20)
    assert bucket.rest_ms(2, 20, 1_000_000) == 0
    bucket.take(21)
    assert bucket.rest_ms(2, 20, 1_000_000) == 500


def test_there_is_an_end_to_buckets() -> None:
    buckets = MutationBuckets(11)
    first = buckets.of(("u", "0"))
    for number in range(1, MAX_BUCKETS + 1):
        buckets.of(("u", str(number)))
    assert buckets.of(("u", "0")) is not first


@pytest.fixture
async def world() -> World:
    """Everybody may change one partition a second."""
    world = World()
    await world.make_topic("there", 2)
    await limit(world, 1.0)
    return world


async def limit(world: World, rate: float | None) -> None:
    assert await alter(world, entry(NOBODY, controller_mutation_rate=rate)) == [0]


Answer = tuple[list[int], bool]
"""The codes, and whether the client is to rest."""


async def create(world: World, *topics: tuple[str, int], version: int = 7, **how: Any) -> Answer:
    asked = [
        create_topics.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        for name, count in topics
    ]
    request = create_topics.CreateTopicsRequest(topics=asked, timeout_ms=1000, **how)
    answer = await world.call(request, version)
    return [each.error_code for each in answer.topics], answer.throttle_time_ms > 0


async def grow(world: World, name: str, count: int, version: int = 3, **how: Any) -> Answer:
    topic = create_partitions.CreatePartitionsTopic(name=name, count=count, assignments=None)
    request = create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=1000, **how)
    answer = await world.call(request, version)
    return [each.error_code for each in answer.results], answer.throttle_time_ms > 0


async def delete(world: World, name: str, version: int = 6) -> Answer:
    request = delete_topics.DeleteTopicsRequest(
        topics=[delete_topics.DeleteTopicState(name=name)], topic_names=[name], timeout_ms=1000
    )
    answer = await world.call(request, version)
    return [each.error_code for each in answer.responses], answer.throttle_time_ms > 0


async def test_who_has_used_up_its_limit_is_refused_until_it_has_rested(world: World) -> None:
    assert await create(world, ("a", BURST + 2)) == ([0], False)
    assert await create(world, ("b", 1)) == ([EXCEEDED], True)
    assert await grow(world, "there", 3) == ([EXCEEDED], True)
    assert await delete(world, "there") == ([EXCEEDED], True)
    assert set(world.broker.topics.image.topics) == {"there", "a"}
    world.clock.advance(2000)
    assert await create(world, ("b", 1)) == ([0], False)


async def test_the_topics_of_one_request_count_one_after_the_other(world: World) -> None:
    topics = ("a", BURST), ("b", 1), ("c", 1)
    assert await create(world, *topics) == ([0, 0, EXCEEDED], True)
    assert set(world.broker.topics.image.topics) == {"there", "a", "b"}


@pytest.mark.parametrize("version", [2, 5])
async def test_versions_that_know_no_such_code_are_done_and_rest(
    world: World, version: int
) -> None:
    assert await create(world, ("a", BURST), version=version) == ([0], False)
    assert await create(world, ("b", 1), version=version) == ([0], True)
    assert await grow(world, "there", 3, version=2) == ([0], True)
    assert await delete(world, "there", version=4) == ([0], True)
    assert set(world.broker.topics.image.topics) == {"a", "b"}


async def test_growing_and_deleting_count_as_many_partitions(world: World) -> None:
    assert await grow(world, "there", 2 + BURST) == ([0], False)
    assert await create(world, ("a", 1)) == ([0], False)
    assert await create(world, ("b", 1)) == ([EXCEEDED], True)
    world.clock.advance(1000 * (1 + BURST))
    assert await delete(world, "there") == ([0], False)
    assert await create(world, ("b", 1)) == ([EXCEEDED], True)


async def test_what_is_refused_otherwise_costs_nothing_and_a_check_costs_all(world: World) -> None:
    for _ in range(3):
        assert await create(world, ("there", 30)) == ([ErrorCode.TOPIC_ALREADY_EXISTS], False)
        assert await grow(world, "none", 30) == ([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], False)
    assert await create(world, ("a", BURST + 1), validate_only=True) == ([0], False)
    assert await create(world, ("a", 1)) == ([EXCEEDED], True)


async def test_topics_that_are_made_by_themselves_count(world: World) -> None:
    world = World(auto_create_topics_enable="true", num_partitions="12")
    await limit(world, 1.0)

    async def look(name: str) -> list[int]:
        topic = metadata.MetadataRequestTopic(name=name)
        request = metadata.MetadataRequest(topics=[topic], allow_auto_topic_creation=True)
        return [each.error_code for each in (await world.call(request, 9)).topics]

    assert await look("a") == [0]
    assert await look("b") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    world.clock.advance(1000)
    assert await look("b") == [0]


async def test_nobody_is_limited_without_a_limit(world: World) -> None:
    assert await create(world, ("a", BURST + 20)) == ([0], False)
    await limit(world, None)
    assert await create(world, ("b", 100)) == ([0], False)
    assert await create(world, ("c", 1)) == ([0], False)


async def test_a_default_holds_for_no_super_user() -> None:
    world = World(super_users="User:root")
    assert await alter(world, entry([("user", None)], controller_mutation_rate=1.0)) == [0]
    world.principal = Principal(USER, "root")
    assert await create(world, ("a", 50)) == ([0], False)
    assert await create(world, ("b", 1)) == ([0], False)
    world.principal = Principal(USER, "ann")
    assert await create(world, ("c", 50)) == ([0], False)
    assert await create(world, ("d", 1)) == ([EXCEEDED], True)
