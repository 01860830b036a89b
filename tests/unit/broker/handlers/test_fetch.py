"""Fetch: bytes and limits, waiting, sessions, isolation, and who may not ask."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from broker.runtime.deferred import Deferred
from protocol.apis.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from protocol.errors import ErrorCode
from protocol.records.batch import iter_headers
from tests.support.worlds.handler_world import World, batch, produce_request

VERSIONS = range(4, 19)
NO_ID = UUID(int=0)


def fetch(
    *offsets: int,
    topic: str = "t",
    topic_id: UUID = NO_ID,
    max_wait_ms: int = 0,
    partition_max_bytes: int = 1 << 20,
    epoch: int = -1,
    **fields: Any,
) -> FetchRequest:
    """From partition 0 at the first offset, partition 1 at the second, and so on."""
    partitions = [
        FetchPartition(
            partition=index,
            fetch_offset=offset,
            partition_max_bytes=partition_max_bytes,
            current_leader_epoch=epoch,
        )
        for index, offset in enumerate(offsets)
    ]
    topics = [FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)]
    fields.setdefault("min_bytes", 1)
    return FetchRequest(max_wait_ms=max_wait_ms, topics=topics if offsets else [], **fields)


def offsets_of(answer: Any) -> list[int]:
    """Base offsets of the batches that came."""
    return [header.base_offset for _, header in iter_headers(memoryview(answer.records or b""))]


def partitions_of(response: Any) -> dict[int, Any]:
    return {each.partition_index: each for topic in response.responses for each in topic.partitions}


async def filled(world: World, batches: int = 3, partitions: int = 1) -> None:
    """Topic t, each partition with batches of 2 records of 100 bytes."""
    await world.make_topic(partitions=partitions)
    for index in range(partitions):
        for _ in range(batches):
            await world.produce(b"x" * 100, b"y" * 100, partition=index)


@pytest.mark.parametrize("version", VERSIONS)
async def test_all_batches_from_the_offset_on_in_every_version(world: World, version: int) -> None:
    await filled(world)
    topic_id = world.broker.topics.image.topics["t"].topic_id
    response = await world.call(fetch(2, topic_id=topic_id), version)
    answer = partitions_of(response)[0]
    assert offsets_of(answer) == [2, 4]
    assert (answer.error_code, answer.high_watermark) == (0, 6)
    assert answer.aborted_transactions is None
    if version < 13:
        assert response.responses[0].topic == "t"
    else:
        assert response.responses[0].topic_id == topic_id


async def test_an_offset_inside_a_batch_gives_the_whole_batch(world: World) -> None:
    await filled(world)
    assert offsets_of(partitions_of(await world.call(fetch(3), 11))[0]) == [2, 4]


async def test_the_end_is_empty_and_beyond_it_is_out_of_range(world: World) -> None:
    await filled(world)
    at_end = partitions_of(await world.call(fetch(6), 11))[0]
    assert (at_end.error_code, at_end.records, at_end.high_watermark) == (0, b"", 6)
    for offset in (7, -5):
        beyond = partitions_of(await world.call(fetch(offset), 11))[0]
        assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (beyond.high_watermark, beyond.last_stable_offset) == (-1, -1)


async def test_the_first_batch_comes_whole_whatever_the_limits_say(world: World) -> None:
    await filled(world, partitions=2)
    response = await world.call(fetch(0, 0, partition_max_bytes=1), 11)
    answers = partitions_of(response)
    assert offsets_of(answers[0]) == [0]
    assert answers[1].records == b""
    limited = await world.call(fetch(0, 0, max_bytes=1), 11)
    assert offsets_of(partitions_of(limited)[0]) == [0]
    assert partitions_of(limited)[1].records == b""


async def test_limits_give_whole_batches(world: World) -> None:
    await filled(world, batches=5)
    size = len(partitions_of(await world.call(fetch(8), 11))[0].records)
    two = partitions_of(await world.call(fetch(0, partition_max_bytes=2 * size), 11))[0]
    assert offsets_of(two) == [0, 2]


async def test_the_request_limit_counts_over_partitions(world: World) -> None:
    await filled(world, batches=1, partitions=3)
    size = len(partitions_of(await world.call(fetch(0), 11))[0].records)
    answers = partitions_of(await world.call(fetch(0, 0, 0, max_bytes=2 * size), 11))
    assert [offsets_of(answers[index]) for index in range(3)] == [[0], [0], []]


async def test_unknown_partitions_and_ids(world: World) -> None:
    await filled(world)
    response = await world.call(fetch(0, 0), 11)
    answers = partitions_of(response)
    assert (answers[0].error_code, answers[1].error_code) == (0, 3)
    by_id = await world.call(fetch(0, topic_id=UUID(int=77)), 13)
    assert partitions_of(by_id)[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_leader_epochs_fence(world: World) -> None:
    await filled(world)
    current = world.partition().log.leader_epoch
    for epoch, code in (
        (current, 0),
        (-1, 0),
        (current + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        answer = partitions_of(await world.call(fetch(0, epoch=epoch), 11))[0]
        assert answer.error_code == code


@pytest.mark.parametrize("version", [11, 14, 15, 18])
async def test_who_says_to_be_a_replica_is_refused(world: World, version: int) -> None:
    await filled(world)
    topic_id = world.broker.topics.image.topics["t"].topic_id
    who: dict[str, Any] = (
        {"replica_id": 2} if version < 15 else {"replica_state": ReplicaState(replica_id=2)}
    )
    answer = partitions_of(await world.call(fetch(0, topic_id=topic_id, **who), version))[0]
    assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not answer.records


async def test_read_committed_says_which_transactions_were_aborted(world: World) -> None:
    await filled(world)
    answer = partitions_of(await world.call(fetch(0, isolation_level=1), 11))[0]
    assert answer.aborted_transactions == []
    assert answer.last_stable_offset == 6


async def test_a_fetch_waits_for_data_and_gets_it(world: World) -> None:
    await filled(world)
    request = fetch(6, max_wait_ms=5000)
    answer = world.begin(request, 11)
    assert isinstance(answer, Deferred)
    assert not answer.settled
    await world.produce(b"new")
    told = world.read(request, 11, await world.settled(answer))
    assert offsets_of(partitions_of(told)[0]) == [6]


async def test_a_fetch_waits_until_there_is_enough(world: World) -> None:
    await filled(world)
    request = fetch(6, max_wait_ms=5000, min_bytes=500)
    answer = world.begin(request, 11)
    await world.produce(b"z" * 100)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not answer.settled
    await world.produce(b"z" * 400)
    told = world.read(request, 11, await world.settled(answer))
    assert offsets_of(partitions_of(told)[0]) == [6, 7]


@pytest.mark.parametrize(("limit", "broker_limit"), [(1000, 57671680), (1 << 20, 1024)])
async def test_a_full_answer_does_not_wait_for_more(limit: int, broker_limit: int) -> None:
    """`min_bytes` above what one answer may have: by the request, or by the broker."""
    world = World(fetch_max_bytes=str(broker_limit))
    await filled(world, batches=20)
    answer = world.begin(fetch(0, max_wait_ms=300_000, min_bytes=2000, max_bytes=limit), 12)
    assert not isinstance(answer, Deferred)
    assert len(partitions_of(answer)[0].records) == min(limit, broker_limit)


async def test_when_the_wait_is_over_there_is_an_answer_without_data(world: World) -> None:
    await filled(world)
    request = fetch(6, max_wait_ms=10)
    answer = world.begin(request, 11)
    world.clock.advance(10)
    told = world.read(request, 11, await world.settled(answer))
    assert partitions_of(told)[0].records == b""


async def test_a_hurried_wait_ends_with_what_there_is(world: World) -> None:
    await filled(world)
    request = fetch(4, max_wait_ms=5000, min_bytes=5000)
    answer = world.begin(request, 11)
    assert not answer.settled
    answer.hurry()
    answer.hurry()
    told = world.read(request, 11, await world.settled(answer))
    assert offsets_of(partitions_of(told)[0]) == [4]
    assert len(world.broker.waiters) == 0


async def test_an_old_client_can_be_hurried_too(world: World) -> None:
    await filled(world)
    request = fetch(6, max_wait_ms=5000)
    answer = world.begin(request, 3)
    answer.hurry()
    told = world.read(request, 3, await world.settled(answer))
    assert partitions_of(told)[0].records == b""


async def test_nobody_sees_what_is_not_durable_yet(world: World) -> None:
    await world.make_topic()
    request = fetch(0, max_wait_ms=5000)
    answer = world.begin(request, 11)
    world.begin(produce_request(batch(b"a"), acks=-1), 9)
    await asyncio.sleep(0)
    assert not answer.settled
    world.commit.sync()
    told = world.read(request, 11, await world.settled(answer))
    assert offsets_of(partitions_of(told)[0]) == [0]


async def test_who_leaves_is_not_waited_for(world: World) -> None:
    await filled(world)
    answer = world.begin(fetch(6, max_wait_ms=5000), 11)
    assert len(world.broker.waiters) == 1
    answer.abandon()
    assert len(world.broker.waiters) == 0


async def test_an_error_is_told_at_once(world: World) -> None:
    await filled(world)
    answer = world.begin(fetch(6, 0, max_wait_ms=5000), 11)
    assert not isinstance(answer, Deferred)


# -- sessions


async def open_session(world: World, *offsets: int) -> int:
    response = await world.call(fetch(*offsets, session_epoch=0), 11)
    assert response.session_id > 0
    return int(response.session_id)


async def test_a_session_tells_only_what_is_new(world: World) -> None:
    await filled(world, partitions=2)
    session = await open_session(world, 6, 6)
    quiet = await world.call(fetch(session_id=session, session_epoch=1), 11)
    assert (quiet.responses, quiet.session_id) == ([], session)
    await world.produce(b"new", partition=1)
    news = await world.call(fetch(session_id=session, session_epoch=2), 11)
    assert list(partitions_of(news)) == [1]
    assert offsets_of(partitions_of(news)[1]) == [6]


async def test_a_session_follows_changes_and_forgets(world: World) -> None:
    await filled(world, partitions=2)
    session = await open_session(world, 6, 6)
    again = await world.call(fetch(0, session_id=session, session_epoch=1), 11)
    assert offsets_of(partitions_of(again)[0]) == [0, 2, 4]
    forget = [ForgottenTopic(topic="t", partitions=[0])]
    await world.produce(b"n", partition=0)
    await world.produce(b"n", partition=1)
    rest = await world.call(
        fetch(session_id=session, session_epoch=2, forgotten_topics_data=forget), 11
    )
    assert list(partitions_of(rest)) == [1]


async def test_a_session_without_partitions_ends(world: World) -> None:
    await filled(world)
    session = await open_session(world, 6)
    forget = [ForgottenTopic(topic="t", partitions=[0])]
    last = await world.call(
        fetch(session_id=session, session_epoch=1, forgotten_topics_data=forget), 11
    )
    assert (last.error_code, last.session_id, last.responses) == (0, 0, [])
    gone = await world.call(fetch(session_id=session, session_epoch=2), 11)
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("session_offset", "epoch", "code"),
    [
        (0, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
async def test_a_wrong_session_is_an_error_of_the_whole_answer(
    world: World, session_offset: int, epoch: int, code: int
) -> None:
    await filled(world)
    session = await open_session(world, 6)
    response = await world.call(fetch(session_id=session + session_offset, session_epoch=epoch), 11)
    assert (response.error_code, response.session_id, response.responses) == (code, 0, [])


async def test_a_final_epoch_ends_the_session_and_answers_in_full(world: World) -> None:
    await filled(world)
    session = await open_session(world, 6)
    last = await world.call(fetch(0, session_id=session, session_epoch=-1), 11)
    assert last.session_id == 0
    assert offsets_of(partitions_of(last)[0]) == [0, 2, 4]
    assert len(world.broker.fetch_sessions) == 0


async def test_an_error_is_told_again_and_its_end_is_news(world: World) -> None:
    await world.make_topic()
    session = await open_session(world, 0, 0)
    for epoch in (1, 2):
        response = await world.call(fetch(session_id=session, session_epoch=epoch), 11)
        assert partitions_of(response)[1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    async with world.broker.topics.changing:
        await world.broker.topics.add_partitions({"t": 2})
    well = await world.call(fetch(session_id=session, session_epoch=3), 11)
    assert partitions_of(well)[1].error_code == 0


async def test_old_versions_have_no_session(world: World) -> None:
    await filled(world)
    await world.call(fetch(0), 6)
    assert len(world.broker.fetch_sessions) == 0


async def test_bytes_out_are_counted(world: World) -> None:
    await filled(world)
    response = await world.call(fetch(0), 11)
    size = len(partitions_of(response)[0].records)
    assert world.broker.probes.topics["t"].bytes_out == size
