"""Produce: what is accepted, what is refused with which code, and when the answer comes."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.runtime.connection_limits import CloseConnection
from broker.runtime.deferred import Deferred
from broker.runtime.principals import Principal
from broker.security.acl import Acl
from broker.security.acl_book import AclBook
from broker.security.authority import Authority
from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType
from protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.errors import ErrorCode
from protocol.records.compression import Codec
from tests.support.histories.history_batches import misnumbered
from tests.support.worlds.handler_world import BATCH_TIME, World, batch, produce_request

VERSIONS = range(3, 14)


def only(response: Any) -> Any:
    """The one partition of a response."""
    return response.responses[0].partition_responses[0]


def for_version(request: ProduceRequest, version: int, world: World) -> ProduceRequest:
    """Topic ids in place of names where the version wants them."""
    if version >= 13:
        for topic in request.topic_data:
            found = world.broker.topics.image.topics.get(topic.name)
            topic.topic_id = found.topic_id if found is not None else topic.topic_id
    return request


@pytest.mark.parametrize("version", VERSIONS)
async def test_offsets_follow_one_another_in_every_version(world: World, version: int) -> None:
    await world.make_topic()
    for expected in (0, 2, 4):
        request = for_version(produce_request(batch(b"a", b"b")), version, world)
        answer = only(await world.call(request, version))
        assert (answer.error_code, answer.base_offset) == (0, expected)
        assert answer.log_append_time_ms == -1


@pytest.mark.parametrize("acks", [-2, 2, 7, 32767])
async def test_impossible_acks(world: World, acks: int) -> None:
    await world.make_topic()
    answer = await world.produce(b"a", acks=acks)
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert world.partition().log.snapshot.log_end_offset == 0


async def test_unknown_names_and_partitions(world: World) -> None:
    await world.make_topic()
    for where in ({"topic": "nope"}, {"partition": 1}, {"partition": -1}):
        answer = await world.produce(b"a", **where)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (answer.base_offset, answer.log_start_offset) == (-1, -1)


async def test_an_unknown_topic_id(world: World) -> None:
    request = produce_request(batch(b"a"))
    request.topic_data[0].topic_id = world.env.rng.uuid()
    assert only(await world.call(request, 13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("records", [None, b""])
async def test_no_records_are_answered(world: World, records: bytes | None) -> None:
    await world.make_topic()
    answer = only(await world.call(produce_request(records), 8))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert answer.error_message


async def test_zstd_is_for_versions_that_know_it(world: World) -> None:
    await world.make_topic()
    records = batch(b"a" * 50, codec=Codec.ZSTD)
    assert only(await world.call(produce_request(records), 6)).error_code == (
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    )
    assert only(await world.call(produce_request(records), 7)).error_code == 0
    for cut in (records[:-1], records[:30]):
        answer = only(await world.call(produce_request(cut), 6))
        assert answer.error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda records: records[:40], ErrorCode.INVALID_RECORD),
        (lambda records: records[:-1], ErrorCode.INVALID_RECORD),
        (lambda records: records[:-1] + b"\xff", ErrorCode.CORRUPT_MESSAGE),
        (lambda records: records + records, ErrorCode.INVALID_RECORD),
    ],
)
async def test_damaged_batches(world: World, damage: Any, code: int) -> None:
    await world.make_topic()
    answer = only(await world.call(produce_request(damage(batch(b"abc"))), 12))
    assert answer.error_code == code
    assert world.partition().log.snapshot.log_end_offset == 0


async def test_a_wild_offset_in_a_plain_batch_is_refused_and_named(world: World) -> None:
    """Stored, it would make a search by time answer -1 and hand consumers an offset of nowhere."""
    await world.make_topic()
    rows = [(BATCH_TIME, b"k", b"v")] * 3
    wild = bytes(misnumbered(rows, [0, 5_000_000, 2], Codec.NONE))
    answer = only(await world.call(produce_request(wild), 12))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [1]
    assert "offset" in answer.record_errors[0].batch_index_error_message
    assert world.partition().log.snapshot.log_end_offset == 0


async def test_a_batch_of_a_transaction_needs_one(world: World) -> None:
    await world.make_topic()
    inside = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    answer = only(await world.call(produce_request(inside), 8))
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    inside = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    answer = only(await world.call(produce_request(inside, transactional_id="x"), 8))
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    answer = only(await world.call(produce_request(batch(b"a"), transactional_id="x"), 8))
    assert answer.error_code == 0


async def test_min_insync_replicas_above_one_refuses_acks_all_alone(world: World) -> None:
    await world.make_topic(min_insync_replicas="2")
    assert (await world.produce(b"a", acks=-1)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert (await world.produce(b"a", acks=1)).error_code == 0


async def test_a_batch_over_the_limit(world: World) -> None:
    await world.make_topic(max_message_bytes="200")
    answer = await world.produce(b"x" * 300)
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_every_bad_record_is_listed(world: World) -> None:
    await world.make_topic(message_timestamp_after_max_ms="1000")
    now = world.clock.now_ms()
    answer = await world.produce(b"good", b"bad", b"worse", at=now, step=100_000)
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in answer.record_errors] == [1, 2]
    assert answer.error_message == "One or more records have been rejected due to invalid timestamp"
    assert (answer.base_offset, answer.log_start_offset) == (-1, 0)


async def test_log_append_time_is_told(world: World) -> None:
    await world.make_topic(message_timestamp_type="LogAppendTime")
    answer = await world.produce(b"a", at=5)
    assert answer.log_append_time_ms == world.clock.now_ms()


async def test_a_repeated_batch_gets_its_old_offset(world: World) -> None:
    await world.make_topic()
    who = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    first = await world.produce(b"a", b"b", **who)
    again = await world.produce(b"a", b"b", **who)
    assert (first.base_offset, again.base_offset, again.error_code) == (0, 0, 0)
    assert again.log_append_time_ms == BATCH_TIME + 1
    assert world.partition().log.snapshot.log_end_offset == 2
    gap = await world.produce(b"c", **{**who, "base_sequence": 9})
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_several_partitions_are_answered_in_the_order_asked(world: World) -> None:
    await world.make_topic("a", partitions=2)
    await world.make_topic("b")
    asked = [("a", 1), ("a", 5), ("b", 0)]
    request = ProduceRequest(
        acks=1,
        topic_data=[
            TopicProduceData(
                name=name,
                partition_data=[PartitionProduceData(index=index, records=batch(b"v"))],
            )
            for name, index in asked
        ],
    )
    response = await world.call(request, 9)
    told = [
        (topic.name, each.index, each.error_code)
        for topic in response.responses
        for each in topic.partition_responses
    ]
    assert told == [("a", 1, 0), ("a", 5, 3), ("b", 0, 0)]


async def test_acks_zero_has_no_answer_and_an_error_closes(world: World) -> None:
    await world.make_topic()
    assert world.begin(produce_request(batch(b"a"), acks=0), 9) is None
    assert world.partition().log.snapshot.log_end_offset == 1
    with pytest.raises(CloseConnection) as closed:
        world.begin(produce_request(batch(b"a"), topic="nope", acks=0), 9)
    assert closed.value.reason == "acks_zero_error"


async def test_acks_all_is_answered_after_the_fsync_and_not_seen_before(world: World) -> None:
    await world.make_topic()
    request = produce_request(batch(b"a"), acks=-1)
    answer = world.begin(request, 9)
    assert isinstance(answer, Deferred)
    assert not answer.settled
    assert world.partition().log.snapshot.high_watermark == 0
    assert await latest(world) == 0
    world.commit.sync()
    assert only(world.read(request, 9, await world.settled(answer))).base_offset == 0
    assert await latest(world) == 1


async def test_a_failed_fsync_is_a_storage_error_for_the_producer(world: World) -> None:
    await world.make_topic()
    request = produce_request(batch(b"a"), acks=-1)
    answer = world.begin(request, 9)
    world.commit.fail()
    told = only(world.read(request, 9, await world.settled(answer)))
    assert told.error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("durability", ["interval", "os"])
async def test_acks_all_does_not_wait_where_the_topic_says_so(
    world: World, durability: str
) -> None:
    await world.make_topic(horolog_durability=durability)
    assert (await world.produce(b"a", acks=-1)).error_code == 0
    assert not world.commit.requested
    assert world.commit.told[0][2] is (durability == "interval")


async def test_acks_one_waits_where_the_topic_promises_fsync(world: World) -> None:
    await world.make_topic(horolog_durability="fsync")
    answer = world.begin(produce_request(batch(b"a"), acks=1), 9)
    assert isinstance(answer, Deferred)
    world.commit.sync()
    assert answer.settled


async def test_a_repeated_batch_waits_for_the_disk_like_the_first(world: World) -> None:
    await world.make_topic()
    who = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    answers = [world.begin(produce_request(batch(b"a", **who), acks=-1), 9) for _ in range(2)]
    assert [answer.settled for answer in answers] == [False, False]
    world.commit.sync()
    assert [answer.settled for answer in answers] == [True, True]


async def test_a_large_compressed_batch_goes_to_a_lane_and_keeps_its_place(world: World) -> None:
    await world.make_topic()
    world.lanes.held = True
    noise = [world.env.rng.uint64().to_bytes(8, "big") * 2 for _ in range(8000)]
    large = world.begin(produce_request(batch(*noise, codec=Codec.GZIP)), 9)
    small = world.begin(produce_request(batch(b"after")), 9)
    assert isinstance(large, Deferred)
    assert isinstance(small, Deferred)
    world.lanes.held = False
    world.lanes.release()
    first, second = [only(await world.settled(each)) for each in (large, small)]
    assert (first.base_offset, second.base_offset) == (0, 8000)
    assert (await world.produce(b"inline")).base_offset == 8001


async def test_a_disk_that_refuses_is_a_storage_error(world: World) -> None:
    await world.make_topic()
    world.fs.inject("write", times=100)
    assert (await world.produce(b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_traffic_is_counted(world: World) -> None:
    await world.make_topic()
    await world.produce(b"a", b"b")
    await world.produce(b"a", acks=7)
    traffic = world.broker.probes.topics["t"]
    assert (traffic.records_in, traffic.batches_in) == (2, 1)
    assert world.broker.probes.errors[0, ErrorCode.INVALID_REQUIRED_ACKS] == 1


async def latest(world: World) -> int:
    """The latest offset that a consumer is told."""
    query = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = ListOffsetsTopic(name="t", partitions=[query])
    response = await world.call(ListOffsetsRequest(replica_id=-1, topics=[topic]), 5)
    return response.topics[0].partitions[0].offset


USER, ALICE, WRITE = "User:mallory", "User:alice", AclOperation.WRITE
ALLOWED_BUT_ONE = (
    Acl(ResourceType.TOPIC, PatternType.LITERAL, "*", USER, "*", WRITE, AclPermission.ALLOW),
    Acl(ResourceType.TOPIC, PatternType.LITERAL, "t", USER, "*", WRITE, AclPermission.DENY),
)
ANOTHERS = (
    Acl(
        ResourceType.TOPIC, PatternType.LITERAL, "t", "User:alice", "*", WRITE, AclPermission.ALLOW
    ),
)


@pytest.mark.parametrize(("entries", "by_default"), [(ALLOWED_BUT_ONE, False), (ANOTHERS, True)])
async def test_a_right_to_write_to_a_name_is_none_to_write_to_an_id(
    entries: tuple[Acl, ...], by_default: bool, world: World
) -> None:
    """From version 13 on requests have ids, and no names."""
    settings = SimpleNamespace(
        authorizer_class_name="x", super_users=(), allow_everyone_if_no_acl_found=by_default
    )
    trail = SimpleNamespace(denied=lambda *_: None)
    authority = Authority(None, None, SimpleNamespace(broker_config=settings), trail)  # type: ignore[arg-type]
    authority.book = AclBook(entries)
    await world.make_topic()
    world.rights = authority.rights_of(Principal("User", "mallory"), "127.0.0.1")
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for _ in range(2):
        by_id = for_version(produce_request(batch(b"v")), 13, world)
        assert only(await world.call(by_id, 13)).error_code == refused
        nameless = only(await world.call(produce_request(batch(b"v"), topic=""), 9))
        assert nameless.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert only(await world.call(produce_request(batch(b"v")), 9)).error_code == refused
