"""One fsync answers everybody who came before it, its thread never acts on the loop's behalf, and a
failed one is final.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from broker.partitions import group_commit
from broker.partitions.group_commit import HOLD_FACTOR, GroupCommit, flush_bytes_of_this_machine
from broker.partitions.sync_thread import VOUCH_SECONDS
from broker.runtime.callbacks import failures
from broker.runtime.probes import BrokerProbes

FLUSH_BYTES = 1_000_000


class FakeLog:
    """A log of numbers: `end` is written, `durable_offset` is safe, `gate` holds a sync up."""

    def __init__(self) -> None:
        self.end = 0
        self.durable_offset = 0
        self.dirty_bytes = 0
        self.first_dirty_at: float | None = None
        self.syncs = self.vouches = 0
        self.vouch_error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None
        self.threads: set[int] = set()

    def write(self, size: int = 1) -> int:
        self.end += 1
        self.dirty_bytes += size
        return self.end

    def sync(self) -> int:
        end, dirty = self.end, self.dirty_bytes
        self.gate.wait(10)
        self.syncs += 1
        self.threads.add(threading.get_ident())
        if self.error is not None:
            raise self.error
        self.dirty_bytes -= dirty
        return end

    def vouch(self) -> None:
        self.vouches += 1
        if self.vouch_error is not None:
            raise self.vouch_error

    def mark_durable(self, offset: int) -> None:
        assert threading.get_ident() not in self.threads
        self.durable_offset = offset


class Events:
    def __init__(self) -> None:
        self.durable: list[FakeLog] = []
        self.failed: list[Exception] = []


@asynccontextmanager
async def committing(interval_seconds: float = 3600) -> AsyncIterator[tuple[GroupCommit, Events]]:
    loop = asyncio.get_running_loop()
    events = Events()
    commit = GroupCommit(
        loop,
        time.monotonic,
        BrokerProbes(time.monotonic),
        interval_seconds=interval_seconds,
        interval_bytes=1000,
        flush_bytes=FLUSH_BYTES,
        on_durable=events.durable.append,
        on_failed=lambda log, error: events.failed.append(error),
    )
    try:
        yield commit, events
    finally:
        await commit.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_one_sync_answers_all_that_came_while_another_ran() -> None:
    async with committing() as (commit, events):
        log, done = FakeLog(), []
        log.gate.clear()
        commit.request(log, log.write(), lambda error: done.append(0))
        await asyncio.sleep(0.02)
        for number in range(1, 50):
            commit.request(log, log.write(), lambda error, n=number: done.append(n))
        log.gate.set()
        await until(lambda: len(done) == 50)
        assert done == list(range(50))
        assert log.syncs == 2
        assert events.durable == [log, log]


async def test_who_wrote_while_a_sync_ran_waits_for_the_next_one() -> None:
    async with committing() as (commit, _):
        log, synced = FakeLog(), []
        log.gate.clear()
        commit.request(log, log.write(), lambda error: synced.append(log.durable_offset))
        await until(lambda: log in commit._syncing)
        await asyncio.sleep(0.02)
        commit.request(log, log.write(), lambda error: synced.append(log.durable_offset))
        log.gate.set()
        await until(lambda: len(synced) == 2)
        assert synced == [1, 2]


async def test_what_is_durable_already_needs_no_sync() -> None:
    async with committing() as (commit, _):
        log, done = FakeLog(), []
        log.durable_offset = 5
        commit.request(log, 5, done.append)
        assert done == [None]
        assert log.syncs == 0


async def test_logs_are_synced_independently() -> None:
    async with committing() as (commit, _):
        logs, done = [FakeLog() for _ in range(20)], []
        for log in logs:
            commit.request(log, log.write(), done.append)
        await until(lambda: len(done) == 20)
        assert all(log.durable_offset == 1 for log in logs)


async def test_a_failed_sync_tells_every_waiter_and_the_log() -> None:
    async with committing() as (commit, events):
        log, done = FakeLog(), []
        log.error = OSError("the disk is gone")
        log.gate.clear()
        commit.request(log, log.write(), done.append)
        commit.request(log, log.write(), done.append)
        log.gate.set()
        await until(lambda: len(done) == 2)
        assert done == [log.error, log.error]
        assert events.failed == [log.error]
        assert log.durable_offset == 0
        assert events.durable == []


async def test_interval_durability_syncs_after_the_interval() -> None:
    async with committing(interval_seconds=0.01) as (commit, _):
        log = FakeLog()
        log.write(10)
        assert not commit.written(log, 10)
        await until(lambda: log.durable_offset == 1)
        assert log.syncs == 1
        assert commit.unsynced_bytes == 0


async def test_interval_durability_syncs_at_once_when_enough_was_written() -> None:
    async with committing() as (commit, _):
        log = FakeLog()
        log.write(600)
        commit.written(log, 600)
        await asyncio.sleep(0.02)
        assert log.syncs == 0
        log.write(600)
        commit.written(log, 600)
        await until(lambda: log.syncs == 1)


async def test_what_nobody_promised_is_left_to_the_system() -> None:
    async with committing(interval_seconds=0.001) as (commit, _):
        log = FakeLog()
        log.write(5000)
        assert not commit.written(log, 5000, interval=False)
        await asyncio.sleep(0.02)
        assert log.syncs == 0
        assert commit.unsynced_bytes == 5000


async def test_too_much_unsynced_data_slows_the_producer_not_the_loop() -> None:
    async with committing() as (commit, _):
        log, done = FakeLog(), []
        log.gate.clear()
        log.write(FLUSH_BYTES * HOLD_FACTOR)
        assert not commit.written(log, FLUSH_BYTES * HOLD_FACTOR, interval=False)
        offset = log.write(1)
        assert commit.written(log, 1, interval=False)
        commit.request(log, offset, done.append)
        log.gate.set()
        await until(lambda: len(done) == 1)
        await until(lambda: commit.unsynced_bytes == 0)


async def test_a_log_that_is_dirty_for_too_long_is_synced() -> None:
    async with committing() as (commit, _):
        young, old = FakeLog(), FakeLog()
        for log, age in ((young, 1), (old, 100)):
            log.write(10)
            log.first_dirty_at = time.monotonic() - age
            commit.written(log, 10, interval=False)
        commit.flush_older_than(lambda log: 50, time.monotonic())
        await until(lambda: old.syncs == 1)
        await asyncio.sleep(0.01)
        assert young.syncs == 0


async def test_much_unsynced_data_is_synced_whatever_was_promised() -> None:
    async with committing() as (commit, _):
        log = FakeLog()
        log.write(FLUSH_BYTES)
        assert not commit.written(log, FLUSH_BYTES, interval=False)
        log.write(1)
        assert not commit.written(log, 1, interval=False)
        await until(lambda: log.syncs == 1)
    assert flush_bytes_of_this_machine() >= 64 * 1024 * 1024


async def test_what_idle_logs_left_unsynced_is_synced_in_place_of_many_small_appends() -> None:
    """Logs of which the system is to decide, and that fill the bound all but for one percent."""
    async with committing() as (commit, _):
        idle, busy = [FakeLog() for _ in range(10)], FakeLog()
        for log in idle:
            log.write(FLUSH_BYTES * 99 // 1000)
            commit.written(log, FLUSH_BYTES * 99 // 1000, interval=False)
        for _ in range(50):
            busy.write(FLUSH_BYTES // 50)
            commit.written(busy, FLUSH_BYTES // 50, interval=False)
            await until(lambda: commit.unsynced_bytes <= FLUSH_BYTES)
        assert max(each.syncs for each in idle) == 1
        assert busy.syncs < 10


async def test_much_unsynced_data_in_small_logs_leaves_threads_to_others() -> None:
    async with committing() as (commit, _):
        logs = [FakeLog() for _ in range(1001)]
        for log in logs:
            log.write(FLUSH_BYTES // 1000)
            commit.written(log, FLUSH_BYTES // 1000, interval=False)
        await until(lambda: commit.unsynced_bytes <= FLUSH_BYTES)
        await until(lambda: not commit._syncing)
        assert sum(each.syncs for each in logs) <= group_commit.FLUSH_LOGS


async def test_a_promise_is_kept_while_much_is_unsynced() -> None:
    async with committing(interval_seconds=0.01) as (commit, _):
        large, small = FakeLog(), FakeLog()
        large.gate.clear()
        large.write(FLUSH_BYTES + 1)
        commit.written(large, FLUSH_BYTES + 1, interval=False)
        await until(lambda: bool(commit._syncing))
        small.write(10)
        commit.written(small, 10)
        await until(lambda: small.syncs == 1)
        large.gate.set()
        await until(lambda: commit.unsynced_bytes == 0)


async def test_several_logs_are_synced_side_by_side_and_each_by_one_thread() -> None:
    async with committing() as (commit, _):
        slow, logs, done = FakeLog(), [FakeLog() for _ in range(3)], []
        slow.gate.clear()
        commit.request(slow, slow.write(), done.append)
        await asyncio.sleep(0.01)
        for log in (slow, *logs):
            commit.request(log, log.write(), done.append)
        await until(lambda: len(done) == 3)
        assert slow.syncs == 0
        slow.gate.set()
        await until(lambda: len(done) == 5)
        assert slow.syncs == 2


async def test_a_forgotten_log_answers_its_waiters() -> None:
    async with committing() as (commit, _):
        log, done = FakeLog(), []
        log.gate.clear()
        commit.request(log, log.write(), done.append)
        commit.forget(log)
        assert done == [None]
        log.gate.set()


async def test_the_mark_comes_after_the_answer_and_once_for_many_syncs() -> None:
    async with committing() as (commit, _):
        log, answered = FakeLog(), []
        for _ in range(20):
            commit.request(log, log.write(), answered.append)
            seen = len(answered)
            await until(lambda seen=seen: len(answered) > seen)
        syncs, vouches = log.syncs, log.vouches
        assert syncs == 20 > 2 * vouches
        await until(lambda: log.vouches > vouches)
        settled = log.vouches
        await asyncio.sleep(3 * VOUCH_SECONDS)
        assert log.vouches == settled, "nothing was synced since"


async def test_marks_are_made_however_busy_it_is() -> None:
    async with committing() as (commit, _):
        log, answered = FakeLog(), []
        while not log.vouches:
            commit.request(log, log.write(), answered.append)
            seen = len(answered)
            await until(lambda seen=seen: len(answered) > seen)


async def test_a_mark_that_fails_stops_no_other_log() -> None:
    async with committing() as (commit, _):
        bad, good, answered = FakeLog(), FakeLog(), []
        bad.vouch_error = ValueError("nobody expected this")
        before = failures["commit"]
        for log in (bad, good):
            commit.request(log, log.write(), answered.append)
        await until(lambda: bool(bad.vouches and good.vouches))
        await until(lambda: failures["commit"] > before)
        commit.request(bad, bad.write(), answered.append)
        await until(lambda: len(answered) == 3)


async def test_what_was_synced_last_is_marked_before_the_end() -> None:
    log, answered = FakeLog(), []
    async with committing() as (commit, _):
        commit.request(log, log.write(), answered.append)
        await until(lambda: bool(answered))
    assert log.vouches == 1


class Threadless:
    """Lets so many threads start, then none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, free: int) -> None:
        self.free = free
        start = threading.Thread.start

        def limited(thread: threading.Thread) -> None:
            if thread.name == "group-commit":
                if self.free <= 0:
                    raise RuntimeError("can't start new thread")
                self.free -= 1
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", limited)


async def test_without_a_thread_who_waits_is_served_once_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = Threadless(monkeypatch, 0)
    monkeypatch.setattr(group_commit, "RETRY_SECONDS", 0.01)
    before = failures["commit"]
    async with committing() as (commit, _):
        logs, answers = [FakeLog() for _ in range(3)], list[BaseException | None]()
        for log in logs:
            commit.request(log, log.write(), answers.append)
        await until(lambda: failures["commit"] > before + 1)
        assert answers == []
        threads.free = 4
        await until(lambda: answers == [None] * 3)


async def test_the_threads_that_there_are_take_the_work_of_those_that_cannot_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Threadless(monkeypatch, 1)
    async with committing() as (commit, _):
        logs, answers = [FakeLog() for _ in range(5)], list[BaseException | None]()
        for log in logs:
            commit.request(log, log.write(), answers.append)
        await until(lambda: answers == [None] * 5)
