"""A broker that stops while its tier's round is under way."""

import asyncio
from typing import Any

import pytest

from broker.tasks.runner import TaskRunner
from storage.errors import LogOffline
from tests.support.records.logs import append, make_durable
from tests.unit.broker.tier.test_room import TOPIC, ShortWorld

COPIERS = 10  # at a time, by the settings


class SilentLane:
    """Nothing that it runs ever ends, from the call with a number on."""

    def __init__(self, lane: Any, calls: int) -> None:
        self._lane, self._rest = lane, calls
        self.fell_silent = asyncio.Event()

    def run(self, work: Any, *args: object) -> Any:
        self._rest -= 1
        if self._rest >= 0:
            return self._lane.run(work, *args)
        self.fell_silent.set()
        return asyncio.get_running_loop().create_future()


class SilentWorld(ShortWorld):
    """Some partitions with segments to copy, and a store that falls silent."""

    def silent_after(self, calls: int) -> SilentLane:
        lane = SilentLane(self.lanes, calls)
        silent: Any = lane
        parts = self.tiering._parts
        self.tiering._parts = parts._replace(tier=self.tier._replace(copies=silent))
        return lane

    def segments(self, topic: str, count: int) -> None:
        log = self.partition(topic).log
        for _ in range(count):
            append(log, self.clock.now_ms(), value=b"x" * 100)
            log.roll()
        make_durable(log)


@pytest.fixture
async def world() -> SilentWorld:
    world = SilentWorld()
    for number in range(12):
        await world.make_topic(f"t{number}", **TOPIC)
        world.segments(f"t{number}", 3)
    return world


@pytest.mark.parametrize("calls", [0, 1, 2, 3, 5, 8, 13, 30])
async def test_a_stop_does_not_wait_for_a_store_that_says_nothing(
    world: SilentWorld, calls: int
) -> None:
    lane = world.silent_after(calls)
    runner = TaskRunner(asyncio.get_running_loop(), world.clock, world.broker.probes)
    runner.every("tier", lambda: 0.0, world.tiering.run, first=0.0, left_after=0.02)
    runner.run_due()
    async with asyncio.timeout(20):
        await lane.fell_silent.wait()
    world.tiering.stop()
    async with asyncio.timeout(10):
        assert not await runner.stop()


async def test_a_stop_begins_no_other_copy_and_no_other_partition(world: SilentWorld) -> None:
    tiering, puts = world.tiering, list[str]()
    before = world.store.put_file

    def put_file(key: str, parts: Any, size_bytes: int) -> None:
        puts.append(key)
        tiering.stop()
        before(key, parts, size_bytes)

    world.store.put_file = put_file  # type: ignore[method-assign]
    await tiering.run()
    topics = {key.split("/")[1] for key in puts}
    assert len(topics) == COPIERS
    assert len(puts) == 2 * COPIERS, "of one segment each: its records, and its side files"
    ends = {name: each.uploaded_end for (name, _), each in world.tier.remote.logs.items()}
    assert ends == dict.fromkeys(topics, 1), "what was under way counts"
    await tiering.run()
    assert len(puts) == 2 * COPIERS


async def test_nothing_is_written_into_a_directory_once_the_round_was_left(
    world: SilentWorld,
) -> None:
    await world.tiering.run()
    world.tier.remote.retire_all()
    world.segments("t0", 1)
    tiered = world.tier.remote.of(world.partition("t0").log)
    with pytest.raises(LogOffline):
        tiered.copy_next(lambda size: None)
    assert tiered.uploaded_end == 3
