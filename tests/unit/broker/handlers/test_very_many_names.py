"""Requests that name very much give way to others while they are answered."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from broker.runtime.answers import Answers
from broker.runtime.deferred import Deferred
from protocol.apis import describe_topic_partitions, metadata
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import World

NAMES = [f"t{number:05}" for number in range(5000)]
AT_A_TIME = 1000
"""Names that are looked at in one turn of the loop, at most."""


@pytest.fixture
async def slow() -> World:
    """A broker for which time passes whenever it looks at the clock."""
    world = World()
    await world.make_topic(NAMES[1])
    now = [0.0]

    def monotonic() -> float:
        now[0] += 0.001
        return now[0]

    world.broker.answers = Answers(monotonic)
    return world


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


REQUESTS: list[tuple[Callable[[], Any], int]] = [
    (describe_pages, 0),
    (lambda: metadata_of(NAMES, include_topic_authorized_operations=True), 10),
    (lambda: metadata_of(NAMES, allow_auto_topic_creation=True), 4),
    (metadata_by_id, 12),
]


@pytest.mark.parametrize(("request_of", "version"), REQUESTS)
async def test_others_have_their_turn(
    slow: World, request_of: Callable[[], Any], version: int
) -> None:
    turns, _ = await turns_of(slow, request_of(), version)
    assert turns >= len(NAMES) // AT_A_TIME


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
