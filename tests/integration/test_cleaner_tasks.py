"""Compaction in a running broker, by a clock that the test holds."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.daemon.app import Broker
from broker.runtime.event_log import journal
from broker.tasks import cleaner
from protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.errors import ErrorCode
from protocol.records.builder import build_batch
from storage.cleaner.segment_swap import SegmentSwap
from storage.errors import DiskError
from storage.log.log import Log
from storage.posix import real_env
from storage.retention.cleanability import CleanReason
from tests.support.clients.wire import AsyncWireClient
from tests.support.records.logs import records_of
from tests.support.worlds.app import client_of, running_broker
from tests.support.worlds.moved_clock import MovedClock

DAY_MS = 86_400_000
PATIENT = {"connections.max.idle.ms": str(10**14)}
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}


async def settle(broker: Broker) -> None:
    """All that is due runs, in order, and again what that made due."""
    async with asyncio.timeout(100):
        await broker.services.tasks.settle()


async def pass_time(broker: Broker, clock: MovedClock, seconds: float) -> None:
    clock.ahead += seconds
    await settle(broker)


async def make_topic(client: AsyncWireClient, settings: Mapping[str, str], name: str = "t") -> int:
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
    response = await client.call(CreateTopicsRequest(topics=[topic]), 7)
    return response.topics[0].error_code


async def produce(client: AsyncWireClient, at: int, *records: tuple[bytes, bytes | None]) -> None:
    batch = build_batch([(at, key, value) for key, value in records])
    data = PartitionProduceData(index=0, records=batch)
    topic = TopicProduceData(name="t", partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=9000, topic_data=[topic])
    response = await client.call(request, 9)
    assert response.responses[0].partition_responses[0].error_code == 0


async def alter(client: AsyncWireClient, key: str, value: str, *, resource: int = 2) -> int:
    config = AlterableConfig(name=key, config_operation=0, value=value)
    wanted = AlterConfigsResource(
        resource_type=resource, resource_name="t" if resource == 2 else "", configs=[config]
    )
    response = await client.call(IncrementalAlterConfigsRequest(resources=[wanted]), 1)
    return response.responses[0].error_code


def log_of(broker: Broker) -> Log:
    return broker.services.topics.image.topics["t"].partitions[0].log


def values(broker: Broker) -> list[bytes | None]:
    return [record.value for record in records_of(log_of(broker))]


def raw_bytes(tmp_path: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((tmp_path / "t-0").iterdir()))


def deleted_files(tmp_path: Path) -> list[str]:
    """Files of this broker that are open and have no name any more: their space is not free."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(each.readlink()))
    return [name for name in found if str(tmp_path) in name and name.endswith(" (deleted)")]


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


@pytest.mark.parametrize("durability", ["by-acks", "os"])
async def test_an_idle_partition_meets_its_lag(
    tmp_path: Path, clock: MovedClock, lines: list[str], durability: str
) -> None:
    env = replace(real_env(), clock=clock)
    month = str(30 * DAY_MS)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        topic = {**COMPACT, "max.compaction.lag.ms": month, "horolog.durability": durability}
        assert await make_topic(client, topic) == 0
        await produce(client, clock.now_ms(), (b"a", b"secret"), (b"b", b"1"))
        await produce(client, clock.now_ms() + 10**6, (b"a", b"2"))
        await pass_time(broker, clock, 29 * DAY_MS / 1000)
        assert values(broker) == [b"secret", b"1", b"2"]
        await pass_time(broker, clock, DAY_MS / 1000 + 1)
        assert values(broker) == [b"1", b"2"]
        (line,) = (each for each in lines if "log_cleaned" in each)
        assert str(CleanReason.OVERDUE) in line
        assert "records_removed=1" in line
        await pass_time(broker, clock, 16)
        assert broker.services.cleaner.verdicts[log_of(broker)].delay_ms == 0
        await pass_time(broker, clock, 61)
        assert b"secret" not in raw_bytes(tmp_path)


async def test_what_was_erased_is_gone_from_every_file_after_both_times(
    tmp_path: Path, clock: MovedClock
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        lags = {"max.compaction.lag.ms": "3600000", "delete.retention.ms": "7200000"}
        await make_topic(client, {**COMPACT, **lags})
        await produce(client, clock.now_ms(), (b"alice@example.org", b"her address"))
        await produce(client, clock.now_ms(), (b"alice@example.org", None))
        await pass_time(broker, clock, 3601)
        assert b"her address" in raw_bytes(tmp_path), "for readers, until file.delete.delay.ms"
        await pass_time(broker, clock, 61)
        assert b"her address" not in raw_bytes(tmp_path)
        assert b"alice" in raw_bytes(tmp_path)
        await pass_time(broker, clock, 7200)
        await pass_time(broker, clock, 76)
        assert b"alice" not in raw_bytes(tmp_path)
        assert values(broker) == []
        assert log_of(broker).snapshot.log_end_offset == 2


async def test_a_log_that_cannot_be_cleaned_is_set_aside_and_tried_again(
    tmp_path: Path, clock: MovedClock, lines: list[str]
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, {**COMPACT, "max.compaction.lag.ms": "60000"})
        await produce(client, clock.now_ms(), (b"a", b"1"), (b"a", b"2"))
        log = log_of(broker)
        bit = log.snapshot.end_position - 3
        good = log.snapshot.active.file().read_at(bit, 1)
        log.snapshot.active.file().write_at(bit, bytes([good[0] ^ 1]))
        await pass_time(broker, clock, 61)
        await pass_time(broker, clock, 16)
        aside = broker.services.cleaner.set_aside[log]
        assert "00000000000000000000.log" in aside.reason
        assert any("log_not_cleaned" in line and "crc" in line for line in lines)
        await pass_time(broker, clock, 30)
        assert broker.services.cleaner.set_aside[log] == aside, "not tried again yet"
        assert broker.services.cleaner.verdicts[log].delay_ms > 0, "the delay goes on rising"
        log.snapshot.segments[0].file().write_at(bit, good)
        assert await alter(client, "delete.retention.ms", "5") == 0
        await pass_time(broker, clock, 16)
        assert values(broker) == [b"2"]
        assert broker.services.cleaner.set_aside == {}
        assert broker.services.cleaner.tally.failures == {"damage": 1}


async def test_a_bug_ends_no_other_work(
    tmp_path: Path, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, {**COMPACT, "max.compaction.lag.ms": "60000"})
        await produce(client, clock.now_ms(), (b"a", b"1"), (b"a", b"2"))

        def fail(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("storage.cleaner.cleaner.map_keys", fail)
        await pass_time(broker, clock, 61)
        await pass_time(broker, clock, 16)
        assert broker.services.cleaner.tally.failures == {"bug": 1}
        assert "ZeroDivisionError" in broker.services.cleaner.set_aside[log_of(broker)].reason
        assert values(broker) == [b"1", b"2"]


async def test_nothing_is_cleaned_while_the_clock_is_in_doubt(
    tmp_path: Path, clock: MovedClock
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, {**COMPACT, "max.compaction.lag.ms": "60000"})
        await produce(client, clock.now_ms(), (b"a", b"1"), (b"a", b"2"))
        clock.stepped_ms += 10**7
        await pass_time(broker, clock, 61)
        await pass_time(broker, clock, 500)
        assert values(broker) == [b"1", b"2"]
        await pass_time(broker, clock, 150)
        await pass_time(broker, clock, 16)
        assert values(broker) == [b"2"]


async def test_nothing_is_cleaned_by_a_cleaner_that_is_off(
    tmp_path: Path, clock: MovedClock
) -> None:
    env = replace(real_env(), clock=clock)
    settings = {**PATIENT, "log.cleaner.enable": "false"}
    async with running_broker(tmp_path, settings, env) as broker, client_of(broker) as client:
        await make_topic(client, {**COMPACT, "max.compaction.lag.ms": "60000"})
        await produce(client, clock.now_ms(), (b"a", b"1"), (b"a", b"2"))
        await pass_time(broker, clock, 61)
        await pass_time(broker, clock, 16)
        assert values(broker) == [b"1", b"2"]


async def test_compaction_and_deletion_go_together(tmp_path: Path, clock: MovedClock) -> None:
    env = replace(real_env(), clock=clock)
    topic = {
        "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.01",
        "internal.segment.bytes": "150", "retention.ms": "3600000",
    }  # fmt: skip
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, topic)
        for number in range(9):
            await produce(client, clock.now_ms(), (b"a", b"%d" % number * 40))
        await pass_time(broker, clock, 16)
        left = log_of(broker).snapshot
        assert len(values(broker)) < 4
        assert left.log_start_offset == 0
        await pass_time(broker, clock, 3900)
        assert log_of(broker).snapshot.log_start_offset == 9
        assert values(broker) == []


async def test_a_run_is_given_up_when_its_topic_is_not_compacted_any_more(
    tmp_path: Path, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who takes a mistaken policy back keeps the records that the run has not come to."""
    env, turns = replace(real_env(), clock=clock), 0
    topic = {
        "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01",
        "internal.segment.bytes": "150",
    }  # fmt: skip
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, topic)
        for number in range(9):
            await produce(client, clock.now_ms(), (b"a", b"%d" % number * 40))
        log, advance = log_of(broker), cleaner._advance

        def advanced(*args: Any) -> cleaner.Progress:
            nonlocal turns
            step = advance(*args)
            turns += step.in_turn is not None
            if turns == 3:  # the view of the log, a segment that counts, and one that is ready
                log.reconfigure(replace(log.config, cleanup_policy=frozenset({"delete"})))
            return step

        monkeypatch.setattr(cleaner, "_advance", advanced)
        await pass_time(broker, clock, 16)
        assert turns == 3
        assert values(broker) == [b"%d" % number * 40 for number in range(1, 9)]
        assert not log.compaction.is_running
        assert not [each for each in (tmp_path / "t-0").iterdir() if each.suffix == ".cleaned"]


async def test_names_that_a_run_could_not_change_keep_no_segment_in_a_log_that_is_not_compacted(
    tmp_path: Path, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later round changes them, whatever the topic's policy is by then."""
    env, finish = replace(real_env(), clock=clock), SegmentSwap.finish
    topic = {
        "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01",
        "internal.segment.bytes": "150", "retention.ms": "3600000",
    }  # fmt: skip
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, topic)
        for number in range(9):
            await produce(client, clock.now_ms(), (b"a", b"%d" % number * 40))

        def fails(swap: SegmentSwap) -> None:
            raise DiskError("t-0", "sync directory", "injected")

        monkeypatch.setattr(SegmentSwap, "finish", fails)
        await pass_time(broker, clock, 16)
        log = log_of(broker)
        assert log.compaction.unfinished is not None
        assert await alter(client, "cleanup.policy", "delete") == 0
        monkeypatch.setattr(SegmentSwap, "finish", finish)
        await pass_time(broker, clock, 16)
        assert log.compaction.unfinished is None
        await pass_time(broker, clock, 3900)
        assert values(broker) == []
        await pass_time(broker, clock, 61)
        await pass_time(broker, clock, 61)
        logs = [each.name for each in (tmp_path / "t-0").iterdir() if ".log" in each.name]
        assert logs == [f"{9:020d}.log"]


async def test_contradictory_lags_are_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        both = {"min.compaction.lag.ms": "101", "max.compaction.lag.ms": "100"}
        assert await make_topic(client, both) == ErrorCode.INVALID_CONFIG
        assert await make_topic(client, {"min.compaction.lag.ms": "50"}) == 0
        assert await alter(client, "max.compaction.lag.ms", "49") == ErrorCode.INVALID_CONFIG
        assert await alter(client, "max.compaction.lag.ms", "0") == ErrorCode.INVALID_CONFIG
        assert await alter(client, "max.compaction.lag.ms", "50") == 0
        name = "log.cleaner.min.compaction.lag.ms"
        assert await alter(client, name, "1" + "0" * 30, resource=4) == ErrorCode.INVALID_REQUEST
        most = "log.cleaner.max.compaction.lag.ms"
        assert await alter(client, most, "49", resource=4) == 0
        assert await alter(client, name, "50", resource=4) == ErrorCode.INVALID_REQUEST


async def test_the_rate_and_the_threads_follow_their_settings(
    tmp_path: Path, clock: MovedClock
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, {**COMPACT, "internal.segment.bytes": "100000"})
        await alter(client, "min.cleanable.dirty.ratio", "0.1")
        for _ in range(6):
            await produce(client, clock.now_ms(), *((b"%d" % n, bytes(1000)) for n in range(50)))
        await alter(client, "log.cleaner.io.max.bytes.per.second", "400000", resource=4)
        await alter(client, "log.cleaner.threads", "3", resource=4)
        began = real_env().clock.monotonic()
        await pass_time(broker, clock, 16)
        moved = broker.services.cleaner.last_runs[log_of(broker)].stats
        seconds = real_env().clock.monotonic() - began
        assert moved.bytes_read > 400_000
        assert seconds > (moved.bytes_read + moved.bytes_written) / 400_000 - 0.4


async def test_no_file_stays_open_that_cleaning_or_a_deletion_took_away(
    tmp_path: Path, clock: MovedClock
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        lag = {"max.compaction.lag.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
        await make_topic(client, {**COMPACT, **lag, "internal.segment.bytes": "4000"})
        for _ in range(3):
            for _ in range(6):
                await produce(client, clock.now_ms(), *((b"%d" % n, bytes(300)) for n in range(8)))
            await pass_time(broker, clock, 16)
        assert broker.services.cleaner.last_runs[log_of(broker)].stats.records_read
        assert broker.services.cleaner.memory_bytes == 0
        await pass_time(broker, clock, 61)
        await pass_time(broker, clock, 61)
        assert deleted_files(tmp_path) == []
        await client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
        await pass_time(broker, clock, 16)
        await pass_time(broker, clock, 61)
        await pass_time(broker, clock, 61)
        assert broker.services.cleaner.last_runs == {}
        assert deleted_files(tmp_path) == []
