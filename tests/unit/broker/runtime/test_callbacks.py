"""Whoever calls what others gave it survives their errors, counts them, and tells of them."""

import asyncio

import pytest

from broker.partitions.fetch_waiters import FetchWaiters
from broker.partitions.writer_gate import WriterGate
from broker.runtime import callbacks
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after
from tests.unit.broker.partitions.test_group_commit import FakeLog, committing, until
from tests.unit.broker.tasks.test_runner import make


def broken(*_: object) -> None:
    raise ZeroDivisionError


def failed_at(caller: str) -> int:
    return callbacks.failures[caller]


async def test_fetches_that_wait_are_answered_beside_a_broken_one() -> None:
    waiters, answered, before = FetchWaiters(asyncio.get_running_loop()), [], 0
    before = failed_at("waiting_fetch")
    waiters.register(["a"], 1, 60_000, broken)
    waiters.register(["a"], 1, 60_000, lambda: answered.append("second"))
    waiters.wake("a", 1)
    waiters.answer_woken()
    assert answered == ["second"]
    assert failed_at("waiting_fetch") == before + 1


async def test_one_sync_answers_the_others_beside_a_broken_waiter() -> None:
    async with committing() as (commit, _):
        first, second, answered = FakeLog(), FakeLog(), []
        before = failed_at("commit")
        commit.request(first, first.write(), broken)
        commit.request(first, first.write(), lambda _: answered.append("same log"))
        commit.request(second, second.write(), lambda _: answered.append("other log"))
        await until(lambda: len(answered) == 2)
        commit.request(first, first.write(), lambda _: answered.append("later"))
        await until(lambda: len(answered) == 3)
        assert failed_at("commit") == before + 1


async def test_a_failed_sync_is_told_to_the_others_beside_a_broken_waiter() -> None:
    async with committing() as (commit, events):
        log, told = FakeLog(), []
        log.error = OSError("disk")
        commit.request(log, log.write(), broken)
        commit.request(log, log.write(), told.append)
        await until(lambda: len(told) == 1)
        assert told == events.failed


async def test_a_broken_change_gives_its_turn_back() -> None:
    turns, began, refused = WriterGate(), [], []
    turns.take(lambda: began.append("first"), refused.append)
    turns.take(broken, refused.append)
    turns.take(lambda: began.append("third"), refused.append)
    turns.end()
    assert began == ["first", "third"]
    assert [type(error) for error in refused] == [ZeroDivisionError]
    turns.end()
    assert not turns.waiting


async def test_a_change_that_ended_before_it_broke_takes_no_other_turn() -> None:
    turns, began = WriterGate(), []

    def ends_and_breaks() -> None:
        turns.end()
        broken()

    turns.take(ends_and_breaks, began.append)
    turns.take(lambda: began.append("next"), began.append)
    assert began[-1] == "next"
    assert len(turns.waiting) == 1


async def test_a_broken_listener_does_not_reach_who_answers_it() -> None:
    answer: Deferred[int] = Deferred()
    answer.listen(broken)
    before = failed_at("answer")
    answer.resolve(1)
    assert failed_at("answer") == before + 1


@pytest.mark.parametrize("outcome", ["value", "error"])
async def test_an_answer_that_cannot_be_made_is_an_error_and_no_silence(outcome: str) -> None:
    source: Deferred[int] = Deferred()
    told: list[BaseException | None] = []
    after(source, broken, broken).listen(lambda _, error: told.append(error))
    if outcome == "value":
        source.resolve(1)
    else:
        source.fail(ValueError())
    assert len(told) == 1
    assert isinstance(told[0], ZeroDivisionError | ValueError)


async def test_a_task_whose_interval_is_broken_keeps_no_other_from_its_time() -> None:
    runner, clock, _ = make()
    runs: list[float] = []
    broken_now = [False]

    def interval() -> float:
        return 1 / (0 if broken_now[0] else 1)

    async def work() -> None:
        runs.append(clock.now)

    runner.every("broken", interval, work)
    runner.every("sound", lambda: 1.0, work)
    broken_now[0] = True
    clock.now += 2
    runner.run_due()
    await asyncio.sleep(0)
    assert runs == [clock.now]
