"""Retention and the roll timer in a running broker, by a clock that the test holds."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from broker.daemon.app import Broker
from broker.metrics.scrape import Scrape
from broker.runtime.event_log import journal
from protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from storage.log.log import Log
from storage.posix import real_env
from storage.retention.plan import Reason
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.app import client_of, running_broker
from tests.support.worlds.moved_clock import MovedClock, pass_time

DAY = 86_400
PATIENT = {"connections.max.idle.ms": str(10**12)}
SMALL = {"internal.segment.bytes": "200", "message.timestamp.after.max.ms": str(2**62)}


async def make_topic(client: AsyncWireClient, settings: Mapping[str, str]) -> None:
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
    response = await client.call(CreateTopicsRequest(topics=[topic]), 7)
    assert response.topics[0].error_code == 0


async def produce(client: AsyncWireClient, at: int, count: int = 1) -> None:
    for _ in range(count):
        batch = build_batch([(at, None, b"x" * 100)])
        data = PartitionProduceData(index=0, records=batch)
        topic = TopicProduceData(name="t", partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=9000, topic_data=[topic])
        response = await client.call(request, 9)
        assert response.responses[0].partition_responses[0].error_code == 0


async def alter(client: AsyncWireClient, key: str, value: str) -> None:
    config = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    response = await client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert response.responses[0].error_code == 0


def log_of(broker: Broker) -> Log:
    return broker.services.topics.image.topics["t"].partitions[0].log


def files(tmp_path: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in (tmp_path / "t-0").glob(pattern))


def metric(broker: Broker, name: str) -> float:
    text = Scrape(broker.services).text()[1].decode()
    (line,) = (each for each in text.splitlines() if each.startswith(name))
    return float(line.rpartition(" ")[2])


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the broker logs."""
    written: list[str] = []
    monkeypatch.setattr(journal, "write", written.append)
    monkeypatch.setattr(journal, "threshold", 20)
    return written


async def test_old_segments_go_files_follow_and_the_log_says_why(
    tmp_path: Path, clock: MovedClock, lines: list[str]
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, {**SMALL, "retention.ms": "3600000"})
        await produce(client, clock.now_ms(), 3)
        await pass_time(broker, clock, 3000)
        await produce(client, clock.now_ms())
        assert log_of(broker).snapshot.log_start_offset == 0
        await pass_time(broker, clock, 700)
        snapshot = log_of(broker).snapshot
        assert (snapshot.log_start_offset, snapshot.log_end_offset) == (3, 4)
        assert files(tmp_path, "*.log") == ["00000000000000000003.log"]
        assert len(files(tmp_path, "*.log.deleted")) == 3
        (line,) = (each for each in lines if "segments_removed" in each)
        assert str(Reason.TIME) in line
        assert "segments=3" in line
        assert "log_start_offset=3" in line
        assert metric(broker, "horolog_retention_removed_segments_total") == 3
        await pass_time(broker, clock, 61)
        assert files(tmp_path, "*.deleted") == []


async def test_one_time_in_the_future_pins_by_record_time_and_nothing_by_default(
    tmp_path: Path, clock: MovedClock, lines: list[str]
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, {**SMALL, "horolog.retention.clock": "record"})
        await produce(client, clock.now_ms() + 3650 * DAY * 1000)
        await produce(client, clock.now_ms(), 2)
        await pass_time(broker, clock, 8 * DAY)
        assert log_of(broker).snapshot.log_start_offset == 0
        assert metric(broker, "horolog_retention_blocked_segments") == 2
        assert metric(broker, "horolog_retention_overdue_seconds") >= DAY - 1
        (line,) = (each for each in lines if "retention_blocked" in each)
        assert str(Reason.IN_THE_FUTURE) in line
        await pass_time(broker, clock, DAY)
        assert len([each for each in lines if "retention_blocked" in each]) == 1
        await alter(client, "horolog.retention.clock", "earlier")
        await pass_time(broker, clock, 301)
        assert log_of(broker).snapshot.log_start_offset == 3
        assert metric(broker, "horolog_retention_blocked_segments") == 0
        assert metric(broker, "horolog_retention_overdue_seconds") == 0


async def test_size_and_deleted_records_free_their_segments(
    tmp_path: Path, clock: MovedClock
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, {**SMALL, "retention.ms": "-1", "retention.bytes": "700"})
        await produce(client, clock.now_ms(), 8)
        await pass_time(broker, clock, 31)
        snapshot = log_of(broker).snapshot
        assert 700 <= snapshot.size_bytes < 1000
        assert snapshot.log_start_offset == 8 - len(snapshot.segments)
        partition = DeleteRecordsPartition(partition_index=0, offset=-1)
        topic = DeleteRecordsTopic(name="t", partitions=[partition])
        response = await client.call(DeleteRecordsRequest(topics=[topic], timeout_ms=9000), 2)
        assert response.topics[0].partitions[0].low_watermark == 8
        await pass_time(broker, clock, 301)
        assert len(log_of(broker).snapshot.segments) == 1


async def test_an_idle_segment_rolls_by_the_timer_though_its_time_lies_in_the_future(
    tmp_path: Path, clock: MovedClock
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, {**SMALL, "segment.ms": "60000"})
        await produce(client, clock.now_ms() + 10**10)
        await pass_time(broker, clock, 50)
        assert len(log_of(broker).snapshot.segments) == 1
        await pass_time(broker, clock, 12)
        assert [each.base_offset for each in log_of(broker).snapshot.segments] == [0, 1]
        await pass_time(broker, clock, 600)
        assert len(log_of(broker).snapshot.segments) == 2
        async with asyncio.timeout(10):
            while not log_of(broker).snapshot.segments[0].synced:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_a_shorter_segment_time_counts_at_once_and_after_a_restart(
    tmp_path: Path, clock: MovedClock
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, SMALL)
        await produce(client, clock.now_ms())
        await pass_time(broker, clock, 100)
        await alter(client, "segment.ms", "90000")
        await pass_time(broker, clock, 1)
        assert len(log_of(broker).snapshot.segments) == 2
        await produce(client, clock.now_ms())
    clock.ahead += 100
    async with running_broker(tmp_path, env=env) as broker:
        assert len(log_of(broker).snapshot.segments) == 2
        await pass_time(broker, clock, 1)
        assert [each.base_offset for each in log_of(broker).snapshot.segments] == [0, 1, 2]


async def test_a_sick_partition_does_not_keep_the_others(tmp_path: Path, clock: MovedClock) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, {**SMALL, "retention.ms": "1000"})
        await produce(client, clock.now_ms(), 2)
        (tmp_path / "t-0").rename(tmp_path / "elsewhere")
        await pass_time(broker, clock, 31)
        (tmp_path / "elsewhere").rename(tmp_path / "t-0")
        assert broker.services.probes.failed_tasks["retention"] == 0
        await pass_time(broker, clock, 301)
        assert log_of(broker).snapshot.log_start_offset == 2


class SteppedClock(MovedClock):
    """As above; `stepped` moves the wall clock alone."""

    stepped = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.stepped


@pytest.mark.parametrize("step", [3600, 7 * DAY + 60, 3650 * DAY], ids=lambda step: f"{step}s")
async def test_after_a_step_of_the_clock_nothing_goes_by_time_until_the_hold_is_over(
    tmp_path: Path, step: int
) -> None:
    clock = SteppedClock()
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, {**SMALL, "retention.ms": "1000000", "segment.ms": "1000000"})
        await produce(client, clock.now_ms(), 3)
        clock.stepped = step * 1000
        await pass_time(broker, clock, 301)
        await pass_time(broker, clock, 290)
        assert metric(broker, "horolog_clock_hold") == 1
        assert metric(broker, "horolog_broker_clock_steps_total") == 1
        assert log_of(broker).snapshot.log_start_offset == 0
        assert len(log_of(broker).snapshot.segments) == 3
        await pass_time(broker, clock, 311)
        assert metric(broker, "horolog_clock_hold") == 0
        assert log_of(broker).snapshot.log_start_offset == 3


async def test_a_start_with_a_clock_far_ahead_deletes_nothing_at_first(tmp_path: Path) -> None:
    clock = SteppedClock()
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, SMALL)
        await produce(client, clock.now_ms(), 3)
    clock.stepped = 30 * DAY * 1000
    async with running_broker(tmp_path, PATIENT, env) as broker:
        await pass_time(broker, clock, 500)
        assert log_of(broker).snapshot.log_start_offset == 0
        clock.stepped = 0
        await pass_time(broker, clock, 400)
        assert log_of(broker).snapshot.log_start_offset == 0
        await pass_time(broker, clock, 900)
        assert log_of(broker).snapshot.log_start_offset == 0
