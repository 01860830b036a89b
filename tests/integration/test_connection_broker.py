"""A real broker, in this process: unknown versions, wrong protocols, probes, orders of answers."""

import asyncio
from pathlib import Path

import pytest

from broker.daemon.app import Broker
from broker.groups.records.classic import group_key
from broker.runtime.gathering import wait_for
from protocol.apis.api_versions import API as API_VERSIONS
from protocol.apis.api_versions import ApiVersionsRequest
from protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.apis.fetch import API as FETCH
from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.apis.list_offsets import API as LIST_OFFSETS
from protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.apis.metadata import MetadataRequest
from protocol.errors import ErrorCode
from tests.support.clients.served_apis import served_apis
from tests.support.clients.wire import AsyncWireClient, parse_response, request_frame
from tests.support.worlds.app import client_of, make_broker, running_broker

AT_ITS_START = FetchTopic(
    topic="t", partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
)
WHERE_IT_ENDS = ListOffsetsRequest(
    topics=[
        ListOffsetsTopic(
            name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
        )
    ]
)


async def make_topic(client: AsyncWireClient) -> None:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    (made,) = (await client.call(CreateTopicsRequest(topics=[topic]), 5)).topics
    assert made.error_code == 0


async def http_get(address: tuple[str, int], path: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(20):
        answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


async def test_what_is_listed_is_what_is_routed(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        response = await client.call(ApiVersionsRequest(), 0)
        listed = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        assert listed == {
            key: (api.min_version, api.max_version) for key, api in served_apis().items()
        }


async def test_a_future_api_versions_request_is_told_what_we_speak(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        header = API_VERSIONS.key.to_bytes(2, "big") + b"\x00\x63" + b"\x00\x00\x00\x05\xff\xff"
        await client.send_raw(len(header).to_bytes(4, "big") + header)
        number, response = parse_response(API_VERSIONS, 0, await client.receive_frame())
        assert number == 5
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert await client.call(MetadataRequest(), 9)


async def test_a_client_is_told_the_address_it_came_by(tmp_path: Path) -> None:
    settings = {"listeners": "IN://127.0.0.1:0,WIDE://:0,OUT://127.0.0.1:0"}
    settings["advertised.listeners"] = "OUT://broker.example.org:19092"
    async with running_broker(tmp_path, settings) as broker:
        listeners = broker.services.server.listeners
        for name, host in (("IN", "127.0.0.1"), ("WIDE", "127.0.0.2")):
            client = await AsyncWireClient.connect(host, listeners[name].port)
            (node,) = (await client.call(MetadataRequest(), 9)).brokers
            assert (node.host, node.port) == (host, listeners[name].port)
            await client.close()
        client = await AsyncWireClient.connect("127.0.0.1", listeners["OUT"].port)
        (node,) = (await client.call(MetadataRequest(), 9)).brokers
        assert (node.host, node.port) == ("broker.example.org", 19092)
        await client.close()


async def test_pipelined_calls_of_many_apis_come_back_in_order(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        requests = [(ApiVersionsRequest(), 0), (MetadataRequest(), 9), (MetadataRequest(), 12)] * 20
        frames = [request_frame(r, v, n) for n, (r, v) in enumerate(requests)]
        await client.send_raw(b"".join(frames))
        for number in range(len(requests)):
            payload = await client.receive_frame()
            assert int.from_bytes(payload[:4], "big") == number


async def test_who_asks_behind_a_long_poll_does_not_wait_for_it(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        await make_topic(client)
        poll = FetchRequest(max_wait_ms=3_600_000, min_bytes=1, topics=[AT_ITS_START])
        await client.send_raw(request_frame(poll, 11, 1) + request_frame(WHERE_IT_ENDS, 7, 2))
        _, fetched = parse_response(FETCH, 11, await client.receive_frame())
        assert fetched.error_code == 0
        assert [each.partitions[0].records for each in fetched.responses] == [b""]
        _, listed = parse_response(LIST_OFFSETS, 7, await client.receive_frame())
        assert listed.topics[0].partitions[0].offset == 0


async def test_long_polls_do_not_end_each_other(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        await make_topic(client)
        poll = FetchRequest(max_wait_ms=3_600_000, min_bytes=1, topics=[AT_ITS_START])
        await client.send_raw(request_frame(poll, 11, 1) + request_frame(poll, 11, 2))
        async with asyncio.timeout(20):
            while len(broker.services.waiters) < 2:  # noqa: ASYNC110 - the broker has no event for it
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        assert len(broker.services.waiters) == 2


async def test_http_on_the_kafka_port_names_the_http_port(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        await client.send_raw(b"GET / HTTP/1.1\r\n\r\n")
        assert str(broker.http).encode() in await client.receive_all()


async def test_health_and_metrics(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        assert broker.http is not None
        await client.call(MetadataRequest(), 9)
        assert await http_get(broker.http, "/livez") == (200, "ok\n")
        assert (await http_get(broker.http, "/readyz?verbose"))[0] == 200
        status, text = await http_get(broker.http, "/metrics")
        assert status == 200
        assert 'horolog_requests_total{api="Metadata"} 1.0' in text
        assert "horolog_ready 1.0" in text
        broker.services.readiness.lost("the test says so")
        status, text = await http_get(broker.http, "/readyz")
        assert status == 503
        assert "[-]serving failed: the test says so" in text
        broker.services.readiness.reached()


async def test_a_taken_port_is_refused_before_the_directory_is_touched(tmp_path: Path) -> None:
    async with running_broker(tmp_path / "one") as broker:
        taken = {"listeners": f"PLAINTEXT://{broker.bootstrap}"}
        second = make_broker(tmp_path / "two", taken)
        with pytest.raises(Exception, match="cannot listen on"):
            await second.start()
        assert not (tmp_path / "two").exists()


async def test_a_second_broker_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path):
        second = make_broker(tmp_path)
        with pytest.raises(Exception, match="lock"):
            await second.start()


async def test_readiness_tells_what_the_coordinators_could_not_restore(tmp_path: Path) -> None:
    settings = {"offsets.topic.num.partitions": "2"}
    async with running_broker(tmp_path, settings) as broker:
        topic = broker.services.groups.topic
        await topic.make()
        for owner in ("group-0", "group-1", "group-2", "group-3"):
            await wait_for(topic.write(owner, [(group_key(owner), b"\x00\x09")]))
    async with running_broker(tmp_path, settings) as broker:
        await until_loaded(broker)
        assert broker.http is not None
        status, text = await http_get(broker.http, "/readyz?verbose")
        assert status == 200
        assert "[+]groups ok: 4 of __consumer_offsets were left out, see the log" in text
    segment = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    async with running_broker(tmp_path, settings) as broker:
        await until_loaded(broker)
        assert broker.http is not None
        status, text = await http_get(broker.http, "/readyz")
        assert status == 503
        assert "[-]groups failed: what __consumer_offsets-0 holds is not served" in text
        assert "[+]transactions ok" in text


async def until_loaded(broker: Broker) -> None:
    async with asyncio.timeout(20):
        while broker.services.groups.loading.is_under_way:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
