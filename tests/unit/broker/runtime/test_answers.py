"""A small request gets no huge answer: what is named twice is told once, and all has bounds."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from broker.runtime.answers import MOST_BYTES, AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from protocol.apis import (
    consumer_group_describe,
    consumer_group_heartbeat,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    fetch,
    find_coordinator,
    list_transactions,
    metadata,
    offset_fetch,
)
from protocol.codec import encode_bytes
from protocol.errors import ErrorCode as E
from tests.support.worlds.group_world import GroupWorld, group_world

TIMES = 400


def describe_topics(times: int) -> Any:
    asked = [describe_configs.DescribeConfigsResource(resource_type=2, resource_name="t")]
    return describe_configs.DescribeConfigsRequest(resources=asked * times)


def fetch_group(times: int) -> Any:
    asked = [offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None)]
    return offset_fetch.OffsetFetchRequest(groups=asked * times)


def fetch_partitions(times: int) -> Any:
    topics = [offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0] * times)]
    asked = [offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=topics * 3)]
    return offset_fetch.OffsetFetchRequest(groups=asked)


def old_fetch_partitions(times: int) -> Any:
    topics = [offset_fetch.OffsetFetchRequestTopic(name="t", partition_indexes=[0] * times)]
    return offset_fetch.OffsetFetchRequest(group_id="g", topics=topics)


def describe_producing(times: int) -> Any:
    topics = [describe_producers.TopicRequest(name="t", partition_indexes=[0] * times)]
    return describe_producers.DescribeProducersRequest(topics=topics * 3)


def describe_dirs(times: int) -> Any:
    topics = [describe_log_dirs.DescribableLogDirTopic(topic="t", partitions=[0] * times)]
    return describe_log_dirs.DescribeLogDirsRequest(topics=topics * 3)


def describe_pages(times: int) -> Any:
    topics = [describe_topic_partitions.TopicRequest(name="t")] * times
    return describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=topics, response_partition_limit=2000
    )


def describe_ids(times: int) -> Any:
    return describe_transactions.DescribeTransactionsRequest(transactional_ids=["x"] * times)


def find_groups(times: int) -> Any:
    return find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"] * times)


def metadata_of(times: int) -> Any:
    return metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="t")] * times)


def fetch_records(times: int) -> Any:
    partitions = [fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
    topics = [fetch.FetchTopic(topic="t", partitions=partitions * times)]
    return fetch.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 30, topics=topics)


@pytest.fixture
async def filled() -> GroupWorld:
    world = await group_world()
    member = world.member()
    world.stable(member)
    assert member.commit(("t", 0, 5), ("t", 1, 5), metadata="m" * 1000) == [0, 0]
    joins = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="k",
        member_id="m",
        rebalance_timeout_ms=1000,
        topic_partitions=[],
        subscribed_topic_names=["t"],
    )
    assert world.now(joins, 1).error_code == 0
    await world.produce(b"x" * 1000, producer_id=5, producer_epoch=0, base_sequence=0)
    return world


@pytest.mark.parametrize(
    ("request_of", "version"),
    [
        (fetch_group, 9),
        (fetch_partitions, 9),
        (old_fetch_partitions, 7),
        (lambda times: describe_groups.DescribeGroupsRequest(groups=["g"] * times), 6),
        (
            lambda times: consumer_group_describe.ConsumerGroupDescribeRequest(
                group_ids=["k"] * times
            ),
            1,
        ),
        (describe_topics, 4),
        (describe_producing, 0),
        (describe_dirs, 4),
        (describe_ids, 0),
        (lambda times: list_transactions.ListTransactionsRequest(state_filters=["o"] * times), 1),
        (find_groups, 4),
        (metadata_of, 9),
        (describe_pages, 0),
        (fetch_records, 2),
        (fetch_records, 11),
    ],
)
async def test_what_is_named_many_times_is_told_once(
    filled: GroupWorld, request_of: Callable[[int], Any], version: int
) -> None:
    once, many = [
        len(encode_bytes(await filled.call(request_of(times), version), version))
        for times in (1, TIMES)
    ]
    assert many == once, f"{once} and {many} bytes"


async def test_an_answer_of_many_groups_has_a_byte_budget() -> None:
    world = await group_world()
    world.broker.answers = Answers(world.clock.monotonic, 100_000)
    names = [f"group-{n}" for n in range(200)]
    for name in names:
        world.commit_offsets(("t", 0, 5), group_id=name, metadata="m" * 4000)
    asked = [offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
    answer = await world.call(offset_fetch.OffsetFetchRequest(groups=asked), 9)
    codes = [each.error_code for each in answer.groups]
    told = codes.count(0)
    assert 10 < told < 30
    assert codes == [0] * told + [E.POLICY_VIOLATION] * (200 - told)
    assert len(encode_bytes(answer, 9)) < 150_000
    described = await world.call(describe_groups.DescribeGroupsRequest(groups=names * 3), 6)
    assert {each.error_code for each in described.groups} <= {0, E.POLICY_VIOLATION}
    configs = [describe_configs.DescribeConfigsResource(resource_type=2, resource_name="t")]
    request = describe_configs.DescribeConfigsRequest(
        resources=configs, include_documentation=True, include_synonyms=True
    )
    world.broker.answers = Answers(world.clock.monotonic, 1000)
    refused = (await world.call(request, 4)).results[0]
    assert (refused.error_code, refused.configs) == (E.POLICY_VIOLATION, [])


async def test_a_long_answer_lets_others_have_their_turn() -> None:
    now = [0.0]
    answers = Answers(lambda: now[0])
    told: list[str] = []

    def pieces(room: AnswerRoom) -> Iterator[int | None]:
        for number in range(10):
            now[0] += 0.001
            room.take(1)
            told.append(f"piece {number}")
            yield None
            yield number

    async def other() -> None:
        for _ in range(3):
            told.append("other")
            await asyncio.sleep(0)

    made = answers.make(pieces, sum)
    assert isinstance(made, Deferred)
    assert len(told) == 2
    task = asyncio.create_task(other())
    assert await wait_for(made) == 45
    await task
    assert 2 <= told.index("other") < told.index("piece 9")
    assert answers.under_way_bytes == 0
    assert answers.make(lambda room: iter([1, 2]), sum) == 3


async def test_long_answers_are_made_one_at_a_time_and_end_with_their_clients() -> None:
    now, begun = [0.0], list[str]()
    answers = Answers(lambda: now[0])

    def endless(_: AnswerRoom) -> Iterator[int | None]:
        while True:
            now[0] += 1
            begun.append("endless")
            yield None

    def short(_: AnswerRoom) -> Iterator[int | None]:
        for _ in range(3):
            now[0] += 1
            begun.append("short")
            yield None

    first, second = answers.make(endless, len), answers.make(short, len)
    assert isinstance(first, Deferred)
    assert isinstance(second, Deferred)
    await asyncio.sleep(0.01)
    assert begun.count("short") == 1
    first.abandon()
    async with asyncio.timeout(10):
        assert await wait_for(second) == 0
    ended = begun.count("endless")
    await asyncio.sleep(0.01)
    assert begun.count("endless") == ended


async def test_answers_beside_each_other_have_one_turn_each_and_one_a_turn_of_the_loop() -> None:
    now, begun, turns = [0.0], list[tuple[int, str]](), [0]
    answers = Answers(lambda: now[0])

    def pieces(name: str, _: AnswerRoom) -> Iterator[str | None]:
        for _ in range(4):
            now[0] += 1
            begun.append((turns[0], name))
            yield None

    async def count() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    large = answers.make(partial(pieces, "large"), len)
    small = [answers.make(partial(pieces, each), len, beside=True) for each in ("a", "b")]
    counting = asyncio.create_task(count())
    for each in (large, *small):
        assert isinstance(each, Deferred)
        await wait_for(each)
    counting.cancel()
    later = begun[3:]
    assert [name for _, name in later[:6]] == ["large", "a", "b"] * 2
    assert len({turn for turn, _ in later}) == len(later)


async def test_a_wait_in_an_answer_keeps_no_other_waiting_and_outlives_its_client() -> None:
    answers, done = Answers(lambda: 0.0), list[str]()
    goes = asyncio.Event()

    async def change(name: str) -> str:
        await goes.wait()
        done.append(name)
        return name

    def pieces(name: str, room: AnswerRoom) -> Iterator[str | None]:
        room.waits_for = task = asyncio.get_running_loop().create_task(change(name))
        yield None
        yield task.result()

    first, gone = [answers.make(partial(pieces, each), list[str]) for each in ("a", "b")]
    assert isinstance(first, Deferred)
    assert isinstance(gone, Deferred)
    await asyncio.sleep(0.01)
    gone.abandon()
    late = answers.make(lambda _: iter([None, 1]), sum)
    assert late == 1
    goes.set()
    assert await wait_for(first) == ["a"]
    assert done == ["a", "b"]


async def test_a_piece_that_fails_ends_the_answer() -> None:
    now = [0.0]
    answers = Answers(lambda: now[0])

    def pieces(_: AnswerRoom) -> Iterator[int | None]:
        now[0] += 1
        yield None
        raise ZeroDivisionError

    made = answers.make(pieces, len)
    assert isinstance(made, Deferred)
    with pytest.raises(ZeroDivisionError):
        await wait_for(made)


def test_an_answer_takes_at_most_32_mib() -> None:
    assert MOST_BYTES == 32 * 1024 * 1024
