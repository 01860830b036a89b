"""Partitions with more to copy than a round has time for, and those beside them."""

from typing import Any

import pytest

from storage.log.log import Log
from tests.support.records.logs import append, make_durable
from tests.unit.broker.tier.test_room import LOW, SCARCE, TOPIC, ShortWorld

SEGMENT_SECONDS = 2
INTERVAL_SECONDS = 30


class SlowLane:
    """Runs work at once; a copy of the busy partition takes its time, and others look on."""

    def __init__(self, world: "BusyWorld") -> None:
        self._world = world

    def run(self, work: Any, *args: object) -> Any:
        answer = self._world.lanes.run(work, *args)
        self._world.worked()
        return answer


class BusyWorld(ShortWorld):
    """`busy` is written as fast as it is copied; `calm` sometimes."""

    def __init__(self) -> None:
        super().__init__()
        self.rest = 400
        self.calm_ends: list[int] = []
        slow: Any = SlowLane(self)
        parts = self.tiering._parts
        self.tiering._parts = parts._replace(tier=self.tier._replace(copies=slow))
        self._seen = 0

    def log_of(self, topic: str) -> Log:
        return self.broker.topics.image.topics[topic].partitions[0].log

    def segment(self, topic: str) -> None:
        log = self.log_of(topic)
        append(log, self.clock.now_ms(), value=b"x" * 100)
        log.roll()
        make_durable(log)

    def worked(self) -> None:
        """After each piece of work: of copies of the busy one, time has passed."""
        known = self.tier.remote.logs.get(("busy", 0))
        copied = 0 if known is None else known.uploaded_end
        if copied == self._seen or not self.rest:
            return
        self._seen = copied
        self.rest -= 1
        self.clock.advance(SEGMENT_SECONDS * 1000)
        self.segment("busy")
        if self.rest == 390:
            self.segment("calm")  # after the calm one was visited
        self.calm_ends.append(self.log_of("calm").tiers.uploaded_end)


@pytest.fixture
async def world() -> BusyWorld:
    world = BusyWorld()
    for name in ("busy", "calm"):
        await world.make_topic(name, **TOPIC)
    world.segment("busy")
    world.segment("calm")
    return world


async def test_a_partition_that_never_has_all_copied_keeps_no_other_one_waiting(
    world: BusyWorld,
) -> None:
    await world.tiering.run()
    assert world.rest == 0
    waited = world.calm_ends.index(2) - 10
    assert waited * SEGMENT_SECONDS <= INTERVAL_SECONDS + SEGMENT_SECONDS
    assert world.log_of("calm").snapshot.local_start_offset == 1, "and what may leave has"


async def test_what_a_round_has_left_is_copied_at_once(world: BusyWorld) -> None:
    await world.tiering.run()
    log = world.log_of("busy")
    assert log.tiers.uploaded_end == log.snapshot.log_end_offset == 401


async def test_the_trash_does_not_wait_for_a_backlog(world: BusyWorld) -> None:
    seen: list[int] = []
    world.store.delete = lambda keys: seen.append(world.rest)  # type: ignore[method-assign]
    world.tier.trash.put(["object"], 40_000)
    await world.tiering.run()
    assert seen[0] >= 400 - (40 + INTERVAL_SECONDS) // SEGMENT_SECONDS - 1


@pytest.mark.parametrize("free_bytes", [SCARCE, LOW])
async def test_rounds_are_short_while_space_is_scarce(world: BusyWorld, free_bytes: int) -> None:
    world.disk.leave(free_bytes)
    world.broker.disk_space.look()
    await world.tiering.run()
    assert world.calm_ends.index(2) - 10 <= 2
