"""Many logs are closed at once: all of them, and one that fails is not forgotten."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from broker.daemon.shutdown import close_logs
from config.topic import TopicConfig
from storage.directory.log_manager import LogManager
from storage.log.appender import LogAppender
from storage.posix import real_env
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import NO_BOUNDS, append, offsets_of, records_of

CONFIG = TopicConfig(**NO_BOUNDS)
LOGS = 30


def opened(path: str, env=None) -> LogManager:
    manager = LogManager(env or real_env(), path, lambda topic: CONFIG)
    manager.open_directory("", 1)
    manager.load()
    return manager


def filled(manager: LogManager) -> LogManager:
    for number in range(LOGS):
        log = manager.create_log("t", number, UUID(int=7), CONFIG)
        append(log, 1000, 1001)
    return manager


async def test_all_are_closed_well_and_open_again_without_recovery(tmp_path: Path) -> None:
    manager = filled(opened(str(tmp_path)))
    await close_logs(asyncio.get_running_loop(), manager)
    assert all(log.is_closed for log in manager.logs.values())
    assert manager.close()
    again = opened(str(tmp_path))
    assert again.recovered_logs == 0
    assert [offsets_of(records_of(log)) for log in again.logs.values()] == [[0, 1]] * LOGS
    assert again.close()


async def test_one_that_fails_leaves_no_clean_mark() -> None:
    env = sim_env()
    manager = filled(opened("/data", env))
    env.fs.inject("sync", path="t-17/")  # type: ignore[attr-defined]
    await close_logs(asyncio.get_running_loop(), manager)
    assert not manager.close()
    again = opened("/data", env)
    assert again.recovered_logs


async def test_no_fsync_waits_for_the_files_of_logs_that_were_closed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All are durable before the first index is made, all are made before the first is synced."""
    env = sim_env()
    manager = filled(opened("/data", env))
    logs = list(manager.logs.values())
    dirty_when_made = []
    made_when_synced = []
    write_out, sync_out = LogAppender.write_out, LogAppender.sync_out

    def made(appender: LogAppender) -> None:
        dirty_when_made.append(sum(log.dirty_bytes for log in logs))
        write_out(appender)

    def synced(appender: LogAppender) -> None:
        made_when_synced.append(len(dirty_when_made))
        sync_out(appender)

    monkeypatch.setattr(LogAppender, "write_out", made)
    monkeypatch.setattr(LogAppender, "sync_out", synced)
    assert all(log.dirty_bytes for log in logs)
    await close_logs(asyncio.get_running_loop(), manager)
    assert set(dirty_when_made) == {0}
    assert len(made_when_synced) == LOGS <= min(made_when_synced)
