"""Waiting fetches wake by bytes, by deadline, or because their partition changed; each once."""

import asyncio
import gc
from weakref import ref

from broker.partitions.fetch_waiters import FetchWaiters


class Woken:
    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, name: str) -> None:
        self.names.append(name)


async def settle() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def make() -> tuple[FetchWaiters, Woken]:
    return FetchWaiters(asyncio.get_running_loop()), Woken()


async def test_enough_bytes_over_several_partitions_wake() -> None:
    waiters, woken = make()
    waiters.register(["a", "b"], 100, 60_000, lambda: woken("x"))
    waiters.wake("a", 60)
    await settle()
    assert woken.names == []
    waiters.wake("b", 40)
    await settle()
    assert woken.names == ["x"]
    assert len(waiters) == 0


async def test_the_callback_runs_after_the_caller_returned_and_only_once() -> None:
    waiters, woken = make()
    waiters.register(["a"], 1, 60_000, lambda: woken("x"))
    waiters.wake("a", 5)
    waiters.wake("a", 5)
    assert woken.names == []
    await settle()
    assert woken.names == ["x"]


async def test_what_a_callback_knows_is_freed_once_it_has_run() -> None:
    """A fetch's knows its waiter, and its request: a circle would stay until a collection."""
    waiters, woken = make()
    gc.disable()
    try:
        request = ref(_wait_as_a_fetch(waiters, woken))
        waiters.wake("a", 5)
        await settle()
        assert woken.names == ["x"]
        assert request() is None
    finally:
        gc.enable()


class Asked:
    """What a fetch asks."""


def _wait_as_a_fetch(waiters: FetchWaiters, woken: Woken) -> Asked:
    request = Asked()

    def answer() -> None:
        assert request is not None
        woken("x" if waiter.done else "y")

    waiter = waiters.register(["a"], 1, 60_000, answer)
    return request


async def test_other_partitions_do_not_wake() -> None:
    waiters, woken = make()
    waiters.register(["a"], 1, 60_000, lambda: woken("x"))
    waiters.wake("b", 1000)
    await settle()
    assert woken.names == []
    assert len(waiters) == 1


async def test_deadlines_fire_in_their_order() -> None:
    waiters, woken = make()
    waiters.register(["a"], 1, 30, lambda: woken("later"))
    waiters.register(["a"], 1, 5, lambda: woken("sooner"))
    async with asyncio.timeout(10):
        while len(woken.names) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert woken.names == ["sooner", "later"]


async def test_a_cancelled_waiter_stays_silent_even_when_already_woken() -> None:
    waiters, woken = make()
    first = waiters.register(["a"], 1, 60_000, lambda: woken("first"))
    second = waiters.register(["a"], 1, 60_000, lambda: woken("second"))
    waiters.cancel(first)
    waiters.wake("a", 1)
    waiters.cancel(second)
    await settle()
    assert woken.names == []
    assert len(waiters) == 0


async def test_who_gives_up_is_told_once_that_it_is_over() -> None:
    waiters, woken = make()
    waiter = waiters.register(["a"], 1, 60_000, lambda: woken("x"))
    waiters.give_up(waiter)
    waiters.give_up(waiter)
    assert waiter.is_over
    await settle()
    assert woken.names == ["x"]
    assert len(waiters) == 0


async def test_a_partition_that_goes_away_wakes_everybody_there() -> None:
    waiters, woken = make()
    waiters.register(["a", "b"], 10**9, 60_000, lambda: woken("x"))
    waiters.register(["b"], 10**9, 60_000, lambda: woken("y"))
    waiters.wake_all("a")
    await settle()
    assert woken.names == ["x"]
    waiters.complete_all()
    await settle()
    assert woken.names == ["x", "y"]


async def test_many_finished_waiters_leave_no_memory_behind() -> None:
    waiters, woken = make()
    for number in range(5000):
        waiters.register([number % 7], 1, 600_000, lambda: woken("x"))
        waiters.wake(number % 7, 1)
    await settle()
    assert len(woken.names) == 5000
    assert len(waiters._deadlines) < 200
    assert not waiters._by_key


async def test_time_that_the_loop_does_not_know_of_ends_waits() -> None:
    waiters, woken = make()
    short = waiters.register(["a"], 1, 60_000, lambda: woken("short"))
    long = waiters.register(["a"], 1, 600_000, lambda: woken("long"))
    waiters.pass_over(59)
    await settle()
    assert woken.names == []
    assert waiters.remaining_ms(short) <= 1000
    waiters.pass_over(2)
    await settle()
    assert woken.names == ["short"]
    assert short.is_over
    assert not long.is_over
    assert 530_000 < waiters.remaining_ms(long) <= 539_000
    waiters.complete_all()
    await settle()
    assert long.is_over


async def test_who_is_woken_by_data_may_wait_on() -> None:
    waiters, woken = make()
    waiter = waiters.register(["a"], 1, 60_000, lambda: woken("x"))
    waiters.wake("a", 1)
    await settle()
    assert not waiter.is_over
    assert 59_000 < waiters.remaining_ms(waiter) <= 60_000
