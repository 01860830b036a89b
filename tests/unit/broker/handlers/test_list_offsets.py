"""ListOffsets: special times by version, search by time, and what a consumer may not see yet."""

from typing import Any

import pytest

from broker.handlers.list_offsets import ANSWERED_AT_ONCE
from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import BATCH_TIME, World, batch, produce_request

NOTHING = (0, -1, -1)


async def ask(
    world: World, timestamp: int, *, version: int = 11, topic: str = "t", index: int = 0, **how: Any
) -> Any:
    """The answer for one partition."""
    query = ListOffsetsPartition(
        partition_index=index,
        timestamp=timestamp,
        current_leader_epoch=how.pop("current_leader_epoch", -1),
    )
    request = ListOffsetsRequest(
        replica_id=how.pop("replica_id", -1),
        topics=[ListOffsetsTopic(name=topic, partitions=[query])],
        **how,
    )
    response = await world.call(request, version)
    return response.topics[0].partitions[0]


def told(answer: Any) -> tuple[int, int, int]:
    return answer.error_code, answer.timestamp, answer.offset


async def filled(world: World) -> None:
    """Offsets 0..5 with times BATCH_TIME + 0, 1, 5, 6, 2, 3."""
    await world.make_topic()
    for start in (0, 5, 2):
        await world.produce(b"a", b"b", at=BATCH_TIME + start)


@pytest.mark.parametrize("version", range(1, 12))
async def test_ends_of_the_log_in_every_version(world: World, version: int) -> None:
    await filled(world)
    assert told(await ask(world, -1, version=version)) == (0, -1, 6)
    assert told(await ask(world, -2, version=version)) == (0, -1, 0)


@pytest.mark.parametrize(
    ("timestamp", "since", "expected"),
    [
        (-3, 7, (0, BATCH_TIME + 6, 3)),
        (-4, 8, (0, -1, 0)),
        (-5, 9, NOTHING),
        (-6, 11, NOTHING),
    ],
)
async def test_special_times_mean_something_from_their_version_on(
    world: World, timestamp: int, since: int, expected: tuple[int, int, int]
) -> None:
    await filled(world)
    assert told(await ask(world, timestamp, version=since)) == expected
    before = await ask(world, timestamp, version=since - 1)
    assert told(before) == (ErrorCode.UNSUPPORTED_VERSION, -1, -1)


async def test_other_negative_times_mean_nothing(world: World) -> None:
    await filled(world)
    for timestamp in (-7, -(2**63)):
        assert (await ask(world, timestamp)).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("after", "offset", "found"),
    [(0, 0, 0), (1, 1, 1), (2, 2, 5), (6, 3, 6), (7, None, None), (-10_000, 0, 0)],
)
async def test_the_first_offset_at_or_after_a_time(
    world: World, after: int, offset: int | None, found: int | None
) -> None:
    await filled(world)
    answer = told(await ask(world, BATCH_TIME + after))
    assert answer == (NOTHING if offset is None else (0, BATCH_TIME + (found or 0), offset))


async def test_an_empty_log_has_no_times(world: World) -> None:
    await world.make_topic()
    assert told(await ask(world, 0)) == NOTHING
    assert told(await ask(world, -3)) == NOTHING


async def test_what_is_not_durable_is_no_match(world: World) -> None:
    await world.make_topic()
    world.begin(produce_request(batch(b"a"), acks=-1), 9)
    assert told(await ask(world, BATCH_TIME)) == NOTHING
    assert told(await ask(world, -1)) == (0, -1, 0)
    assert told(await ask(world, -1, replica_id=-2)) == (0, -1, 1)
    world.commit.sync()
    assert told(await ask(world, BATCH_TIME)) == (0, BATCH_TIME, 0)


async def test_deleted_records_are_no_match(world: World) -> None:
    await filled(world)
    world.partition().log.delete_records(1)
    assert told(await ask(world, -2)) == (0, -1, 1)
    assert told(await ask(world, BATCH_TIME)) == (0, BATCH_TIME + 1, 1)


async def test_both_isolation_levels_agree_without_transactions(world: World) -> None:
    await filled(world)
    assert told(await ask(world, -1, isolation_level=1)) == (0, -1, 6)


async def test_leader_epochs(world: World) -> None:
    await filled(world)
    epoch = world.partition().log.leader_epoch
    assert (await ask(world, -1)).leader_epoch == epoch
    assert (await ask(world, BATCH_TIME)).leader_epoch == epoch
    newer = await ask(world, -1, current_leader_epoch=epoch + 1)
    assert told(newer) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)


async def test_unknown_topics_and_partitions(world: World) -> None:
    await filled(world)
    for where in ({"topic": "nope"}, {"index": 1}):
        answer = await ask(world, -1, **where)
        assert told(answer) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


async def test_a_partition_asked_for_twice_is_refused_and_the_others_are_not(world: World) -> None:
    await world.make_topic(partitions=2)
    queries = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1, 0)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=queries)]
    )
    response = await world.call(request, 5)
    codes = {each.partition_index: each.error_code for each in response.topics[0].partitions}
    assert codes == {0: ErrorCode.INVALID_REQUEST, 1: 0}
    assert len(response.topics[0].partitions) == 2


async def test_a_damaged_batch_is_not_served_as_an_answer(world: World) -> None:
    await filled(world)
    file = world.fs.open("/data/t-0/00000000000000000000.log")
    file.write_at(70, b"\xff\xff\xff")
    answer = await ask(world, BATCH_TIME + 1)
    assert told(answer) == (ErrorCode.CORRUPT_MESSAGE, -1, -1)


IN_2055 = 2_682_374_400_000


async def dirty(world: World, **configs: str) -> None:
    """A zone with a record of 2055, then one of now."""
    await world.make_topic(
        message_timestamp_after_max_ms=str(2**63 - 1), horolog_zone_bytes="4096", **configs
    )
    await world.produce(bytes(5000), at=IN_2055)
    world.clock.advance(1000)
    await world.produce(b"now", at=BATCH_TIME + 900)


async def set_clock(world: World, clock: str) -> None:
    setting = AlterableConfig(name="horolog.search.clock", config_operation=0, value=clock)
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[setting])
    response = await world.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert response.responses[0].error_code == 0


async def test_the_clock_of_the_search_is_the_topics_and_changes_at_once(world: World) -> None:
    await dirty(world)
    assert told(await ask(world, BATCH_TIME + 500)) == (0, IN_2055, 0)
    await set_clock(world, "earlier")
    assert told(await ask(world, BATCH_TIME + 500)) == (0, BATCH_TIME + 900, 1)
    await set_clock(world, "arrival")
    assert told(await ask(world, BATCH_TIME + 500)) == (0, BATCH_TIME + 1000, 1)
    assert told(await ask(world, BATCH_TIME)) == (0, BATCH_TIME, 0)
    assert told(await ask(world, BATCH_TIME + 1001)) == NOTHING
    await set_clock(world, "record")
    assert told(await ask(world, BATCH_TIME + 500)) == (0, IN_2055, 0)


@pytest.mark.parametrize("clock", ["arrival", "earlier"])
async def test_the_largest_time_is_the_records_whatever_the_clock(world: World, clock: str) -> None:
    await dirty(world, horolog_search_clock=clock)
    assert told(await ask(world, -3)) == (0, IN_2055, 0)


@pytest.mark.parametrize("timestamp", [BATCH_TIME + 1, -3])
async def test_what_is_in_memory_is_answered_without_a_lane(world: World, timestamp: int) -> None:
    await filled(world)
    world.lanes.held = True
    assert (await ask(world, timestamp)).offset in {1, 3}
    assert not world.lanes.waiting


async def test_what_is_on_the_disk_only_is_fetched_by_a_lane(world: World) -> None:
    await filled(world)
    world.fs.cold_paths.add("/data/t-0/00000000000000000000.log")
    world.lanes.held = True
    query = ListOffsetsPartition(partition_index=0, timestamp=BATCH_TIME + 1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[query])]
    )
    answer = world.begin(request, 7)
    assert len(world.lanes.waiting) == 1
    world.lanes.release()
    response = world.read(request, 7, await world.settled(answer))
    assert told(response.topics[0].partitions[0]) == (0, BATCH_TIME + 1, 1)


async def test_a_request_for_many_partitions_does_not_hold_the_loop(world: World) -> None:
    await world.make_topic(partitions=40)
    for index in range(40):
        await world.produce(b"a", partition=index)
    world.lanes.held = True
    queries = [ListOffsetsPartition(partition_index=n, timestamp=BATCH_TIME) for n in range(40)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=queries)]
    )
    answer = world.begin(request, 7)
    assert len(world.lanes.waiting) == 40 - ANSWERED_AT_ONCE
    while world.lanes.waiting:
        world.lanes.release()
    response = world.read(request, 7, await world.settled(answer))
    assert [told(each) for each in response.topics[0].partitions] == [(0, BATCH_TIME, 0)] * 40
