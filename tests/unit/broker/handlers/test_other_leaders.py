"""Partitions that another node leads: answers say which one, and nothing is stored here."""

import asyncio
from typing import Any

import pytest

from broker.partitions.leadership import NOBODY, Leadership
from broker.runtime.endpoint import Endpoint
from protocol.apis import (
    delete_records,
    describe_cluster,
    describe_producers,
    describe_topic_partitions,
    fetch,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
)
from protocol.errors import ErrorCode as E
from protocol.records.markers import COMMIT, Marker, build_marker
from storage.validation.internal_batch import own_batch
from tests.support.fleet.hand_lease import HandLease
from tests.support.worlds.handler_world import World

HERE, THERE = 1, 2
ADDRESS = Endpoint("other.test", 9093)


@pytest.fixture
async def world() -> World:
    world = World()
    world.broker.endpoints.others = {THERE: ADDRESS}
    await world.make_topic()
    await world.produce(b"a", b"b")
    return world


def led(world: World, node_id: int, epoch: int) -> None:
    world.partition().led_by(Leadership(node_id, epoch, node_id == HERE))


async def read(world: World, *, epoch: int = -1, offset: int = 0, wait_ms: int = 0) -> Any:
    """The partition's answer, and the whole one."""
    wanted = fetch.FetchPartition(
        partition=0, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    topic = fetch.FetchTopic(topic_id=world.broker.topics.image.topics["t"].topic_id)
    topic.partitions = [wanted]
    request = fetch.FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20, topics=[topic]
    )
    answer = await world.call(request, 16)
    return answer.responses[0].partitions[0], answer


async def test_a_write_is_refused_and_names_the_leader(world: World) -> None:
    led(world, THERE, 7)
    answer = await world.produce(b"c")
    assert answer.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert "node 2 leads it" in answer.error_message
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (THERE, 7)
    assert world.partition().log.snapshot.log_end_offset == 2


async def test_a_write_that_waited_for_its_turn_is_refused_too(world: World) -> None:
    world.lanes.held = True
    world.partition().writer.in_turn(lambda: None)
    waiting = asyncio.ensure_future(world.produce(b"c"))
    await asyncio.sleep(0)
    led(world, THERE, 7)
    world.lanes.release()
    assert (await waiting).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert world.partition().log.snapshot.log_end_offset == 2


async def test_batches_are_of_the_leaders_epoch(world: World) -> None:
    led(world, HERE, 7)
    assert (await world.produce(b"c")).base_offset == 2
    assert [each.epoch for each in world.partition().log.epochs.entries] == [0, 7]


async def test_a_batch_behind_refused_ones_is_sent_again_with_them(world: World) -> None:
    """An error about sequences would have a producer begin a new epoch, with what is stored."""
    now = world.clock.monotonic()
    world.partition().led_by(Leadership(HERE, 7, is_here=True, gained_at=now))
    of = {"producer_id": 9, "producer_epoch": 0}
    assert (await world.produce(b"a", base_sequence=0, **of)).error_code == 0
    skips = await world.produce(b"c", base_sequence=2, **of)
    assert skips.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert "batches before this one are missing" in skips.error_message
    assert (await world.produce(b"b", base_sequence=1, **of)).error_code == 0
    assert (await world.produce(b"c", base_sequence=2, **of)).error_code == 0
    world.clock.advance(10_000)
    lost = await world.produce(b"e", base_sequence=4, **of)
    assert lost.error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_a_read_is_refused_and_names_the_leader(world: World) -> None:
    led(world, THERE, 7)
    part, whole = await read(world)
    assert part.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (THERE, 7)
    [endpoint] = whole.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (THERE, *ADDRESS)


async def test_a_write_is_refused_where_another_may_lead(world: World) -> None:
    lease = HandLease()
    world.partition().led_by(Leadership(HERE, 7, is_here=True, lease=lease))
    of = {"producer_id": 9, "producer_epoch": 0}
    assert (await world.produce(b"a", base_sequence=0, **of)).error_code == 0
    lease.is_held = False
    assert (await world.produce(b"b", base_sequence=1, **of)).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert world.partition().log.snapshot.log_end_offset == 3
    lease.is_held, lease.held_since = True, world.clock.monotonic()
    skips = await world.produce(b"c", base_sequence=2, **of)
    assert skips.error_code == E.NOT_LEADER_OR_FOLLOWER, "its predecessor was refused"
    assert (await world.produce(b"b", base_sequence=1, **of)).error_code == 0
    assert (await world.produce(b"c", base_sequence=2, **of)).error_code == 0


async def test_records_of_clients_are_refused_without_room_and_all_else_goes_on(
    world: World,
) -> None:
    lease = HandLease()
    world.partition().led_by(Leadership(HERE, 7, is_here=True, lease=lease))
    of = {"producer_id": 9, "producer_epoch": 0}
    assert (await world.produce(b"a", base_sequence=0, **of)).error_code == 0
    lease.has_room = False
    refused = await world.produce(b"b", base_sequence=1, **of)
    assert refused.error_code == E.NOT_ENOUGH_REPLICAS
    assert "horolog.fleet.rows.max.bytes" in refused.error_message
    assert world.partition().log.snapshot.log_end_offset == 3
    assert (await read(world, offset=1))[0].error_code == 0
    marker = build_marker(Marker(COMMIT, 0), 9, 0, world.clock.now_ms())
    world.partition().writer.append_own(own_batch(marker, world.clock.now_ms()), 1)
    assert world.partition().log.snapshot.log_end_offset == 4
    lease.has_room, lease.held_since = True, world.clock.monotonic()
    skips = await world.produce(b"c", base_sequence=2, **of)
    assert skips.error_code == E.NOT_LEADER_OR_FOLLOWER, "its predecessor was refused"
    assert (await world.produce(b"b", base_sequence=1, **of)).error_code == 0


async def test_an_offset_behind_the_end_is_not_out_of_range_where_another_may_lead(
    world: World,
) -> None:
    """A consumer that hears of its range goes back to the beginning, and reads all twice."""
    lease = HandLease()
    world.partition().led_by(Leadership(HERE, 7, is_here=True, lease=lease))
    assert (await read(world, offset=3))[0].error_code == E.OFFSET_OUT_OF_RANGE
    lease.is_held = False
    assert (await read(world, offset=3))[0].error_code == E.NOT_LEADER_OR_FOLLOWER
    assert (await read(world, offset=-2))[0].error_code == E.OFFSET_OUT_OF_RANGE
    assert (await read(world, offset=1))[0].error_code == 0, "what is committed stays so"


async def test_a_client_that_knows_another_epoch_hears_of_that_first(world: World) -> None:
    led(world, THERE, 7)
    assert (await read(world, epoch=6))[0].error_code == E.FENCED_LEADER_EPOCH
    assert (await read(world, epoch=8))[0].error_code == E.UNKNOWN_LEADER_EPOCH
    assert (await read(world, epoch=7))[0].error_code == E.NOT_LEADER_OR_FOLLOWER


async def test_a_read_that_waits_is_answered_when_another_leads(world: World) -> None:
    led(world, HERE, 7)
    waiting = asyncio.ensure_future(read(world, offset=2, wait_ms=60_000))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    led(world, THERE, 8)
    part, _ = await asyncio.wait_for(waiting, 5)
    assert part.error_code == E.NOT_LEADER_OR_FOLLOWER


async def test_a_node_that_has_just_gone_is_in_metadata_and_not_described(world: World) -> None:
    """A client of librdkafka would forget it, and wait for what it had cached of it."""
    world.broker.endpoints.others, world.broker.endpoints.gone = {}, {THERE: ADDRESS}
    shown = await world.call(metadata.MetadataRequest(topics=[]), 12)
    assert {each.node_id: each.host for each in shown.brokers}[THERE] == ADDRESS.host
    described = await world.call(describe_cluster.DescribeClusterRequest(), 1)
    assert [each.broker_id for each in described.brokers] == [HERE]


async def test_metadata_shows_all_nodes_and_each_leader(world: World) -> None:
    async def shown() -> Any:
        return await world.call(metadata.MetadataRequest(topics=None), 12)

    led(world, THERE, 7)
    answer = await shown()
    nodes = {each.node_id: (each.host, each.port) for each in answer.brokers}
    assert nodes == {HERE: ("broker.test", 9092), THERE: tuple(ADDRESS)}
    [part] = answer.topics[0].partitions
    assert (part.error_code, part.leader_id, part.leader_epoch) == (0, THERE, 7)
    assert (part.replica_nodes, part.isr_nodes) == ([THERE], [THERE])
    led(world, NOBODY, 8)
    [part] = (await shown()).topics[0].partitions
    assert (part.error_code, part.leader_id) == (E.LEADER_NOT_AVAILABLE, NOBODY)


async def test_other_descriptions_agree_with_it(world: World) -> None:
    led(world, THERE, 7)
    topic = describe_topic_partitions.TopicRequest(name="t")
    request = describe_topic_partitions.DescribeTopicPartitionsRequest(topics=[topic])
    [part] = (await world.call(request, 0)).topics[0].partitions
    assert (part.leader_id, part.leader_epoch, part.isr_nodes) == (THERE, 7, [THERE])
    cluster = await world.call(describe_cluster.DescribeClusterRequest(), 1)
    assert sorted(each.broker_id for each in cluster.brokers) == [HERE, THERE]


async def test_every_other_question_about_the_partition_is_refused(world: World) -> None:
    led(world, THERE, 7)
    asked = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [list_offsets.ListOffsetsTopic(name="t", partitions=[asked])]
    offsets = await world.call(list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics), 7)
    assert offsets.topics[0].partitions[0].error_code == E.NOT_LEADER_OR_FOLLOWER

    query = offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    leaders = [offset_for_leader_epoch.OffsetForLeaderTopic(topic="t", partitions=[query])]
    request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=leaders)
    epochs = await world.call(request, 4)
    assert epochs.topics[0].partitions[0].error_code == E.NOT_LEADER_OR_FOLLOWER

    place = delete_records.DeleteRecordsPartition(partition_index=0, offset=1)
    gone = [delete_records.DeleteRecordsTopic(name="t", partitions=[place])]
    deleted = await world.call(delete_records.DeleteRecordsRequest(topics=gone), 2)
    assert deleted.topics[0].partitions[0].error_code == E.NOT_LEADER_OR_FOLLOWER
    assert world.partition().log.snapshot.log_start_offset == 0

    places = [describe_producers.TopicRequest(name="t", partition_indexes=[0])]
    producers = await world.call(describe_producers.DescribeProducersRequest(topics=places), 0)
    assert producers.topics[0].partitions[0].error_code == E.NOT_LEADER_OR_FOLLOWER


async def test_all_is_served_once_it_is_led_here(world: World) -> None:
    led(world, THERE, 7)
    led(world, HERE, 8)
    assert (await world.produce(b"c")).error_code == 0
    assert (await read(world, epoch=8))[0].error_code == 0
    asked = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [list_offsets.ListOffsetsTopic(name="t", partitions=[asked])]
    answer = await world.call(list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics), 7)
    [part] = answer.topics[0].partitions
    assert (part.offset, part.leader_epoch) == (3, 8)


async def test_copies_are_the_affair_of_the_fleets_engines(world: World) -> None:
    """A topic that came from a cluster of three keeps its settings, and takes writes."""
    await world.make_topic("three", min_insync_replicas="2", horolog_durability="os")
    assert (await world.produce(b"a", acks=-1, topic="three")).error_code == E.NOT_ENOUGH_REPLICAS
    world.partition("three").led_by(Leadership(HERE, 1, is_here=True))
    assert (await world.produce(b"a", acks=-1, topic="three")).error_code == E.NONE
