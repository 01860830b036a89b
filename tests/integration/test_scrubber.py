"""The check for rot in a running broker: findings are told, nothing changes, a restart goes on."""

import asyncio
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from broker.daemon.app import Broker
from broker.runtime.event_log import journal
from protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from storage.verify.scrub import scrubbable
from tests.support.clients.admin import Admin
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.app import client_of, running_broker

SMALL = {"internal.segment.bytes": "20000"}
EAGER = {
    "log.initial.task.delay.ms": "0",
    "horolog.scrub.max.bytes.per.second": "100MiB",
}
RESTING = {"log.initial.task.delay.ms": "0", "horolog.scrub.max.bytes.per.second": "0"}


async def filled(client: AsyncWireClient, name: str) -> None:
    """A topic with some closed segments."""
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in SMALL.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
    assert (await client.call(CreateTopicsRequest(topics=[topic]), 7)).topics[0].error_code == 0
    for _ in range(20):
        data = PartitionProduceData(index=0, records=build_batch([(1, None, b"x" * 5000)]))
        topics = [TopicProduceData(name=name, partition_data=[data])]
        request = ProduceRequest(acks=-1, timeout_ms=9000, topic_data=topics)
        response = await client.call(request, 9)
        assert response.responses[0].partition_responses[0].error_code == 0


def rot(path: Path, at: int = 1000) -> None:
    """One bit of a file on the disk is another."""
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


async def api(broker: Broker) -> dict[str, Any]:
    asked = Admin(str(broker.http))
    found: dict[str, Any] = await asyncio.to_thread(asked.get, "/api/scrub")
    return found


def series_of(broker: Broker, name: str) -> list[str]:
    """The lines of a metric."""
    with urllib.request.urlopen(f"http://{broker.http}/metrics") as answer:
        text: str = answer.read().decode()
    return [line for line in text.splitlines() if line.startswith(f"{name}{{")]


async def pass_ended(broker: Broker) -> None:
    async with asyncio.timeout(20):
        while broker.services.scrubber.tally.ended_ms < 0:  # noqa: ASYNC110 - nobody tells when it is over
            await asyncio.sleep(0.01)


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture(autouse=True)
def _journal(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    monkeypatch.setattr(journal, "write", lines.append)


async def test_what_rots_is_told_and_left_as_it_is(tmp_path: Path, lines: list[str]) -> None:
    async with running_broker(tmp_path / "data", RESTING) as broker, client_of(broker) as client:
        await filled(client, "good")
        await filled(client, "rotten")
    (tmp_path / "data" / "horolog-scrub-checkpoint").unlink(missing_ok=True)
    victim = tmp_path / "data" / "rotten-0" / "00000000000000000003.log"
    rot(victim)
    before = victim.read_bytes()
    async with running_broker(tmp_path / "data", EAGER) as broker:
        await pass_ended(broker)
        (faulty,) = (await api(broker))["faulty"]
        assert (faulty["topic"], faulty["partition"], faulty["base_offset"]) == ("rotten", 0, 3)
        assert faulty["findings"][0]["severity"] == "damage"
        told = [line for line in lines if "event=log_damage_found" in line]
        assert len(told) == 1
        assert "log=rotten-0" in told[0]
        (series,) = await asyncio.to_thread(series_of, broker, "horolog_scrub_faulty_segments")
        assert all(word in series for word in ('"rotten"', '"0"', '"damage"'))
        assert float(series.rpartition(" ")[2]) == 1
        assert victim.read_bytes() == before
        assert broker.services.scrubber.tally.segments_read >= 8

        rotten = broker.services.logs.logs["rotten", 0]
        end = scrubbable(rotten)[-1][1]
        await asyncio.to_thread(broker.services.logs.remove_segments, rotten, end)
        assert (await api(broker))["faulty"] == [], "what is gone is no concern any more"


async def test_a_restart_goes_on_where_the_pass_was(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running_broker(data, RESTING) as broker, client_of(broker) as client:
        for name in ("a", "b", "c"):
            await filled(client, name)
        assert broker.services.scrubber.tally.bytes_read == 0
    began = 1_700_000_000_000
    (data / "horolog-scrub-checkpoint").write_text(f"0\n1\nb 0 {began}\n")
    async with running_broker(data, {**EAGER, "horolog.scrub.interval.ms": "10000d"}) as broker:
        await pass_ended(broker)
        only_c = broker.services.scrubber.tally.segments_read
        assert only_c == len(scrubbable(broker.services.logs.logs["c", 0]))
        assert broker.services.scrubber.tally.began_ms == began
    async with running_broker(data, {**EAGER, "horolog.scrub.interval.ms": "10000d"}) as broker:
        await asyncio.sleep(0.3)
        assert broker.services.scrubber.tally.bytes_read == 0, (
            "it is over, and the next one is not due"
        )


async def test_it_keeps_to_its_rate_and_stops_at_once(tmp_path: Path) -> None:
    slow = {"log.initial.task.delay.ms": "0", "horolog.scrub.max.bytes.per.second": "1000"}
    async with running_broker(tmp_path / "data", RESTING) as broker, client_of(broker) as client:
        await filled(client, "t")
    async with running_broker(tmp_path / "data", slow) as broker:
        await asyncio.sleep(0.5)
        assert broker.services.scrubber.tally.segments_read <= 1
        assert broker.services.scrubber.tally.ended_ms < 0
