"""horolog.timestamp.policy on the wire: answers, quarantine, order of writes, who is told of."""

import asyncio
from typing import Any

import pytest

from broker.runtime.deferred import Deferred
from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.errors import ErrorCode
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.old_formats.legacy_builder import build_message
from protocol.records.record import Record
from storage.validation.batch_rules import TIMESTAMP_SUMMARY
from tests.support.records.logs import make_durable, records_of
from tests.support.worlds.handler_world import World, produce_request

HOUR, DAY = 3_600_000, 86_400_000
BOUNDS = {"message_timestamp_before_max_ms": str(DAY), "message_timestamp_after_max_ms": str(HOUR)}
POLICIES = ("reject", "accept", "clamp", "restamp", "quarantine")


async def made(world: World, policy: str, name: str = "t", **configs: str) -> None:
    await world.make_topic(name, horolog_timestamp_policy=policy, **BOUNDS, **configs)


def now(world: World) -> int:
    return world.clock.now_ms()


def times_of(world: World) -> list[int]:
    return [now(world), now(world) * 1000, now(world) // 1000]


def sent(times: list[int], **how: Any) -> bytearray:
    value = how.pop("value", b"v")
    return build_batch([(at, b"k", value) for at in times], **how)


async def produce(
    world: World, batch: Any, *, version: int = 12, acks: int = 1, topic: str = "t"
) -> Any:
    request = produce_request(batch, topic=topic, acks=acks)
    response = await world.call(request, version)
    return response.responses[0].partition_responses[0]


def stored(world: World, topic: str = "t", index: int = 0) -> list[Record]:
    log = world.partition(topic, index).log
    make_durable(log)
    return records_of(log)


def dirty(world: World) -> dict[tuple[str, ...], int]:
    return dict(world.broker.probes.dirty)


def clients(world: World) -> list[dict[str, Any]]:
    return world.broker.dirty_clients.report()["clients"]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("policy", POLICIES)
async def test_each_policy_answers_counts_and_attributes(
    world: World, policy: str, codec: Codec
) -> None:
    await made(world, policy)
    answer = await produce(world, sent(times_of(world), codec=codec))
    action = {"clamp": "clamped", "restamp": "restamped"}.get(policy, policy + "ed")
    action = {"quarantineed": "quarantined"}.get(action, action)
    assert dirty(world) == {
        ("t", "future", "microseconds", action): 1,
        ("t", "past", "seconds", action): 1,
    }
    first, second = sorted(clients(world), key=lambda each: each["direction"])
    assert (first["client_id"], first["address"]) == ("test", "10.0.0.9")
    assert (first["principal"], first["topic"], first["partition"]) == ("User:ANONYMOUS", "t", 0)
    assert (first["action"], first["count"]) == (action, 1)
    assert first["worst_skew_ms"] == now(world) - now(world) * 1000 < 0 < second["worst_skew_ms"]
    if policy == "reject":
        assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_TIMESTAMP, -1)
        assert first["first_offset"] is None
    else:
        assert (answer.error_code, answer.base_offset) == (0, 0)
        expected = None if policy == "quarantine" else 1
        assert first["first_offset"] == first["worst_offset"] == expected
        count = 1 if policy == "quarantine" else 3
        assert len(stored(world)) == count
        assert world.broker.probes.topics["t"].records_in == count


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
async def test_every_refused_record_is_named_with_its_unit(world: World, version: int) -> None:
    await made(world, "reject")
    at = now(world)
    units = {
        at // 1000: "looks like seconds",
        at * 1000: "looks like microseconds",
        at * 10**6: "looks like nanoseconds",
        (at + 11_644_473_600_000) * 10_000: "looks like a Windows FILETIME",
        0: "zero",
        -7: "negative",
        at + DAY: "",
    }
    answer = await produce(world, sent([at, *units, at]), version=version)
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    if version < 8:
        return
    assert answer.error_message == TIMESTAMP_SUMMARY
    errors = answer.record_errors
    assert [each.batch_index for each in errors] == list(range(1, 8))
    for each, (time, hint) in zip(errors, units.items(), strict=True):
        text = each.batch_index_error_message
        assert f"Timestamp {time} is " in text
        assert (f"before {at - DAY}" if time < at else f"after {at + HOUR}") in text
        assert hint in text


async def test_a_hundred_thousand_refused_records_are_named_and_all_counted(world: World) -> None:
    await made(world, "reject", max_message_bytes="10000000")
    answer = await produce(world, sent([0] * 130_000, value=b""))
    assert len(answer.record_errors) == 100_000
    assert answer.record_errors[99_999].batch_index == 99_999
    assert dirty(world) == {("t", "past", "zero", "rejected"): 130_000}


async def test_the_quarantine_is_made_bounded_and_dated_by_the_broker(world: World) -> None:
    await made(world, "quarantine")
    await produce(world, sent(times_of(world)))
    config = world.partition("t.quarantine").log.config
    assert config.message_timestamp_type == "LogAppendTime"
    assert 0 < config.retention_bytes <= 2**30
    assert config.retention_ms == 7 * DAY
    assert config.horolog_timestamp_policy == "accept"
    aside = stored(world, "t.quarantine")
    assert [record.timestamp for record in aside] == [now(world)] * 2
    assert [dict(record.headers)["horolog.reason"] for record in aside] == [
        b"future: microseconds",
        b"past: seconds",
    ]
    assert dict(aside[0].headers)["horolog.client.id"] == b"test"
    assert dict(aside[0].headers)["horolog.client.address"] == b"10.0.0.9"
    assert [record.offset for record in stored(world)] == [0]
    assert world.broker.probes.topics["t.quarantine"].records_in == 2


async def test_a_quarantine_of_ones_own_choice(world: World) -> None:
    await world.make_topic("bad-times", partitions=2)
    await world.make_topic(
        "t", partitions=5, horolog_timestamp_policy="quarantine",
        horolog_quarantine_topic="bad-times", **BOUNDS,
    )  # fmt: skip
    await world.produce(b"v", partition=3, at=5)
    assert len(stored(world, "bad-times", 1)) == 1
    assert stored(world, "bad-times", 0) == stored(world, "t", 3) == []
    assert "t.quarantine" not in world.broker.topics.image.topics


async def test_the_quarantine_is_durable_before_the_rest_is_written(world: World) -> None:
    await made(world, "quarantine")
    await produce(world, sent(times_of(world)))  # makes the topic
    before = world.partition().log.snapshot.log_end_offset
    answer = world.begin(produce_request(sent(times_of(world)), acks=-1), 12)
    assert isinstance(answer, Deferred)
    assert world.partition("t.quarantine").log.snapshot.log_end_offset == 4
    assert world.partition().log.snapshot.log_end_offset == before
    world.commit.sync()
    assert world.partition("t.quarantine").log.durable_offset == 4
    assert world.partition().log.snapshot.log_end_offset == before + 3
    assert not answer.settled
    world.commit.sync()
    assert answer.settled


async def test_batches_behind_one_that_waits_keep_their_order(world: World) -> None:
    await made(world, "quarantine")
    how: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0}
    batches = [
        sent(times_of(world), base_sequence=0, **how),
        sent([now(world)], base_sequence=3, **how),
        sent([0, 1], base_sequence=4, **how),
        sent([now(world)], base_sequence=6, **how),
    ]
    answers = [world.begin(produce_request(batch, acks=-1), 12) for batch in batches]
    while not all(answer.settled for answer in answers):
        await asyncio.sleep(0)
        world.commit.sync()
    offsets = []
    for answer in answers:
        response = (await world.settled(answer)).responses[0].partition_responses[0]
        offsets.append((response.error_code, response.base_offset))
    assert offsets == [(0, 0), (0, 3), (0, 4), (0, 6)]
    assert [record.offset for record in stored(world)] == [0, 3, 6]
    assert len(stored(world, "t.quarantine")) == 4


@pytest.mark.parametrize("policy", POLICIES[1:])
async def test_a_retry_is_neither_stored_nor_counted_nor_set_aside_again(
    world: World, policy: str
) -> None:
    await made(world, policy)
    how: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    first = await produce(world, sent(times_of(world), **how))
    again = await produce(world, sent(times_of(world), **how))
    assert (again.error_code, again.base_offset) == (0, first.base_offset) == (0, 0)
    assert sum(dirty(world).values()) == 2
    assert world.partition().log.snapshot.log_end_offset == 3
    if policy == "quarantine":
        assert len(stored(world, "t.quarantine")) == 2


async def test_a_crash_between_the_two_writes_loses_nothing(world: World) -> None:
    """The producer was not answered and sends again: twice in the quarantine, once in the topic."""
    await made(world, "quarantine")
    await produce(world, sent(times_of(world)))
    how: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    world.begin(produce_request(sent(times_of(world), **how), acks=-1), 12)
    log = world.partition("t.quarantine").log
    log.mark_durable(log.sync())
    after = world.restarted()
    assert after.partition().log.snapshot.log_end_offset == 3
    answer = await produce(after, sent(times_of(after), **how))
    assert (answer.error_code, answer.base_offset) == (0, 3)
    assert len(stored(after, "t.quarantine")) == 6
    assert [record.offset for record in stored(after)] == [0, 3]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
async def test_large_batches_are_rewritten_on_a_lane_from_bytes_of_their_own(
    world: World, codec: Codec
) -> None:
    await made(world, "quarantine", max_message_bytes=str(1 << 23))
    await produce(world, sent([0]))
    noise = bytes(range(256)) * 32
    records = build_batch(
        [(at, bytes([n % 251]) + noise, None) for n in range(60) for at in times_of(world)],
        codec=codec,
    )
    if codec is Codec.NONE:
        world.lanes.held = True
    request = produce_request(records)
    answer = world.begin(request, 12)
    assert isinstance(answer, Deferred)
    if codec is Codec.NONE:
        assert not answer.settled
        request.topic_data[0].partition_data[0].records = None
        world.lanes.release()
    response = await world.settled(answer)
    assert response.responses[0].partition_responses[0].error_code == 0
    assert len(stored(world)) == 60
    assert len(stored(world, "t.quarantine")) == 121


async def test_old_sets_are_converted_first(world: World) -> None:
    await made(world, "quarantine")
    message = b"".join(
        build_message(offset, 1, at, b"k", b"v") for offset, at in enumerate(times_of(world))
    )
    answer = await produce(world, message, version=2)
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert [record.offset for record in stored(world)] == [0]
    assert len(stored(world, "t.quarantine")) == 2


async def test_the_policy_changes_on_a_live_topic(world: World) -> None:
    await made(world, "reject")
    bad = [now(world) + DAY]
    assert (await produce(world, sent(bad))).error_code == ErrorCode.INVALID_TIMESTAMP
    for policy, expected in (("clamp", now(world) + HOUR), ("accept", now(world) + DAY)):
        await alter(world, "t", "horolog.timestamp.policy", policy)
        assert (await produce(world, sent(bad))).error_code == 0
        assert stored(world)[-1].timestamp == expected


async def alter(world: World, topic: str, key: str, value: str) -> None:
    config = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])
    answer = await world.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0, answer


async def refused_as_rejected(world: World, topic: str = "t") -> None:
    answer = await produce(world, sent(times_of(world)), topic=topic)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_TIMESTAMP, -1)
    assert [each.batch_index for each in answer.record_errors] == [1, 2]
    assert world.partition(topic).log.snapshot.log_end_offset == 0
    assert world.broker.quarantine.refusals["unusable"]


@pytest.mark.parametrize(
    "settings",
    [
        {"horolog_timestamp_policy": "quarantine"},
        {"cleanup_policy": "compact"},
        {"cleanup_policy": "compact,delete"},
    ],
)
async def test_a_topic_that_is_no_quarantine_is_not_used_as_one(
    world: World, settings: dict[str, str]
) -> None:
    await world.make_topic("t.quarantine", **settings)
    await made(world, "quarantine")
    await refused_as_rejected(world)


async def test_a_topic_is_not_its_own_quarantine(world: World) -> None:
    await made(world, "quarantine", horolog_quarantine_topic="t")
    await refused_as_rejected(world)


async def test_two_topics_that_are_each_others_quarantine_wait_for_nobody(world: World) -> None:
    await made(world, "quarantine", "t", horolog_quarantine_topic="u")
    await made(world, "quarantine", "u", horolog_quarantine_topic="t")
    await refused_as_rejected(world, "t")
    await refused_as_rejected(world, "u")


async def test_a_quarantine_that_cannot_be_made_is_as_good_as_none(world: World) -> None:
    name = "n" * 245
    await made(world, "quarantine", name)
    await refused_as_rejected(world, name)
    await made(world, "quarantine", "other", horolog_quarantine_topic="__consumer_offsets")
    await refused_as_rejected(world, "other")


async def test_while_a_quarantine_is_made_the_request_may_go(world: World) -> None:
    await made(world, "quarantine", horolog_quarantine_topic="__consumer_offsets")
    batch = sent(times_of(world))
    answer = world.begin(produce_request(memoryview(batch)), 12)
    assert isinstance(answer, Deferred)
    batch[:] = bytes(len(batch))
    batch.clear()  # BufferError if somebody still looks at it
    response = (await world.settled(answer)).responses[0].partition_responses[0]
    assert [each.batch_index for each in response.record_errors] == [1, 2]


async def test_a_quarantine_that_waits_itself_is_not_waited_for(world: World) -> None:
    """The settings changed while a batch was under way: the ring is broken all the same."""
    await made(world, "quarantine", "t", horolog_quarantine_topic="u")
    await world.make_topic("u")
    world.partition("u").writer.awaits_quarantine = True
    answer = await produce(world, sent(times_of(world)))
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.partition().log.snapshot.log_end_offset == 0
    world.partition("u").writer.awaits_quarantine = False
    assert (await produce(world, sent(times_of(world)))).error_code == 0


async def test_a_quarantine_whose_disk_fails_refuses_for_now(world: World) -> None:
    await made(world, "quarantine")
    await produce(world, sent(times_of(world)))
    answer = world.begin(produce_request(sent(times_of(world)), acks=-1), 12)
    world.commit.fail()
    response = (await world.settled(answer)).responses[0].partition_responses[0]
    assert response.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "quarantine" in response.error_message
    assert world.partition().log.snapshot.log_end_offset == 3
    assert not world.partition().writer.awaits_quarantine
    good = await world.produce(b"v", at=now(world))
    assert (good.error_code, good.base_offset) == (0, 3)


async def test_good_records_of_a_quarantined_batch_may_go_anywhere_in_one_request(
    world: World,
) -> None:
    """Several partitions in one request, one of them dirty: every one gets its own answer."""
    await made(world, "quarantine", "t")
    await made(world, "reject", "u")
    topics = [
        TopicProduceData(
            name=name,
            partition_data=[PartitionProduceData(index=0, records=sent(times_of(world)))],
        )
        for name in ("t", "u")
    ]
    response = await world.call(ProduceRequest(acks=1, topic_data=topics), 12)
    codes = [each.partition_responses[0].error_code for each in response.responses]
    assert codes == [0, ErrorCode.INVALID_TIMESTAMP]


async def test_expired_on_arrival_is_stored_and_told(world: World) -> None:
    await world.make_topic("t", retention_ms=str(DAY))
    at = now(world)
    await produce(world, sent([at - DAY - 1, at, at // 1000]))
    assert dirty(world) == {
        ("t", "expired", "bound", "stored"): 1,
        ("t", "expired", "seconds", "stored"): 1,
    }
    assert len(stored(world)) == 3


async def test_who_wrote_what_pins_a_segment(world: World) -> None:
    await world.make_topic("t", message_timestamp_after_max_ms=str(2**63 - 1))
    await world.produce(*[b"v"] * 10, at=now(world))
    await produce(world, sent([now(world), 2_700_000_000_000]))
    who = world.broker.dirty_clients.who
    (entry,) = who("t", 0, 0, 100)
    assert (entry["client_id"], entry["worst_offset"], entry["action"]) == ("test", 11, "stored")
    assert entry["worst_timestamp_ms"] == 2_700_000_000_000
    assert who("t", 0, 11, 11) == [entry]
    assert who("t", 0, 0, 10) == who("t", 0, 12, 99) == who("t", 1, 0, 99) == []


async def test_nothing_is_told_of_good_records(world: World) -> None:
    await made(world, "quarantine")
    await world.produce(*[b"v"] * 100, at=now(world) - 1000)
    assert (dirty(world), clients(world)) == ({}, [])
    skew = world.broker.probes.topics["t"].skew
    assert (sum(skew), skew[7]) == (1, 1)  # 901 ms: at most a second


async def test_no_answer_is_wanted(world: World) -> None:
    await made(world, "quarantine")
    answer = world.begin(produce_request(sent(times_of(world)), acks=0), 12)
    assert await world.settled(answer) is None
    assert len(stored(world, "t.quarantine")) == 2
    assert [record.offset for record in stored(world)] == [0]


async def test_series_and_entries_of_a_deleted_topic_end(world: World) -> None:
    from protocol.apis.delete_topics import DeleteTopicsRequest

    await made(world, "accept")
    await produce(world, sent(times_of(world)))
    assert clients(world)
    await world.call(DeleteTopicsRequest(topic_names=["t"]), 5)
    assert (dirty(world), clients(world)) == ({}, [])
