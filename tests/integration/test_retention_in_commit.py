"""A round of retention that meets records on their way to the disk has nothing to warn of."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from broker.tasks import retention
from broker.tasks.retention import Retention
from tests.support.worlds.handler_world import World, produce_request
from tests.support.worlds.handler_world import batch as batch_of

HOUR_MS = 3_600_000


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(
        retention, "event", lambda name, level="info", **fields: found.append((name, fields))
    )
    return found


async def rounds(world: World) -> Retention:
    world.broker.clock_watch = SimpleNamespace(look=lambda: False)
    await world.make_topic(retention_ms=str(HOUR_MS), horolog_retention_clock="record")
    broker = world.broker
    return Retention(broker.topics, broker.logs, world.clock, broker.clock_watch, broker.lane)


def write(world: World) -> Any:
    """An old record, acknowledged once it is durable."""
    records = batch_of(b"v", at=world.clock.now_ms() - 3 * HOUR_MS)
    return world.begin(produce_request(records, acks=-1), 12)


async def test_records_in_mid_commit_block_nothing(told: list[Any]) -> None:
    world = World()
    each = await rounds(world)
    for _ in range(3):
        answer = write(world)
        await each.run()
        verdict = each.verdicts[world.partition().log]
        assert (verdict.overdue_segments, verdict.next_deadline_ms) == (0, None)
        world.clock.advance(300_000)
        world.commit.sync()
        await world.settled(answer)
    assert told == []
    await each.run()
    assert [name for name, _ in told] == ["segments_removed"]


async def test_a_high_watermark_that_stands_still_is_told(told: list[Any]) -> None:
    world = World()
    each = await rounds(world)
    answer = write(world)
    await each.run()
    await each.run()
    assert told == []
    world.clock.advance(int(retention.COMMIT_SECONDS * 1000))
    await each.run()
    await each.run()
    ((name, fields),) = told
    assert name == "retention_blocked"
    assert fields["because"] == "holds offsets above the high watermark"
    assert each.verdicts[world.partition().log].overdue_segments == 1
    world.commit.sync()
    await asyncio.wait_for(world.settled(answer), 5)
