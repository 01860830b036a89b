"""The store is tried out once at a time, whoever asks whether the broker may copy."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker.runtime.lanes import DiskLanes
from storage.env import Buffer
from storage.tier.names import is_probe
from tests.support.tier.memory_store import MemoryStore
from tests.unit.broker.tier.test_sweep import SweptWorld

YOUNG = {"horolog_tier_orphan_min_age_ms": "0"}


class SlowProbe(MemoryStore):
    """The second put of the first probe waits until the test lets it go on."""

    def __init__(self, now_ms: Any) -> None:
        super().__init__(now_ms)
        self.probes: list[str] = []
        self.waits, self.go_on = threading.Event(), threading.Event()

    def put_new(self, key: str, data: Buffer) -> None:
        if is_probe(key) and key in self.probes[:1]:
            self.waits.set()
            assert self.go_on.wait(30)
        elif is_probe(key):
            self.probes.append(key)
        super().put_new(key, data)


class ProbedWorld(SweptWorld):
    """One whose store is slow to be tried out."""

    store: SlowProbe

    def made_store(self) -> SlowProbe:
        return SlowProbe(self.clock.now_ms)

    async def sweep_twice(self) -> None:
        """What the first one finds, the second one removes."""
        for _ in range(2):
            await self.sweep.run()
            self.clock.advance(86_400_000)


@pytest.fixture
async def world() -> AsyncIterator[ProbedWorld]:
    lanes = DiskLanes(asyncio.get_running_loop())
    world = ProbedWorld(lanes.wide_lane("copies", 4), **YOUNG)
    yield world
    world.store.go_on.set()
    await lanes.close()


async def test_a_sweep_does_not_remove_what_the_store_is_tried_out_with(
    world: ProbedWorld,
) -> None:
    asked = asyncio.ensure_future(world.standing.may_copy())
    assert await asyncio.to_thread(world.store.waits.wait, 30)
    sweeps = asyncio.ensure_future(world.sweep_twice())
    await asyncio.wait({sweeps}, timeout=0.3)
    world.store.go_on.set()
    assert await asked, world.standing.refused
    await sweeps
    assert not world.standing.refused
    assert len(world.store.probes) == 1
    assert world.tier.tally.sweeps == 2


async def test_a_try_that_nobody_waits_for_any_longer_is_not_alone_beside_the_next_one(
    world: ProbedWorld,
) -> None:
    given_up = asyncio.ensure_future(world.standing.may_copy())
    assert await asyncio.to_thread(world.store.waits.wait, 30)
    given_up.cancel()
    await asyncio.wait({given_up})
    sweeps = asyncio.ensure_future(world.sweep_twice())
    await asyncio.wait({sweeps}, timeout=0.3)
    assert len(world.store.probes) == 1
    world.store.go_on.set()
    await sweeps
    assert await world.standing.may_copy(), world.standing.refused
