"""Quotas over real sockets: who is over is told how long to rest, and not read from meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker.daemon.app import Broker
from broker.quotas.table import QuotaTable
from config.alter import read_setting
from config.layers import Layer, SettingSource
from config.names import broker_name
from config.store import ConfigStore
from protocol.apis import alter_client_quotas, create_topics, fetch, metadata, produce
from protocol.errors import ErrorCode
from protocol.records.builder import build_batch
from protocol.registry import api_of
from storage.posix import real_env
from tests.support.clients.wire import AsyncWireClient, request_frame

ALLOWED = 50_000  # bytes a second
WHOLE_WINDOW_MS = 1000


def config(data: Path) -> ConfigStore:
    """Two windows of a second, so that a rate is measured over one at least."""
    texts = {
        "log.dirs": str(data),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "horolog.http.listener": "",
        "quota.window.num": "2",
    }
    layer = {name: read_setting(name, text, broker_name) for name, text in texts.items()}
    return ConfigStore([Layer(SettingSource.STATIC_BROKER, layer)])


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    broker = Broker(real_env(), config(tmp_path / "data"), asyncio.get_running_loop())
    await broker.start()
    yield broker
    await broker.stop()


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[AsyncWireClient]:
    """Calls itself "test", and has a topic."""
    async with await AsyncWireClient.connect(*broker.bootstrap) as client:
        topic = create_topics.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        await client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)
        yield client


@pytest.fixture
async def admin(broker: Broker) -> AsyncIterator[AsyncWireClient]:
    async with await AsyncWireClient.connect(*broker.bootstrap) as client:
        yield client


async def limit(admin: AsyncWireClient, key: str, value: float, name: str | None = "test") -> None:
    """Sets a limit of a client."""
    entity = alter_client_quotas.EntityData(entity_type="client-id", entity_name=name)
    op = alter_client_quotas.OpData(key=key, value=value)
    entry = alter_client_quotas.EntryData(entity=[entity], ops=[op])
    request = alter_client_quotas.AlterClientQuotasRequest(entries=[entry])
    response = await admin.call(request, 1)
    assert response.entries[0].error_code == 0, response


def produce_request(size: int, acks: int = 1) -> Any:
    data = produce.PartitionProduceData(
        index=0, records=build_batch([(1_700_000_000_000, None, b"v" * size)])
    )
    topic = produce.TopicProduceData(name="t", partition_data=[data])
    return produce.ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[topic])


def fetch_request(offset: int = 0) -> Any:
    partition = fetch.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, log_start_offset=-1
    )
    topic = fetch.FetchTopic(topic="t", partitions=[partition])
    return fetch.FetchRequest(
        max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic]
    )


def seconds() -> float:
    return asyncio.get_running_loop().time()


async def rest_after(client: AsyncWireClient, since: float) -> float:
    """How long after `since` the next request was answered."""
    await client.call(metadata.MetadataRequest(topics=[]), 8)
    return seconds() - since


async def test_who_writes_too_fast_is_told_at_once_and_not_read_from(
    client: AsyncWireClient, admin: AsyncWireClient, broker: Broker
) -> None:
    await limit(admin, "producer_byte_rate", ALLOWED)
    began = seconds()
    first = await client.call(produce_request(70_000), 8)
    answered = seconds()
    assert first.responses[0].partition_responses[0].error_code == 0
    rest = first.throttle_time_ms / 1000
    assert 0.3 < rest < 0.6  # 20,000 of 50,000 too many, over one second
    assert answered - began < rest
    assert broker.services.quotas.throttled.requests["producer_byte_rate"] == 1
    assert await rest_after(client, answered) > rest * 0.9


async def test_what_was_sent_ahead_waits_too(
    client: AsyncWireClient, admin: AsyncWireClient
) -> None:
    await limit(admin, "producer_byte_rate", ALLOWED)
    request, asked = produce_request(70_000), metadata.MetadataRequest(topics=[])
    await client.send_raw(request_frame(request, 8, 1) + request_frame(asked, 8, 2) * 3)
    first = await client.receive(api_of(type(request)), 8, 1)
    answered = seconds()
    for _ in range(3):
        await client.receive(api_of(type(asked)), 8, 2)
    assert seconds() - answered > first.throttle_time_ms / 1000 * 0.9


async def test_others_are_served_meanwhile(
    client: AsyncWireClient, admin: AsyncWireClient, broker: Broker
) -> None:
    await limit(admin, "producer_byte_rate", ALLOWED)
    first = await client.call(produce_request(90_000), 8)
    began = seconds()
    assert sum(each.is_muted for each in broker.services.server.connections) == 1
    for number in range(20):
        await admin.send_raw(request_frame(produce_request(9000), 8, number, "another"))
        other = await admin.receive(api_of(type(produce_request(1))), 8, number)
        assert other.throttle_time_ms == 0
    assert seconds() - began < first.throttle_time_ms / 1000


async def test_who_wants_no_answer_rests_all_the_same(
    client: AsyncWireClient, admin: AsyncWireClient
) -> None:
    await limit(admin, "producer_byte_rate", ALLOWED)
    began = seconds()
    await client.send_raw(request_frame(produce_request(70_000, acks=0), 8))
    assert await rest_after(client, began) > 0.3


async def test_a_fetch_over_the_limit_is_empty_and_comes_whole_later(
    client: AsyncWireClient, admin: AsyncWireClient
) -> None:
    for _ in range(4):
        await client.call(produce_request(20_000), 8)
    await limit(admin, "consumer_byte_rate", ALLOWED)
    seen: list[int] = []
    offset = 0
    while offset < 4:
        response = await client.call(fetch_request(offset), 11)
        seen.append(response.throttle_time_ms)
        if response.throttle_time_ms:
            assert response.responses == []
            continue
        records = response.responses[0].partitions[0].records
        assert len(records) <= ALLOWED + 20_200  # the limit's window, and a whole batch
        offset += len(records) // 20_000
    assert any(seen)
    assert seen[0] == 0


async def test_the_time_of_requests_is_limited_and_the_rest_bounded(
    client: AsyncWireClient, admin: AsyncWireClient, broker: Broker
) -> None:
    await limit(admin, "request_percentage", 0.001)
    response = await client.call(metadata.MetadataRequest(topics=[]), 8)
    answered = seconds()
    assert response.throttle_time_ms == WHOLE_WINDOW_MS
    assert await rest_after(client, answered) > 0.9
    assert broker.services.quotas.throttled.requests["request_percentage"] >= 2


async def test_a_client_that_leaves_while_it_rests_leaves_nothing(
    client: AsyncWireClient, admin: AsyncWireClient, broker: Broker
) -> None:
    await limit(admin, "producer_byte_rate", ALLOWED)
    await client.call(produce_request(500_000), 8)
    (muted,) = [each for each in broker.services.server.connections if each.is_muted]
    muted.abort("test")
    await asyncio.sleep(0)
    await admin.call(metadata.MetadataRequest(topics=[]), 8)
    assert not any(each.is_muted for each in broker.services.server.connections)


async def test_limits_outlive_a_restart(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    tables: list[QuotaTable] = []
    for _ in range(2):
        broker = Broker(real_env(), config(tmp_path / "kept"), loop)
        await broker.start()
        async with await AsyncWireClient.connect(*broker.bootstrap) as admin:
            if not tables:
                await limit(admin, "producer_byte_rate", ALLOWED)
        assert broker.services.quotas.enforced is not None
        tables.append(broker.services.quotas.table)
        await broker.stop()
    assert tables[0] == tables[1]


async def test_who_makes_too_many_partitions_is_refused_and_not_read_from(
    client: AsyncWireClient, admin: AsyncWireClient
) -> None:
    await limit(admin, "controller_mutation_rate", 2)

    async def make(name: str, partitions: int) -> tuple[int, float]:
        topic = create_topics.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1
        )
        answer = await client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)
        return answer.topics[0].error_code, answer.throttle_time_ms / 1000

    assert await make("many", 24) == (0, 0)  # eleven seconds' worth, and two more
    code, rest = await make("more", 1)
    answered = seconds()
    assert code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert 0 < rest <= 1
    assert await rest_after(client, answered) > rest * 0.9
    assert await make("more", 1) == (0, 0)


async def limit_address(admin: AsyncWireClient, rate: float) -> None:
    entity = alter_client_quotas.EntityData(entity_type="ip", entity_name="127.0.0.1")
    op = alter_client_quotas.OpData(key="connection_creation_rate", value=rate)
    entry = alter_client_quotas.EntryData(entity=[entity], ops=[op])
    answer = await admin.call(alter_client_quotas.AlterClientQuotasRequest(entries=[entry]), 1)
    assert answer.entries[0].error_code == 0


async def test_an_address_that_comes_too_often_waits_and_is_closed(
    admin: AsyncWireClient, broker: Broker
) -> None:
    """Two windows of a second: a rate of five lets five come at once."""
    await limit_address(admin, 5)
    began = seconds()
    opened = [await asyncio.open_connection(*broker.bootstrap) for _ in range(9)]
    request = request_frame(metadata.MetadataRequest(topics=[]), 8)
    served = 0
    for reader, writer in opened:
        writer.write(request)
        try:
            served += len(await reader.readexactly(4)) == 4
        except (ConnectionError, asyncio.IncompleteReadError):
            assert seconds() - began > 0.15  # a sixth connection would have been in time later
        writer.close()
    assert 5 <= served < 9
    quotas = broker.services.quotas
    assert quotas.throttled.requests["connection_creation_rate"] == 9 - served
    assert quotas.enforced is None, "requests are not measured for limits of addresses"
    await rest_after(admin, seconds())
