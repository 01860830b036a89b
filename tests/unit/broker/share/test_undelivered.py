"""`horolog.share.retention.hold`: retention leaves what a share group has not finished."""

from typing import Any

from broker.topics.retention_preview import preview
from storage.log.lifecycle import learn_times, plan_retention
from storage.log.log import Log
from storage.retention.plan import Reason
from tests.support.worlds.share_read_world import ACCEPT, ShareReadWorld

KEPT_MS, RETENTION_MS = 60_000, 1000
HOLD = {"horolog_share_retention_hold": "true", "horolog_share_delay_max_ms": str(KEPT_MS)}


async def made(**settings: str) -> ShareReadWorld:
    """Five records, each in a segment of its own, as old as retention allows for."""
    world = ShareReadWorld(None, 0)
    await world.make_topic(
        internal_segment_bytes="100", retention_ms=str(RETENTION_MS), retention_bytes="-1",
        message_timestamp_type="LogAppendTime",
    )  # fmt: skip
    await world.initialized()
    await world.configure(**(settings or HOLD))
    for number in range(5):
        await world.produce(b"%d" % number * 20)
    world.clock.advance(RETENTION_MS + 1)
    return world


async def finish(world: ShareReadWorld, *offsets: int) -> list[int]:
    """A member reads all there is, and accepts some of it; what it got."""
    one, got = world.reader(), list[int]()
    while ranges := await one.got():  # a fetch ends with its segment
        got += [each for first, last, _ in ranges for each in range(first, last + 1)]
    assert await one.code(*((each, each, ACCEPT) for each in offsets)) == 0
    await one.acknowledge(epoch=-1)
    return got


def log_of(world: ShareReadWorld) -> Log:
    log = world.partition().log
    assert learn_times(log, 100)
    return log


def gone(world: ShareReadWorld) -> int:
    """Segments that the next round takes; the preview says the same."""
    log, now_ms = log_of(world), world.clock.now_ms()
    decided = plan_retention(log, now_ms)
    assert preview(log, log.config, now_ms).segments == len(decided.leaving)
    return len(decided.leaving)


async def test_retention_goes_up_to_the_first_unfinished_record() -> None:
    world = await made()
    assert gone(world) == 0
    blocker = plan_retention(log_of(world), world.clock.now_ms()).blocker
    assert blocker is not None
    assert (blocker.base_offset, blocker.reason) == (0, Reason.UNDELIVERED)
    assert await finish(world, 0, 1, 3) == [0, 1, 2, 3, 4]
    assert gone(world) == 2
    again = await world.again()
    await again.configure(**HOLD)
    assert gone(again) == 2, "what is stored counts, where nobody reads"
    assert await finish(again, 2, 4) == [2, 4]
    assert gone(again) == 5


async def test_it_stays_for_no_longer_than_a_record_may_wait() -> None:
    world = await made()
    world.clock.advance(KEPT_MS - RETENTION_MS - 2)
    assert gone(world) == 0
    world.clock.advance(1)
    assert gone(world) == 5


async def test_without_the_setting_it_goes_and_a_change_counts_at_once() -> None:
    world = await made(horolog_share_delay_max_ms=str(KEPT_MS))
    assert gone(world) == 5
    await world.configure(**HOLD)
    assert gone(world) == 0
    await world.configure(horolog_share_delay_max_ms=str(KEPT_MS))
    assert gone(world) == 5


async def test_before_the_states_are_read_all_stays() -> None:
    world = await made()
    await finish(world, *range(5))
    assert gone(world) == 5
    begun: Any = ShareReadWorld(world.remains(), 1, **world.settings)
    begun.clock.advance(world.clock.now_ms() - begun.clock.now_ms())
    await begun.configure(**HOLD)
    begun.broker.share_states.begin_load()
    assert gone(begun) == 0
    await begun.loaded()
    assert gone(begun) == 5


async def test_what_other_groups_and_other_partitions_have_keeps_nothing() -> None:
    world = await made()
    await finish(world, *range(5))
    await world.configure("other", **HOLD)
    assert gone(world) == 5
    await world.initialized(group="other", start=-1)
    assert gone(world) == 5, "its start was not decided"
    await world.initialized(group="other", start=3)
    assert gone(world) == 3
