"""A disk that refuses writes: producers hear it, and so does the operator."""

import pytest

from broker.partitions.refused_writes import LATELY_SECONDS
from broker.runtime.event_log import journal
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import World


@pytest.fixture
async def world() -> World:
    return World()


async def refuse(world: World, error: str = "eio") -> None:
    world.fs.inject("write", path=".log", error=error)
    assert (await world.produce(b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("error", ["eio", "enospc"])
async def test_it_is_counted_and_makes_the_broker_unready_for_a_minute(
    world: World, error: str
) -> None:
    await world.make_topic()
    assert world.refused_writes.fault is None
    await refuse(world, error)
    assert world.broker.probes.refused_writes == 1
    assert "t-0" in (world.refused_writes.fault or "")
    assert (await world.produce(b"a")).error_code == 0, "the next one succeeds"
    world.clock.advance(round(LATELY_SECONDS * 1000))
    assert world.refused_writes.fault is None


async def test_the_log_has_a_line_a_minute(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(journal, "write", lines.append)
    await world.make_topic()
    for _ in range(3):
        await refuse(world)
    assert [line for line in lines if "event=write_refused" in line] == lines
    assert len(lines) == 1
    world.clock.advance(round(LATELY_SECONDS * 1000))
    await refuse(world)
    assert len(lines) == 2
    assert world.broker.probes.refused_writes == 4


async def test_what_a_producer_did_wrong_is_none(world: World) -> None:
    await world.make_topic()
    assert (await world.produce(b"a", topic="other")).error_code != 0
    assert world.broker.probes.refused_writes == 0
