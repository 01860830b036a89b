"""The audit topic is the broker's own: clients read it, and nothing they send changes it."""

from typing import Any

import pytest

from broker.record_times.own_topic import OwnTopic
from protocol.apis import (
    add_partitions_to_txn,
    alter_configs,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_topic_partitions,
    incremental_alter_configs,
    metadata,
)
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import World, batch, produce_request

AUDIT = "horolog.audit"
REFUSED = ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.fixture
async def world() -> World:
    world = World(horolog_audit_topic=AUDIT)
    broker = world.broker
    topic = OwnTopic(AUDIT, broker.topics, broker.rules, world.clock, broker.probes)
    await topic._partition()
    return world


@pytest.mark.parametrize("acks", [1, -1])
async def test_nobody_else_writes_to_it(world: World, acks: int) -> None:
    for version in (3, 9, 12, 13):
        request = produce_request(batch(b"forged"), topic=AUDIT, acks=acks)
        request.topic_data[0].topic_id = world.broker.topics.image.topics[AUDIT].topic_id
        answer = await world.call(request, version)
        assert answer.responses[0].partition_responses[0].error_code == REFUSED
    assert world.partition(AUDIT).log.snapshot.log_end_offset == 0


async def test_nobody_writes_to_it_in_a_transaction(world: World) -> None:
    topic = add_partitions_to_txn.AddPartitionsToTxnTopic(name=AUDIT, partitions=[0])
    request = add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[topic],
    )
    answer = await world.call(request, 3)
    (code,) = [
        each.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]
    assert code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_records_set_aside_for_their_times_do_not_land_in_it(world: World) -> None:
    await world.make_topic(
        "t",
        horolog_timestamp_policy="quarantine",
        horolog_quarantine_topic=AUDIT,
        message_timestamp_before_max_ms="1000",
    )
    await world.produce(b"forged", at=1)
    assert world.partition(AUDIT).log.snapshot.log_end_offset == 0


async def test_it_is_neither_made_nor_changed_nor_deleted(world: World) -> None:
    image = world.broker.topics.image
    made = await world.call(
        create_topics.CreateTopicsRequest(
            topics=[
                create_topics.CreatableTopic(name=AUDIT, num_partitions=1, replication_factor=1)
            ]
        ),
        7,
    )
    assert made.topics[0].error_code == REFUSED
    grown = await world.call(
        create_partitions.CreatePartitionsRequest(
            topics=[create_partitions.CreatePartitionsTopic(name=AUDIT, count=3)]
        ),
        2,
    )
    assert grown.results[0].error_code == REFUSED
    by_id = delete_topics.DeleteTopicState(name=None, topic_id=image.topics[AUDIT].topic_id)
    for request, version in (
        (delete_topics.DeleteTopicsRequest(topic_names=[AUDIT]), 5),
        (delete_topics.DeleteTopicsRequest(topics=[by_id]), 6),
    ):
        assert (await world.call(request, version)).responses[0].error_code == REFUSED
    assert world.broker.topics.image is image


@pytest.mark.parametrize("topic", [AUDIT, "__consumer_offsets"])
async def test_its_records_stay(world: World, topic: str) -> None:
    if topic != AUDIT:
        await world.broker.groups.topic.make()
    part = delete_records.DeleteRecordsPartition(partition_index=0, offset=-1)
    wanted = delete_records.DeleteRecordsTopic(name=topic, partitions=[part])
    answer = await world.call(delete_records.DeleteRecordsRequest(topics=[wanted]), 2)
    assert answer.topics[0].partitions[0].error_code == REFUSED


async def test_its_settings_stay(world: World) -> None:
    def altered(module: Any, **how: Any) -> Any:
        config = module.AlterableConfig(name="retention.ms", value="1", **how)
        resource = module.AlterConfigsResource(
            resource_type=2, resource_name=AUDIT, configs=[config]
        )
        return [resource]

    for request, version in (
        (
            incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=altered(incremental_alter_configs, config_operation=0)
            ),
            1,
        ),
        (alter_configs.AlterConfigsRequest(resources=altered(alter_configs)), 2),
    ):
        answer = await world.call(request, version)
        assert answer.responses[0].error_code == REFUSED
    assert world.broker.config.topic_config(AUDIT).retention_ms > 1


async def test_it_is_told_as_internal_and_can_be_read(world: World) -> None:
    asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=AUDIT)])
    assert (await world.call(asked, 9)).topics[0].is_internal
    described = describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[describe_topic_partitions.TopicRequest(name=AUDIT)]
    )
    assert (await world.call(described, 0)).topics[0].is_internal
    plain = World()
    await plain.make_topic(AUDIT)
    assert (await plain.produce(b"v", topic=AUDIT)).error_code == 0
