"""Every API and version that is listed, over a real socket, against a broker in this process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker.daemon.app import Broker
from config.alter import read_setting
from config.layers import Layer, SettingSource
from config.names import broker_name
from config.store import ConfigStore
from protocol.api import Api
from protocol.apis import create_topics, fetch, list_offsets, metadata, produce
from protocol.apis.api_versions import ApiVersionsRequest
from protocol.errors import ErrorCode
from protocol.records.batch import iter_headers
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.registry import by_name
from storage.posix import real_env
from tests.support.clients.served_apis import served_apis
from tests.support.clients.wire import AsyncWireClient, frame, parse_response, request_frame


def settings(tmp_path: Path) -> ConfigStore:
    texts = {
        "log.dirs": str(tmp_path / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "horolog.http.listener": "",
    }
    layer = {name: read_setting(name, text, broker_name) for name, text in texts.items()}
    return ConfigStore([Layer(SettingSource.STATIC_BROKER, layer)])


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    broker = Broker(real_env(), settings(tmp_path), asyncio.get_running_loop())
    await broker.start()
    yield broker
    await broker.stop()


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[AsyncWireClient]:
    async with await AsyncWireClient.connect(*broker.bootstrap) as client:
        yield client


async def make_topic(client: AsyncWireClient, name: str = "t", partitions: int = 1) -> Any:
    topic = create_topics.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    response = await client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)
    assert response.topics[0].error_code == 0
    return response.topics[0].topic_id


def every_version() -> list[Any]:
    return [
        pytest.param(api, version, id=f"{api.name}-{version}")
        for api in served_apis().values()
        for version in range(api.min_version, api.max_version + 1)
    ]


@pytest.mark.parametrize(("api", "version"), every_version())
async def test_an_empty_request_is_answered_in_every_version(
    client: AsyncWireClient, api: Api, version: int
) -> None:
    request = api.request()
    if api.key == 0:
        request.acks = 1
    await client.call(request, version)


async def test_what_is_listed_is_what_is_served(client: AsyncWireClient) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    response = await client.call(request, 4)
    listed = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    expected = {api.key: (api.min_version, api.max_version) for api in served_apis().values()}
    assert listed == expected


async def test_an_unknown_version_of_api_versions_is_answered_in_the_oldest(
    client: AsyncWireClient,
) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    data = bytearray(request_frame(request, 4, 7))
    data[6:8] = (99).to_bytes(2, "big")
    await client.send_raw(bytes(data))
    number, response = parse_response(by_name()["ApiVersions"], 0, await client.receive_frame())
    assert (number, response.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert {each.api_key for each in response.api_keys} >= {18}


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
@pytest.mark.parametrize("acks", [1, -1])
async def test_what_is_produced_is_found_by_time_and_fetched(
    client: AsyncWireClient, broker: Broker, version: int, acks: int
) -> None:
    topic_id = await make_topic(client)
    now = broker.services.clock.now_ms()
    records = build_batch([(now + i, b"k", b"v" * 100) for i in range(10)])
    data = produce.PartitionProduceData(index=0, records=records)
    topic = produce.TopicProduceData(name="t", topic_id=topic_id, partition_data=[data])
    request = produce.ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[topic])
    for expected in (0, 10):
        response = await client.call(request, version)
        (answer,) = response.responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (0, expected)
    query = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=now + 4)
    found = await client.call(
        list_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=[list_offsets.ListOffsetsTopic(name="t", partitions=[query])],
        ),
        min(version, 11),
    )
    assert found.topics[0].partitions[0].offset == 4
    fetched = await client.call(fetch_of(topic_id, 4), max(4, version))
    (answer,) = fetched.responses[0].partitions
    offsets = [header.base_offset for _, header in iter_headers(memoryview(answer.records))]
    assert offsets == [0, 10]
    assert bytes(answer.records[61:])[: len(records) - 61] == bytes(records[61:])


def fetch_of(topic_id: Any, offset: int, **fields: Any) -> fetch.FetchRequest:
    wanted = fetch.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return fetch.FetchRequest(
        max_wait_ms=fields.pop("max_wait_ms", 0),
        min_bytes=1,
        topics=[fetch.FetchTopic(topic="t", topic_id=topic_id, partitions=[wanted])],
        **fields,
    )


async def test_pipelined_requests_are_answered_in_order_and_end_the_wait_of_a_fetch(
    client: AsyncWireClient,
) -> None:
    topic_id = await make_topic(client)
    waiting = await client.send(fetch_of(topic_id, 0, max_wait_ms=3_600_000), 12)
    asked = await client.send(metadata.MetadataRequest(topics=None), 9)
    first = await client.receive(*waiting)
    assert not first.responses[0].partitions[0].records
    assert len((await client.receive(*asked)).topics) == 1


async def test_a_fetch_that_waits_alone_is_answered_when_a_record_comes(
    client: AsyncWireClient, broker: Broker
) -> None:
    topic_id = await make_topic(client)
    waiting = await client.send(fetch_of(topic_id, 0, max_wait_ms=3_600_000), 12)
    async with await AsyncWireClient.connect(*broker.bootstrap) as producer:
        data = produce.PartitionProduceData(
            index=0, records=build_batch([(broker.services.clock.now_ms(), None, b"v")])
        )
        topic = produce.TopicProduceData(name="t", partition_data=[data])
        await producer.call(produce.ProduceRequest(acks=-1, topic_data=[topic]), 9)
    first = await client.receive(*waiting)
    assert first.responses[0].partitions[0].high_watermark == 1


async def test_pipelined_batches_of_one_producer_keep_their_order_over_lanes(
    client: AsyncWireClient, broker: Broker
) -> None:
    """Large compressed batches are checked on a thread, small ones on the loop."""
    await make_topic(client)
    now = broker.services.clock.now_ms()
    noise = [(now, None, bytes(i * j % 251 for j in range(900))) for i in range(120)]
    sequence, sent = 0, []
    for number in range(40):
        large = number % 3 != 2
        rows = noise if large else noise[:1]
        records = build_batch(
            rows,
            codec=Codec.LZ4 if large else Codec.NONE,
            producer_id=99,
            producer_epoch=0,
            base_sequence=sequence,
        )
        sequence += len(rows)
        data = produce.PartitionProduceData(index=0, records=records)
        topic = produce.TopicProduceData(name="t", partition_data=[data])
        request = produce.ProduceRequest(acks=-1 if number % 2 else 1, topic_data=[topic])
        sent.append((sequence - len(rows), await client.send(request, 9)))
    for expected, asked in sent:
        (answer,) = (await client.receive(*asked)).responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (0, expected)


async def test_a_producer_that_wants_no_answer_gets_none_and_is_cut_off_on_error(
    client: AsyncWireClient,
) -> None:
    await make_topic(client)
    for topic, ends in (("t", False), ("nope", True)):
        data = produce.PartitionProduceData(index=0, records=build_batch([(5, None, b"v")]))
        topics = [produce.TopicProduceData(name=topic, partition_data=[data])]
        await client.send(produce.ProduceRequest(acks=0, topic_data=topics), 9)
        if not ends:
            response = await client.call(metadata.MetadataRequest(topics=[]), 9)
            assert response.cluster_id
        else:
            assert await client.receive_all() == b""


async def test_damage_ends_one_connection_only(client: AsyncWireClient, broker: Broker) -> None:
    async with await AsyncWireClient.connect(*broker.bootstrap) as broken:
        await broken.send_raw(frame(b"\x00\x03\x00\x09" + b"\xff" * 40))
        assert await broken.receive_all() == b""
    assert (await client.call(metadata.MetadataRequest(topics=[]), 9)).brokers


async def test_a_restart_keeps_topics_records_and_settings(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    broker = Broker(real_env(), settings(tmp_path), loop)
    await broker.start()
    async with await AsyncWireClient.connect(*broker.bootstrap) as client:
        topic_id = await make_topic(client, partitions=3)
        data = produce.PartitionProduceData(
            index=0, records=build_batch([(broker.services.clock.now_ms(), None, b"v")])
        )
        topic = produce.TopicProduceData(name="t", partition_data=[data])
        await client.call(produce.ProduceRequest(acks=-1, topic_data=[topic]), 9)
    cluster_id = broker.services.logs.cluster_id
    assert await broker.stop()
    again = Broker(real_env(), settings(tmp_path), loop)
    await again.start()
    async with await AsyncWireClient.connect(*again.bootstrap) as client:
        told = await client.call(metadata.MetadataRequest(topics=None), 12)
        assert told.cluster_id == cluster_id
        assert (told.topics[0].topic_id, len(told.topics[0].partitions)) == (topic_id, 3)
        fetched = await client.call(fetch_of(topic_id, 0), 12)
        assert fetched.responses[0].partitions[0].high_watermark == 1
    await again.stop()
