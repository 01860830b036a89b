"""Periodic work follows the broker's clock, never overlaps itself, and survives its failures."""

import asyncio

from broker.runtime.probes import BrokerProbes
from broker.tasks.runner import TaskRunner, Work


class HeldClock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return int(self.now * 1000)


def make() -> tuple[TaskRunner, HeldClock, BrokerProbes]:
    clock = HeldClock()
    probes = BrokerProbes(clock.monotonic)
    return TaskRunner(asyncio.get_running_loop(), clock, probes), clock, probes


async def test_work_is_due_by_the_injected_clock() -> None:
    runner, clock, _ = make()
    runs: list[float] = []

    async def work() -> None:
        runs.append(clock.now)

    runner.every("week", lambda: 604_800, work)
    runner.run_due()
    await asyncio.sleep(0)
    assert runs == []
    for _ in range(3):
        clock.now += 604_800
        runner.run_due()
        await asyncio.sleep(0)
    assert runs == [604_900, 1_209_700, 1_814_500]


async def test_the_interval_may_change_while_it_runs() -> None:
    runner, clock, _ = make()
    seconds, runs = [10.0], []

    async def work() -> None:
        runs.append(clock.now)

    runner.every("changing", lambda: seconds[0], work)
    clock.now += 10
    seconds[0] = 1000
    for _ in range(5):
        runner.run_due()
        await asyncio.sleep(0)
        clock.now += 10
    assert len(runs) == 1


async def test_work_does_not_overlap_itself() -> None:
    runner, clock, _ = make()
    gate, started = asyncio.Event(), []

    async def work() -> None:
        started.append(clock.now)
        await gate.wait()

    runner.every("slow", lambda: 1, work)
    for _ in range(5):
        clock.now += 10
        runner.run_due()
        await asyncio.sleep(0)
    assert len(started) == 1
    stopping = asyncio.ensure_future(runner.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    gate.set()
    await stopping


async def test_a_failure_is_counted_and_the_work_goes_on() -> None:
    runner, clock, probes = make()
    runs: list[float] = []

    async def work() -> None:
        runs.append(clock.now)
        raise OSError("no luck")

    runner.every("broken", lambda: 1, work)
    for _ in range(3):
        clock.now += 1
        runner.run_due()
        await asyncio.sleep(0)
    assert len(runs) == 3
    assert probes.failed_tasks["broken"] == 3


async def test_settling_runs_what_is_due_in_order_and_waits_for_it() -> None:
    runner, clock, _ = make()
    done: list[str] = []

    def noted(name: str, pause: float) -> Work:
        async def work() -> None:
            await asyncio.sleep(pause)
            done.append(name)

        return work

    runner.every("slow", lambda: 10, noted("slow", 0.01))
    runner.every("quick", lambda: 10, noted("quick", 0))
    runner.every("later", lambda: 1000, noted("later", 0))
    assert await runner.settle() == 0
    clock.now += 11
    assert await runner.settle() == 2
    assert done == ["slow", "quick"]
    assert await runner.settle(also=("later",)) == 1
    assert done[2:] == ["later"]


async def test_settling_runs_again_what_was_running_when_time_moved() -> None:
    runner, clock, _ = make()
    seen: list[float] = []

    async def work() -> None:
        began = clock.now
        await asyncio.sleep(0.01)
        seen.append(began)

    runner.every("work", lambda: 10, work)
    clock.now += 10
    runner.run_due()
    await asyncio.sleep(0)
    clock.now += 10
    assert await runner.settle() == 1
    assert seen == [110, 120]


async def test_settling_ends_though_the_work_is_always_due_or_fails() -> None:
    runner, clock, probes = make()

    async def work() -> None:
        clock.now += 5
        raise OSError("no luck")

    runner.every("restless", lambda: 0, work)
    assert await runner.settle() == 1
    assert probes.failed_tasks["restless"] == 1


async def test_physical_work_keeps_to_the_time_of_the_loop() -> None:
    runner, clock, _ = make()
    runs: list[float] = []

    async def work() -> None:
        runs.append(clock.now)

    runner.every("guard", lambda: 3600, work, physical=True)
    clock.now += 10**9
    assert await runner.settle() == 0
    assert runs == []


async def test_it_tells_when_a_task_runs_next() -> None:
    runner, clock, _ = make()

    async def work() -> None:
        return

    runner.every("work", lambda: 10, work, first=3)
    assert runner.due_in("work") == 3
    clock.now += 5
    assert runner.due_in("work") == -2
    await runner.settle()
    assert runner.due_in("work") == 10
    assert runner.due_in("nothing") is None


async def test_a_stop_leaves_work_that_waits_for_others_and_waits_for_all_else() -> None:
    runner, _, _ = make()
    gate, ends = asyncio.Event(), list[str]()

    async def silent() -> None:
        try:
            await gate.wait()
        finally:
            ends.append("silent")

    async def writing() -> None:
        await asyncio.sleep(0.1)
        ends.append("writing")

    runner.every("store", lambda: 0.0, silent, left_after=0.02)
    runner.every("disk", lambda: 0.0, writing)
    runner.run_due()
    await asyncio.sleep(0)
    assert not await runner.stop()
    assert ends == ["silent", "writing"]


async def test_a_stop_tells_that_all_has_ended() -> None:
    runner, _, _ = make()

    async def work() -> None:
        await asyncio.sleep(0.02)

    runner.every("store", lambda: 0.0, work, left_after=5.0)
    runner.every("never", lambda: 60.0, work)
    runner.run_due()
    await asyncio.sleep(0)
    assert await runner.stop()
