"""The admin API of a running broker, asked as any HTTP client asks."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from broker.daemon.app import Broker
from broker.http.routes import ROUTES
from protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.apis.init_producer_id import InitProducerIdRequest
from protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.support.clients.admin import Admin, Answered
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.app import client_of, frozen_at, make_broker, running_broker

START = 1_709_121_600_000
HOUR, DAY = 3_600_000, 86_400_000
FUTURE = 4_102_444_800_000  # 2100
TOKEN = "a-token-of-some-length"


CALLERS = ThreadPoolExecutor(32, "caller")
"""Threads of clients: they must not be those that the broker in this process answers on."""

R = TypeVar("R")
P = ParamSpec("P")


async def called(work: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """What a blocking client gets."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(CALLERS, partial(work, *arguments, **named))


class World:
    """A broker with a held clock, and topics with a batch to a segment."""

    def __init__(self, broker: Broker, client: AsyncWireClient) -> None:
        self.broker = broker
        self.client = client
        self.admin = Admin(str(broker.http))

    async def commit(self, group: str, topic: str) -> None:
        """A group that has read nothing of partition 0 yet."""
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
        of = OffsetCommitRequestTopic(name=topic, partitions=[part])
        answer = await self.client.call(OffsetCommitRequest(group_id=group, topics=[of]), 9)
        assert answer.topics[0].partitions[0].error_code == 0

    async def get(self, path: str, **parameters: object) -> Any:
        return await called(self.admin.get, path, **parameters)

    async def post(self, path: str, **parameters: object) -> Any:
        return await called(self.admin.post, path, **parameters)

    async def ask(self, method: str, path: str, *more: Any, **parameters: object) -> Answered:
        return await called(self.admin.ask, method, path, *more, **parameters)

    async def segments(self, topic: str) -> list[dict[str, Any]]:
        return await called(self.admin.segments, topic)

    async def make_topic(self, name: str, partitions: int = 1, **settings: object) -> None:
        with_small = {"internal_segment_bytes": 300, **settings}
        configs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
            for key, value in with_small.items()
        ]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=configs
        )
        response = await self.client.call(CreateTopicsRequest(topics=[topic]), 7)
        assert response.topics[0].error_code == 0

    async def produce(self, topic: str, *times: int, partition: int = 0) -> None:
        for at in times:
            batch = build_batch([(at, None, b"x" * 200)])
            data = PartitionProduceData(index=partition, records=batch)
            topics = [TopicProduceData(name=topic, partition_data=[data])]
            request = ProduceRequest(acks=1, timeout_ms=9000, topic_data=topics)
            response = await self.client.call(request, 9)
            assert response.responses[0].partition_responses[0].error_code == 0


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with (
        running_broker(tmp_path / "data", held_clock=frozen_at(START)) as broker,
        client_of(broker) as client,
    ):
        yield World(broker, client)


async def test_topics_are_told_a_page_at_a_time(world: World) -> None:
    for name in ("c", "a", "b"):
        await world.make_topic(name, 2)
    await world.produce("a", START, START + 1)
    page = await world.get("/api/topics", limit=2)
    assert [each["topic"] for each in page["topics"]] == ["a", "b"]
    assert page["next"] == "b"
    rest = await world.get("/api/topics", after=page["next"])
    assert [each["topic"] for each in rest["topics"]] == ["c"]
    assert rest["next"] is None
    first = page["topics"][0]
    assert (first["partitions"], first["segments"], first["offsets"]) == (2, 3, 2)


async def test_a_topic_tells_what_decides_over_its_time(world: World) -> None:
    await world.make_topic("t", retention_ms=HOUR)
    await world.produce("t", START)
    topic = await world.get("/api/topics/t")
    assert topic["settings"]["retention.ms"] == {"value": str(HOUR), "source": "TOPIC"}
    assert topic["settings"]["horolog.retention.clock"]["source"] == "DEFAULT"
    (state,) = topic["partition_states"]
    assert (state["log_start_offset"], state["log_end_offset"]) == (0, 1)
    assert state["largest_record_time"] == {"ms": START, "iso": "2024-02-28T12:00:00.000Z"}
    assert state["offline_because"] is None


async def test_a_segment_pinned_by_the_future_says_who_until_when_and_what_frees_it(
    world: World,
) -> None:
    await world.make_topic(
        "t", horolog_retention_clock="record", message_timestamp_after_max_ms=2**62
    )
    await world.produce("t", FUTURE, START, START + 1)
    await world.post("/api/clock/step", by="8d")
    answer = await world.get("/api/topics/t/segments")
    (state,) = answer["partitions"]
    assert state["overdue_count"] == 2
    blocker = state["blocker"]
    assert (blocker["base_offset"], blocker["offset"]) == (0, 0)
    assert blocker["reason"] == "in_the_future"
    assert blocker["time"]["ms"] == FUTURE
    assert blocker["until"]["ms"] == FUTURE + 7 * DAY
    pinned, behind, *_ = state["segments"]
    assert pinned["retention"]["clock"] == "record"
    assert pinned["record_time"]["last"]["ms"] == FUTURE
    assert pinned["arrival_time"]["last"]["ms"] == START
    ways = pinned["retention"]["frees"]
    assert ways[0] == {"how": "wait", "until": blocker["until"]}
    clocks = {each["value"] for each in ways if each["how"] == "set"}
    assert clocks == {"arrival", "earlier"}
    assert {"how": "delete-records", "before_offset": 1} in ways
    assert behind["retention"]["reason"] == "behind"
    assert behind["retention"]["blocked_by"] == 0
    assert behind["retention"]["overdue_ms"] == DAY
    assert behind["retention"]["frees"][0] == {"how": "free-first", "base_offset": 0}


async def test_pages_of_segments_add_up_over_partitions(world: World) -> None:
    await world.make_topic("t", 3)
    for partition, count in ((0, 5), (2, 4)):
        await world.produce("t", *[START] * count, partition=partition)
    seen: list[tuple[int, int]] = []
    after: dict[str, str] = {}
    while True:
        page = await world.get("/api/topics/t/segments", limit=2, **after)
        assert sum(len(each["segments"]) for each in page["partitions"]) <= 2
        seen += [
            (each["partition"], segment["base_offset"])
            for each in page["partitions"]
            for segment in each["segments"]
        ]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert seen == [(0, n) for n in range(5)] + [(1, 0)] + [(2, n) for n in range(4)]


async def test_the_preview_says_what_goes_and_takes_nothing(world: World) -> None:
    await world.make_topic("t", 2)
    await world.produce("t", START, START + HOUR // 2)
    await world.post("/api/clock/step", by="2h")
    path = "/api/topics/t/retention/preview"
    unchanged = await world.get(path)
    assert unchanged["goes"]["segments"] == unchanged["goes_anyway"]["segments"] == 0
    told = await world.get(path, retention_ms="1h")
    assert told["goes"]["segments"] == 2
    assert told["goes"]["offsets"] == 2
    assert told["goes_anyway"]["segments"] == 0
    first, second = told["partitions"]
    assert (first["first_offset"], first["last_offset"], first["log_start_offset"]) == (0, 1, 2)
    assert first["oldest"]["ms"] == START
    assert first["because"] == {"older than retention.ms": 2}
    assert second["segments"] == 0
    assert (await world.get(path, cleanup_policy="compact", retention_ms="1"))["goes"][
        "segments"
    ] == 0
    await world.post("/api/clock/step", by="1h")
    assert len(await world.segments("t")) == 2
    for wrong, word in (("retention.mss=1", "retention.ms"), ("retention.ms=x", "whole number")):
        answered = await world.ask("GET", f"{path}?{wrong}")
        assert (answered.status, answered.code) == (400, "bad_setting")
        assert word in answered.message


async def test_what_is_previewed_is_what_goes(world: World) -> None:
    await world.make_topic("t", retention_ms=-1)
    await world.produce("t", START - DAY, START - HOUR, START)
    path = "/api/topics/t/retention/preview"
    now_ms = START + HOUR
    await world.post("/api/clock/step", by="1h")
    told = await world.get(path, retention_ms=2 * HOUR - 1)
    world.broker.services.config.set_topic(
        "t", {"internal.segment.bytes": "300", "retention.ms": str(2 * HOUR - 1)}
    )
    await world.post("/api/clock/step", by="5m", every="5m")
    gone = told["goes"]["segments"]
    assert gone == 2
    assert told["now"]["ms"] == now_ms
    left = [each["base_offset"] for each in await world.segments("t")]
    assert left == [told["partitions"][0]["log_start_offset"]]


async def test_times_lead_to_offsets_by_any_clock(world: World) -> None:
    await world.make_topic("t", message_timestamp_after_max_ms=2**62)
    await world.produce("t", FUTURE)
    await world.post("/api/clock/step", by="1h")
    await world.produce("t", START + HOUR)
    path = "/api/topics/t/time/lookup"
    found = await world.get(path, timestamp=START + HOUR)
    assert found["partitions"][0]["found"]["offset"] == 0
    by_arrival = await world.get(path, timestamp="2024-02-28T13:00:00Z", clock="arrival")
    assert by_arrival["partitions"][0]["found"]["offset"] == 1
    assert by_arrival["partitions"][0]["found"]["record_time"]["ms"] == START + HOUR
    assert (await world.get(path, timestamp="+1h"))["partitions"][0]["found"]["offset"] == 0
    nothing = await world.get(path, timestamp="+1h", clock="arrival")
    assert nothing["partitions"][0]["found"] is None


async def test_ranges_and_delays(world: World) -> None:
    await world.make_topic("t")
    await world.produce("t", START - HOUR, START, START + 1)
    path = "/api/topics/t/time/range"
    found = (await world.get(path, **{"from": START, "to": START + 1}))["partitions"][0]
    assert (found["first_offset"], found["last_offset"], found["records"]) == (1, 1, 1)
    empty = (await world.get(path, **{"from": 0, "to": 1000}))["partitions"][0]
    assert empty["is_empty"]
    backwards = await world.ask("GET", path, **{"from": 2, "to": 1})
    assert backwards.status == 400
    delays = (await world.get("/api/topics/t/time/skew"))["partitions"][0]
    assert (delays["records"], delays["most_ms"], delays["least_ms"]) == (3, HOUR, -1)


async def test_who_sent_bad_times(world: World) -> None:
    await world.make_topic("t", horolog_retention_clock="record", horolog_timestamp_policy="accept")
    await world.make_topic("other")
    await world.produce("t", FUTURE, START)
    answer = await world.get("/api/dirty", topic="t")
    (client,) = answer["clients"]
    assert (client["client_id"], client["address"]) == ("test", "127.0.0.1")
    assert client["worst_timestamp"]["ms"] == FUTURE
    assert client["count"] == 1
    assert (await world.get("/api/dirty", topic="other"))["clients"] == []
    assert (await world.ask("GET", "/api/dirty", topic="none")).status == 404
    blocker = (await world.get("/api/topics/t/segments"))["partitions"][0]["blocker"]
    assert blocker["clients"][0]["client_id"] == "test"


# -- what is asked wrongly, and by whom


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api", 404, "unknown_path"),
        ("GET", "/api/", 404, "unknown_path"),
        ("GET", "/api/nothing", 404, "unknown_path"),
        ("GET", "/api/topics/none", 404, "unknown_topic"),
        ("GET", "/api/topics/none/segments", 404, "unknown_topic"),
        ("GET", "/api/topics/%00%ff/segments", 400, "bad_path"),
        ("GET", "/api/topics/..%2f..%2fetc", 404, "unknown_topic"),
        ("GET", "/api/topics/t/segments?partition=1", 404, "unknown_partition"),
        ("GET", "/api/topics/t/segments?limit=0", 400, "bad_parameter"),
        ("GET", "/api/topics/t/segments?limit=99999", 400, "bad_parameter"),
        ("GET", "/api/topics/t/segments?after=x", 400, "bad_parameter"),
        ("GET", "/api/topics/t/time/lookup", 400, "bad_parameter"),
        ("GET", "/api/topics/t/time/lookup?timestamp=soon", 400, "bad_parameter"),
        ("POST", "/api/topics", 405, "method"),
        ("DELETE", "/api/topics/t", 405, "method"),
        ("GET", "/api/clock/freeze", 405, "method"),
        ("POST", "/api/clock/step", 400, "bad_parameter"),
    ],
)
async def test_a_wrong_question_is_answered_in_json(
    world: World, method: str, path: str, status: int, code: str
) -> None:
    await world.make_topic("t")
    answered = await world.ask(method, path)
    assert (answered.status, answered.code) == (status, code)
    assert answered.message
    if status == 405:
        assert answered.headers["Allow"]
    assert world.broker.services.probes.http_refusals[code] == 1


async def test_bodies_have_bounds(world: World) -> None:
    large = b'{"by": "' + b"1" * 100_000 + b'"}'
    assert (await world.ask("POST", "/api/clock/step", None, large)).code == "body_too_large"
    assert (await world.ask("POST", "/api/clock/step", None, b"{")).code == "bad_body"
    told = await world.ask("POST", "/api/clock/step", None, b'{"by": "1h"}')
    assert told.content["wall"]["ms"] == START + HOUR


async def test_a_head_is_an_answer_without_a_body(world: World) -> None:
    whole, head = await world.ask("GET", "/api/topics"), await world.ask("HEAD", "/api/topics")
    assert head.status == 200
    assert head.content is None
    assert head.headers["Content-Length"] == whole.headers["Content-Length"]
    assert (await world.ask("HEAD", "/readyz")).status == 200
    assert (await world.ask("POST", "/readyz")).status == 405


async def test_hosts_and_origins_of_others_are_refused_but_not_to_probes(world: World) -> None:
    foreign = {"Host": "evil.example"}
    assert (await world.ask("GET", "/api/topics", foreign)).code == "foreign_host"
    assert (await world.ask("GET", "/readyz", foreign)).status == 200
    page = {"Origin": "http://evil.example"}
    assert (await world.ask("POST", "/api/clock/confirm", page)).code == "foreign_origin"
    own = {"Origin": f"http://{world.admin.address}"}
    assert (await world.ask("POST", "/api/clock/confirm", own)).status == 200


async def test_without_a_held_clock_changes_need_the_token_and_moves_are_refused(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "token"
    secret.write_text(f"{TOKEN}\n")
    secret.chmod(0o600)
    settings = {"horolog.http.token.file": str(secret)}
    async with running_broker(tmp_path / "data", settings) as broker:
        admin = Admin(str(broker.http))
        ask = called
        clock = await ask(admin.get, "/api/clock")
        assert clock["test_clock"] is None
        assert (await ask(admin.ask, "POST", "/api/clock/confirm")).status == 401
        named = {"Authorization": f"Bearer {TOKEN}"}
        confirmed = await ask(admin.ask, "POST", "/api/clock/confirm", named)
        assert confirmed.content["hold_ended"] is False
        refused = await ask(admin.ask, "POST", "/api/clock/freeze", named)
        assert (refused.status, refused.code) == (409, "no_test_clock")
        assert "--test-clock" in refused.message


@pytest.mark.parametrize("content", [None, "", "short", "has blanks in it, many", "\0" * 20])
async def test_a_token_file_that_holds_none_ends_the_start(
    tmp_path: Path, content: str | None
) -> None:
    from config.errors import ConfigError

    secret = tmp_path / "token"
    if content is not None:
        secret.write_text(content)
        secret.chmod(0o600)
    broker = make_broker(tmp_path / "data", {"horolog.http.token.file": str(secret)})
    with pytest.raises(ConfigError, match=r"horolog\.http\.token\.file"):
        await broker.start()


async def test_the_document_lists_exactly_what_is_served(world: World) -> None:
    await world.make_topic("t")
    await world.commit("g", "t")
    begins = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)
    assert (await world.client.call(begins, 4)).error_code == 0
    document = await world.get("/api/openapi.json")
    listed = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
    }
    assert listed == {(route.method, route.path) for route in ROUTES}
    for path, operations in document["paths"].items():
        real = path.replace("{topic}", "t").replace("{group}", "g").replace("{transaction}", "x")
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
            answered = await world.ask(method, real)
            served = method.lower() in operations
            assert (answered.status == 405) != served, (method, path)
            is_missing = answered.status == 404
            assert not is_missing or answered.content["error"]["code"] == "unknown_group"
    names = [each["operationId"] for o in document["paths"].values() for each in o.values()]
    assert len(set(names)) == len(names)


async def test_a_slow_question_holds_up_neither_probes_nor_clients(world: World) -> None:
    await world.make_topic("t", 2)
    await world.produce("t", *[START] * 150)
    questions = [
        asyncio.create_task(world.get("/api/topics/t/segments", limit=1000)) for _ in range(20)
    ]
    assert (await world.ask("GET", "/readyz")).status == 200
    await world.produce("t", START)
    answers = await asyncio.gather(*questions)
    assert all(len(each["partitions"][0]["segments"]) >= 150 for each in answers)


async def test_what_comes_while_it_loads_is_told_to_wait(tmp_path: Path) -> None:
    broker = make_broker(tmp_path / "data")
    await broker.start()
    try:
        broker.services.readiness.lost("recovering the logs")
        admin = Admin(str(broker.http))
        refused = await called(admin.ask, "GET", "/api/topics")
        assert (refused.status, refused.code) == (503, "not_ready")
        assert refused.headers["Retry-After"]
        assert (await called(admin.get, "/api/clock"))["hold"] is None
    finally:
        broker.services.readiness.reached()
        await broker.stop()


def raw(address: str, data: bytes) -> bytes:
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        chunks = b""
        while chunk := connection.recv(65536):
            chunks += chunk
    return chunks


@pytest.mark.parametrize(
    "data",
    [
        b"GET /api/topics HTTP/1.1\r\n\r\n",
        b"GET /api/topics HTTP/1.0\r\n\r\n",
        b"GET http://evil.example/api/topics HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"POST /api/clock/step HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
        b"GET /api/topics HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
        b"BREW /api/topics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ],
)
async def test_raw_requests_that_no_client_sends_are_refused(world: World, data: bytes) -> None:
    answer = await called(raw, world.admin.address, data)
    assert not answer or answer.split()[1][:1] == b"4", answer
    if answer and b"json" in answer:
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"]
    assert (await world.ask("GET", "/api/clock")).content["wall"]["ms"] == START
