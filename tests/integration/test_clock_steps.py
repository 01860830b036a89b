"""Steps of the wall clock, through the admin port: nothing goes in the hold, and then what is due.

Every step is tried with each of the retention clocks. What must happen after the hold is computed
here from the times of the records and their arrivals alone.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker.daemon.app import Broker
from protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.support.clients.admin import Admin
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.app import client_of, frozen_at, running_broker

START = 1_709_121_600_000  # 2024-02-28
MINUTE, HOUR, DAY, YEAR = 60_000, 3_600_000, 86_400_000, 31_557_600_000
HOLD = 10 * MINUTE
CLOCKS = ("record", "arrival", "earlier", "later")
RETENTION, SEGMENT_MS = 2 * HOUR, 3 * HOUR
RECORDS = (-3 * HOUR, -HOUR, 0, 30 * MINUTE)  # against their arrival
STEPS = {
    "+1h": HOUR,
    "-1h": -HOUR,
    "+7d": 7 * DAY,
    "-7d": -7 * DAY,
    "+10y": 10 * YEAR,
    "-10y": -10 * YEAR,
    "to 1970": -START,
    "to 2106": 4_294_967_296_000 - START,
}


class World:
    """A broker whose clock is held, in this process; its admin port, and a client."""

    def __init__(self, broker: Broker, client: AsyncWireClient) -> None:
        self.broker = broker
        self.client = client
        self.admin = Admin(str(broker.http))

    async def post(self, path: str, **parameters: object) -> Any:
        return await asyncio.to_thread(self.admin.post, path, **parameters)

    async def segments(self, topic: str) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self.admin.segments, topic)

    async def make_topic(self, name: str, **settings: object) -> None:
        configs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
            for key, value in settings.items()
        ]
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
        response = await self.client.call(CreateTopicsRequest(topics=[topic]), 7)
        assert response.topics[0].error_code == 0

    async def produce(self, topic: str, at_ms: int) -> int:
        batch = build_batch([(at_ms, None, b"x" * 200)])
        data = PartitionProduceData(index=0, records=batch)
        topics = [TopicProduceData(name=topic, partition_data=[data])]
        request = ProduceRequest(acks=1, timeout_ms=9000, topic_data=topics)
        response = await self.client.call(request, 9)
        code: int = response.responses[0].partition_responses[0].error_code
        return code


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with (
        running_broker(tmp_path / "data", held_clock=frozen_at(START)) as broker,
        client_of(broker) as client,
    ):
        yield World(broker, client)


def leaving(clock: str, now_ms: int) -> int:
    """How many of the segments of `RECORDS` go: from the oldest on, until the first that stays."""
    for index, offset in enumerate(RECORDS):
        record = START + offset
        judged = {
            "record": record,
            "arrival": START,
            "earlier": min(record, START),
            "later": max(record, START),
        }[clock]
        if now_ms - judged <= RETENTION:
            return index
    return len(RECORDS)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
async def test_nothing_goes_or_ends_in_the_hold_and_then_what_is_due(
    world: World, step: int
) -> None:
    for clock in CLOCKS:
        await world.make_topic(
            clock,
            internal_segment_bytes=300,
            retention_ms=RETENTION,
            horolog_retention_clock=clock,
        )
        for offset in RECORDS:
            assert await world.produce(clock, START + offset) == 0
    await world.make_topic("idle", segment_ms=SEGMENT_MS, retention_ms=-1)
    await world.make_topic("untimed", segment_ms=SEGMENT_MS, retention_ms=-1)
    for topic, at in (("idle", START), ("untimed", -1)):
        assert await world.produce(topic, at) == 0

    moved = await world.post("/api/clock/step", by=step, clock="wall")
    assert moved["wall"]["ms"] == START + step
    assert moved["hold"]["because"] == "clock_stepped"
    assert moved["hold"]["by_ms"] == step
    await world.post("/api/clock/step", by=HOLD - MINUTE, every="1m")
    assert await world.produce("untimed", -1) == 0
    before = {name: await world.segments(name) for name in (*CLOCKS, "idle", "untimed")}
    for clock in CLOCKS:
        first = before[clock][0]["retention"]
        assert len(before[clock]) == len(RECORDS), clock
        expected_held = leaving(clock, START + step + HOLD - MINUTE) > 0
        assert (first["reason"] == "held") == expected_held
    assert len(before["idle"]) == len(before["untimed"]) == 1

    over = await world.post("/api/clock/step", by="10m", every="1m")
    assert over["hold"] is None
    assert over["steps_seen"] == 1
    now_ms = over["wall"]["ms"]
    is_ended = START - now_ms > 7 * DAY  # arrived by a clock that was wrong: segment.ms is over
    for clock in CLOCKS:
        left = [each["base_offset"] for each in await world.segments(clock)]
        gone = leaving(clock, now_ms)
        is_emptied = gone == len(RECORDS)
        assert left == list(range(gone, len(RECORDS) + (is_emptied or is_ended))), clock
    is_due = now_ms > START + SEGMENT_MS or START - now_ms > SEGMENT_MS
    assert len(await world.segments("idle")) == 1 + is_due


@pytest.mark.parametrize("step", [7 * DAY, -7 * DAY], ids=["+7d", "-7d"])
async def test_an_operator_who_confirms_ends_the_hold(world: World, step: int) -> None:
    await world.make_topic("t", internal_segment_bytes=300, retention_ms=RETENTION)
    await world.produce("t", START)
    await world.post("/api/clock/step", by=step, clock="wall")
    await world.post("/api/clock/step", by="5m")
    assert len(await world.segments("t")) == 1
    confirmed = await world.post("/api/clock/confirm")
    assert confirmed["hold_ended"]
    assert confirmed["hold"] is None
    await world.post("/api/clock/step", by="5m")
    (left,) = await world.segments("t")
    assert left["base_offset"] == (1 if step > 0 else 0)
    assert not (await world.post("/api/clock/confirm"))["hold_ended"]


async def test_a_clock_that_goes_astray_and_comes_back_takes_nothing_with_it(world: World) -> None:
    await world.make_topic("t", internal_segment_bytes=300, retention_ms=RETENTION)
    for offset in RECORDS:
        await world.produce("t", START + offset)
    for step in (10 * YEAR, -20 * YEAR, 10 * YEAR):
        await world.post("/api/clock/step", by=step, clock="wall")
        await world.post("/api/clock/step", by="1m")
    await world.post("/api/clock/step", by="15m", every="1m")
    left = [each["base_offset"] for each in await world.segments("t")]
    assert left == list(range(leaving("earlier", START + 18 * MINUTE), len(RECORDS)))


async def test_what_arrives_while_the_clock_is_astray_is_kept_by_its_record_time(
    world: World,
) -> None:
    """Arrival never runs backwards: a clock that was ahead leaves arrivals behind it."""
    settings = {"internal_segment_bytes": 300, "retention_ms": RETENTION}
    await world.make_topic("t", **settings, message_timestamp_before_max_ms=2**62)
    await world.post("/api/clock/step", by=10 * YEAR, clock="wall")
    await world.produce("t", START)
    await world.post("/api/clock/step", by=-10 * YEAR, clock="wall")
    await world.produce("t", START)
    await world.post("/api/clock/step", by="1h", every="1m")
    assert len(await world.segments("t")) == 2
    await world.post("/api/clock/step", by="2h", every="10m")
    (left,) = await world.segments("t")
    assert (left["base_offset"], left["size_bytes"]) == (2, 0)
