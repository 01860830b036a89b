"""Back-off between deliveries to a share group: `horolog.share.retry.backoff.ms`."""

import pytest

from tests.support.worlds.share_read_world import (
    ACCEPT,
    LOCK_MS,
    RELEASE,
    ShareReadWorld,
    acquired,
    share_read_world,
)

THREE = (b"0", b"1", b"2")
SECOND_MS = 1000


@pytest.fixture
async def world() -> ShareReadWorld:
    made = await share_read_world()
    await made.configure(horolog_share_retry_backoff_ms="1000")
    await made.produce(*THREE)
    return made


async def test_a_released_record_comes_after_the_back_off_twice_as_late_each_time(
    world: ShareReadWorld,
) -> None:
    one = world.reader()
    waiting = one.begin(wait_ms=600_000)
    for wait_s in (1, 2, 4):
        await world.turn()
        assert waiting.answer.responses[0].partitions[0].acquired_records[0].first_offset == 0
        assert await one.code((0, 0, RELEASE)) == 0
        waiting = one.begin(wait_ms=600_000)
        await world.pass_ms(wait_s * SECOND_MS - 1)
        assert waiting.answer is None, "early"
        await world.pass_ms(1)
    assert acquired(waiting.answer) == [(0, 0, 4)]


async def test_the_back_off_has_an_upper_bound(world: ShareReadWorld) -> None:
    await world.configure(
        horolog_share_retry_backoff_ms="1000", horolog_share_retry_backoff_max_ms="1500"
    )
    one = world.reader()
    await one.got()
    for count in (2, 3):
        assert await one.code((1, 1, RELEASE)) == 0
        await world.pass_ms(1499 if count > 2 else 999)
        assert await one.got() == []
        await world.pass_ms(1)
        assert await one.got() == [(1, 1, count)]


async def test_records_of_different_counts_wait_for_themselves(world: ShareReadWorld) -> None:
    one = world.reader()
    await one.got()
    assert await one.code((0, 0, RELEASE)) == 0
    await world.pass_ms(SECOND_MS)
    assert await one.got() == [(0, 0, 2)]
    assert await one.code((0, 1, RELEASE)) == 0
    await world.pass_ms(SECOND_MS)
    assert await one.got() == [(1, 1, 2)]
    await world.pass_ms(SECOND_MS)
    assert await one.got() == [(0, 0, 3)]


async def test_the_end_of_a_lock_begins_a_back_off(world: ShareReadWorld) -> None:
    one, other = world.reader("m1"), world.reader("m2")
    await one.got()
    waiting = other.begin(wait_ms=600_000)
    await world.pass_ms(LOCK_MS)
    await world.pass_ms(SECOND_MS - 1)
    assert waiting.answer is None
    await world.pass_ms(1)
    assert acquired(waiting.answer) == [(0, 2, 2)]


async def test_the_end_of_a_session_begins_none(world: ShareReadWorld) -> None:
    one, other = world.reader("m1"), world.reader("m2")
    await one.got()
    await other.fetch()
    await one.acknowledge(epoch=-1)
    assert await other.got() == [(0, 2, 2)]


async def test_new_records_do_not_wait_for_those_that_do(world: ShareReadWorld) -> None:
    one = world.reader()
    await one.got()
    assert await one.code((0, 2, RELEASE)) == 0
    await world.produce(b"new")
    assert await one.got() == [(3, 3, 1)]
    await world.pass_ms(SECOND_MS)
    assert await one.got() == [(0, 2, 2)]


async def test_a_worker_that_comes_back_waits_too(world: ShareReadWorld) -> None:
    """The last session ends; what waits is remembered until its time."""
    one = world.reader()
    await one.got()
    await one.acknowledge((0, 2, RELEASE), epoch=-1)
    partitions = world.broker.share_reads.partitions
    assert partitions.count == 1
    again = world.reader("m2")
    assert await again.got() == []
    await world.pass_ms(SECOND_MS)
    assert await again.got() == [(0, 2, 2)]
    await again.acknowledge((0, 2, RELEASE), epoch=-1)
    assert partitions.count == 1
    await world.pass_ms(2 * SECOND_MS)
    assert partitions.count == 0


async def test_a_restart_forgets_the_back_off(world: ShareReadWorld) -> None:
    one = world.reader()
    await one.got()
    assert await one.code((0, 1, RELEASE), (2, 2, ACCEPT)) == 0
    again = await world.again()
    assert await again.reader("m2").got() == [(0, 1, 2)]


async def test_a_back_off_ends_when_it_began_though_the_setting_changed(
    world: ShareReadWorld,
) -> None:
    one = world.reader()
    await one.got()
    assert await one.code((0, 0, RELEASE)) == 0
    await world.configure(horolog_share_retry_backoff_ms="0")
    assert await one.got() == []
    assert await one.code((1, 1, RELEASE)) == 0
    assert await one.got() == [(1, 1, 2)]
    await world.pass_ms(SECOND_MS)
    assert await one.got() == [(0, 0, 2)]
