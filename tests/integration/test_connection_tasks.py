"""What a running broker does by itself as time passes, by a clock that the test holds."""

import asyncio
from dataclasses import replace
from pathlib import Path

from protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from storage.posix import real_env
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.app import client_of, running_broker
from tests.support.worlds.moved_clock import MovedClock, pass_time


async def make_topic(client: AsyncWireClient, name: str) -> None:
    topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
    response = await client.call(CreateTopicsRequest(topics=[topic]), 5)
    assert response.topics[0].error_code == 0


async def produce(client: AsyncWireClient, name: str, producer_id: int = -1) -> None:
    now_ms = real_env().clock.now_ms()
    batch = build_batch(
        [(now_ms, None, b"value")],
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
    )
    data = PartitionProduceData(index=0, records=batch)
    topic = TopicProduceData(name=name, partition_data=[data])
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
    response = await client.call(request, 9)
    assert response.responses[0].partition_responses[0].error_code == 0


def directories(data_dir: Path) -> list[str]:
    return [path.name for path in data_dir.iterdir() if path.is_dir()]


async def test_checkpoints_are_written_while_it_runs(tmp_path: Path) -> None:
    clock = MovedClock()
    env = replace(real_env(), clock=clock)
    settings = {"horolog.durability": "fsync"}
    async with running_broker(tmp_path, settings, env) as broker, client_of(broker) as client:
        await make_topic(client, "orders")
        await produce(client, "orders")
        await pass_time(broker, clock, 61)
        marks = (tmp_path / "replication-offset-checkpoint").read_text().splitlines()
        assert "orders 0 1" in marks
        points = (tmp_path / "recovery-point-offset-checkpoint").read_text().splitlines()
        assert "orders 0 1" in points


async def test_files_of_deleted_topics_go_after_their_delay(tmp_path: Path) -> None:
    clock = MovedClock()
    env = replace(real_env(), clock=clock)
    settings = {"log.segment.delete.delay.ms": "60000"}
    async with running_broker(tmp_path, settings, env) as broker, client_of(broker) as client:
        await make_topic(client, "orders")
        await produce(client, "orders")
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")])
        assert (await client.call(request, 6)).responses[0].error_code == 0
        await pass_time(broker, clock, 30)
        assert len(directories(tmp_path)) == 2
        await pass_time(broker, clock, 31)
        await pass_time(broker, clock, 2)
        assert directories(tmp_path) == []


async def test_silent_producers_are_forgotten(tmp_path: Path) -> None:
    clock = MovedClock()
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, env=env) as broker, client_of(broker) as client:
        await make_topic(client, "orders")
        await produce(client, "orders", producer_id=7)
        log = broker.services.topics.image.topics["orders"].partitions[0].log
        assert len(log.producers) == 1
        await pass_time(broker, clock, 3600)
        assert len(log.producers) == 1
        await pass_time(broker, clock, 86_400)
        assert len(log.producers) == 0


async def test_old_unsynced_data_is_synced_by_flush_ms(tmp_path: Path) -> None:
    clock = MovedClock()
    env = replace(real_env(), clock=clock)
    settings = {"horolog.durability": "os", "log.flush.interval.ms": "5000"}
    async with running_broker(tmp_path, settings, env) as broker, client_of(broker) as client:
        await make_topic(client, "orders")
        await produce(client, "orders")
        log = broker.services.topics.image.topics["orders"].partitions[0].log
        await pass_time(broker, clock, 2)
        assert log.durable_offset == 0
        await pass_time(broker, clock, 4)
        async with asyncio.timeout(10):
            while log.durable_offset < 1:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
