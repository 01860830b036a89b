"""Records of a share group at their time: `horolog.share.delay` and what belongs to it."""

import random
from typing import Any

import pytest

from protocol.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.errors import ErrorCode
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from tests.support.worlds.handler_world import BATCH_TIME, produce_request
from tests.support.worlds.share_read_world import (
    ACCEPT,
    RELEASE,
    ShareReadWorld,
    acquired,
    values_of,
)
from tests.support.worlds.transaction_world import Producer

SECOND_MS, DAY_MS = 1000, 86_400_000
BEGIN = BATCH_TIME
"""Wall time at which the clock of the world stands."""
FOR_EVER = 2_000_000_000


@pytest.fixture
async def world() -> ShareReadWorld:
    made = ShareReadWorld(None, 0)
    await made.make_topic(partitions=2, message_timestamp_after_max_ms=str(2**62))
    await made.initialized()
    assert made.clock.now_ms() == BEGIN
    await made.configure(horolog_share_delay="record-time")
    return made


async def send(world: ShareReadWorld, *dues: float, **how: Any) -> None:
    """One batch; each record's time is so many seconds after the begin."""
    rows = [(BEGIN + round(due * SECOND_MS), None, b"%g" % due) for due in dues]
    answer = await world.call(produce_request(build_batch(rows, **how)), 12)
    assert answer.responses[0].partition_responses[0].error_code == 0


async def test_the_golden_sequence(world: ShareReadWorld) -> None:
    """Record time, back-off of a second; a clock of 1970, and one of 2055."""
    await world.configure(horolog_share_delay="record-time", horolog_share_retry_backoff_ms="1000")
    for due in (10, 5, -BEGIN / SECOND_MS, 1_000_000_000):
        await send(world, due)
    one = world.reader()
    assert await one.got() == [(2, 2, 1)]
    assert await one.code((2, 2, ACCEPT)) == 0
    waiting = one.begin(wait_ms=FOR_EVER)
    await world.pass_ms(5 * SECOND_MS - 1)
    assert waiting.answer is None, "early"
    await world.pass_ms(1)
    assert acquired(waiting.answer) == [(1, 1, 1)]
    await world.pass_ms(SECOND_MS)
    assert await one.code((1, 1, RELEASE)) == 0
    waiting = one.begin(wait_ms=FOR_EVER)
    await world.pass_ms(SECOND_MS)
    assert acquired(waiting.answer) == [(1, 1, 2)]
    assert await one.code((1, 1, ACCEPT)) == 0
    waiting = one.begin(wait_ms=FOR_EVER)
    await world.pass_ms(3 * SECOND_MS)
    assert acquired(waiting.answer) == [(0, 0, 1)]
    assert await one.code((0, 0, ACCEPT)) == 0
    waiting = one.begin(wait_ms=FOR_EVER)
    world.clock.step(8 * DAY_MS)
    await world.time_moved()
    assert waiting.answer is None, "a clock that nobody trusts"
    world.broker.clock_watch.confirm()
    await world.time_moved()
    assert acquired(waiting.answer) == [(3, 3, 1)]
    assert await one.code((3, 3, ACCEPT)) == 0
    assert world.broker.share_reads.counts.delays_bounded == 1
    await send(world, -1)
    assert await one.got() == [(4, 4, 1)]
    assert await one.code((4, 4, ACCEPT)) == 0
    assert (world.state().start_offset, world.state().finished) == (4, 1)


@pytest.mark.parametrize("codec", list(Codec))
async def test_each_record_of_a_batch_has_its_time(codec: Codec, world: ShareReadWorld) -> None:
    await send(world, 3, -1, 1, 2, 2, codec=codec)
    one = world.reader()
    await one.got()  # packed ones are read on a lane, and come with the next
    assert await one.got() in ([(1, 1, 1)], [])
    got = []
    for _ in range(3):
        await world.pass_ms(SECOND_MS)
        answer = await one.fetch()
        got += [acquired(answer)]
        assert len(values_of(answer)) == 5, "whole batches leave"
    assert got == [[(2, 2, 1)], [(3, 4, 1)], [(0, 0, 1)]]


async def test_what_waits_is_not_in_flight(world: ShareReadWorld) -> None:
    """A record that waits for a day, and 2,500 that are finished behind it."""
    await send(world, 86_400)
    one, finished = world.reader(), 0
    await one.fetch()
    for _ in range(25):
        await send(world, *[0] * 100)
        ((first, last, count),) = await one.got()
        assert (last - first, count) == (99, 1)
        assert await one.code((first, last, ACCEPT)) == 0
        finished += 100
    assert world.broker.share_reads.partitions.in_flight == 2500
    assert world.broker.share_reads.counts.waiting == 1
    assert (world.state().start_offset, world.state().finished) == (0, 2500)
    assert len(world.state().batches) == 1
    await world.pass_ms(DAY_MS)
    assert await one.got() == [(0, 0, 1)]
    assert await one.code((0, 0, ACCEPT)) == 0
    await send(world, 0)
    assert await one.got() == [(2501, 2501, 1)]
    assert await one.code((2501, 2501, ACCEPT)) == 0
    assert world.state().start_offset == 2501


async def test_order_is_by_time_then_by_offset(world: ShareReadWorld) -> None:
    for due in (3, 1, 2, 1):
        await send(world, due)
    one = world.reader()
    assert await one.got() == []
    await world.pass_ms(3 * SECOND_MS)
    first = await one.fetch(max_records=1)
    assert acquired(first) == [(1, 1, 1)]
    second = await one.fetch(max_records=1)
    assert acquired(second) == [(3, 3, 1)]
    assert [await one.got(max_records=1) for _ in range(2)] == [[(2, 2, 1)], [(0, 0, 1)]]


async def test_a_restart_finds_again_what_waits(world: ShareReadWorld) -> None:
    await send(world, 5, -1, 3, -1)
    one = world.reader()
    assert await one.got() == [(1, 1, 1), (3, 3, 1)]
    assert await one.code((1, 1, ACCEPT), (3, 3, RELEASE)) == 0
    again = await world.again()
    await again.configure(horolog_share_delay="record-time")
    other = again.reader("m2")
    assert await other.got() == [(3, 3, 2)]
    waiting = other.begin(wait_ms=FOR_EVER)
    await again.pass_ms(3 * SECOND_MS - 1)
    assert waiting.answer is None
    await again.pass_ms(1)
    assert acquired(waiting.answer) == [(2, 2, 1)]
    await again.pass_ms(2 * SECOND_MS)
    assert await other.got() == [(0, 0, 1)]
    assert await other.got() == []


async def test_a_delay_after_arrival(world: ShareReadWorld) -> None:
    await world.configure(horolog_share_delay_ms="10000")
    one = world.reader()
    await send(world, -100, 100)
    assert await one.got() == []
    await world.pass_ms(4 * SECOND_MS)
    await send(world, 4)
    waiting = one.begin(wait_ms=FOR_EVER)
    await world.pass_ms(6 * SECOND_MS - 1)
    assert waiting.answer is None
    await world.pass_ms(1)
    assert acquired(waiting.answer) == [(0, 1, 1)]
    again = await world.again()
    await again.configure(horolog_share_delay_ms="10000")
    waiting = again.reader("m2").begin(wait_ms=FOR_EVER)
    await again.pass_ms(4 * SECOND_MS - 1)
    assert waiting.answer is None, "all came at the end of their zone, as far as is known"
    await again.pass_ms(1)
    assert acquired(waiting.answer) == [(0, 2, 1)]


async def test_the_later_of_both_counts_up_to_the_longest(world: ShareReadWorld) -> None:
    await world.configure(
        horolog_share_delay="record-time",
        horolog_share_delay_ms="2000",
        horolog_share_delay_max_ms="5000",
    )
    await send(world, 1, 3, 9)
    one = world.reader()
    got = []
    for _ in range(6):
        got += [[first for first, _, _ in await one.got()]]
        await world.pass_ms(SECOND_MS)
    assert got == [[], [], [0], [1], [], [2]]


async def test_a_header_says_when(world: ShareReadWorld) -> None:
    await world.configure(horolog_share_delay="header")
    due = BEGIN + 2 * SECOND_MS
    name = "horolog-deliver-at"
    rows = [
        (BEGIN + DAY_MS, None, b"none", []),
        (BEGIN, None, b"text", [(name, b"%d" % due)]),
        (BEGIN, None, b"bytes", [("x", None), (name, due.to_bytes(8, "big"))]),
        (BEGIN, None, b"last counts", [(name, b"0"), (name, b"%d" % (due + SECOND_MS))]),
        (BEGIN, None, b"unusable", [(name, b"next week")]),
        (BEGIN, None, b"null", [(name, None)]),
    ]
    await world.call(produce_request(build_batch(rows)), 12)
    one = world.reader()
    assert await one.got() == [(0, 0, 1), (4, 5, 1)]
    await world.pass_ms(2 * SECOND_MS - 1)
    assert await one.got() == []
    await world.pass_ms(1)
    assert await one.got() == [(1, 2, 1)]
    await world.pass_ms(SECOND_MS)
    assert await one.got() == [(3, 3, 1)]
    assert world.broker.share_reads.counts.delays_unusable == 2


async def test_no_more_wait_than_may(world: ShareReadWorld) -> None:
    await world.configure(horolog_share_delay="record-time", horolog_share_delay_max_pending="2")
    for due in (2, 1, 0):
        await send(world, due)
    one = world.reader()
    assert await one.got() == [], "what is behind is taken in later"
    assert world.broker.share_reads.counts.waiting == 2
    await world.pass_ms(SECOND_MS)
    assert await one.got() == [(1, 1, 1), (2, 2, 1)]


async def test_a_delay_that_is_set_and_taken_back(world: ShareReadWorld) -> None:
    await world.configure()
    await send(world, 5, 6)
    one = world.reader()
    assert await one.got(max_records=1, share_acquire_mode=1) == [(0, 0, 1)]
    await world.configure(horolog_share_delay="record-time")
    assert await one.got() == [], "though it was taken in already"
    await send(world, -1)
    assert await one.got() == [(2, 2, 1)]
    await world.configure()
    assert await one.got() == [(1, 1, 1)]
    assert world.broker.share_reads.counts.waiting == 0
    assert await one.code((0, 2, ACCEPT)) == 0
    await send(world, 9)
    assert await one.got() == [(3, 3, 1)]


async def test_another_delay_counts_for_what_waits(world: ShareReadWorld) -> None:
    await send(world, 100)
    one = world.reader()
    waiting = one.begin(wait_ms=FOR_EVER)
    await world.turn()
    await world.configure(horolog_share_delay="record-time", horolog_share_delay_max_ms="3000")
    await world.pass_ms(3000)
    assert await world.reader("m2").got() == [(0, 0, 1)]
    assert waiting.answer is None


async def test_a_record_that_waits_cannot_be_acknowledged(world: ShareReadWorld) -> None:
    await send(world, 0, 5, 0)
    one = world.reader()
    await one.fetch()
    refused = ErrorCode.INVALID_RECORD_STATE
    assert await one.code((0, 2, ACCEPT)) == refused
    assert await one.code((1, 1, ACCEPT)) == refused
    assert await one.code((1, 2, ACCEPT)) == refused
    assert await one.code((0, 0, ACCEPT), (2, 2, ACCEPT)) == 0


async def test_records_that_the_log_loses_while_they_wait(world: ShareReadWorld) -> None:
    await send(world, 10, 0)
    await send(world, 10, 10)
    one = world.reader()
    assert await one.got() == [(1, 1, 1)]
    assert await one.code((1, 1, ACCEPT)) == 0
    await delete_records(world, 3)
    assert await one.got() == []
    counts = world.broker.share_reads.counts
    assert (counts.lost_waiting, counts.waiting) == (2, 1)
    await world.pass_ms(10 * SECOND_MS)
    assert await one.got() == [(3, 3, 1)]


async def delete_records(world: ShareReadWorld, before: int) -> None:
    part = DeleteRecordsPartition(partition_index=0, offset=before)
    topics = [DeleteRecordsTopic(name="t", partitions=[part])]
    await world.call(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2)


async def test_aborted_and_open_transactions(world: ShareReadWorld) -> None:
    await world.configure(horolog_share_delay="record-time", share_isolation_level="read_committed")
    producer = Producer(world, "x", version=2)
    await producer.begin()
    await producer.write(b"aborted")
    one = world.reader()
    assert await one.got() == []
    await producer.end(commit=False)
    await producer.write(b"kept")
    await producer.end()
    await world.turn()
    got = await one.got()
    assert [each for each in got if each[0] == 2], got
    assert not [each for each in got if each[0] == 0], got
    for first, last, _ in got:
        assert await one.code((first, last, ACCEPT)) == 0
    await send(world, -1)
    assert await one.got() == [(4, 4, 1)]


async def test_of_a_crowd_none_is_early_and_few_are_late(world: ShareReadWorld) -> None:
    """As many a second as a million over an hour, in steps of 5 ms."""
    dice, count, span_ms = random.Random(1), 2000, 7200
    dues = [dice.randrange(1, span_ms) for _ in range(count)]
    for first in range(0, count, 500):
        await send(world, *(due / SECOND_MS for due in dues[first : first + 500]))
    one, late = world.reader(), list[int]()
    await one.fetch()
    held: list[tuple[int, int, int]] = []
    for now in range(5, span_ms + 5, 5):
        world.clock.advance(5)
        world.broker.groups.deadlines.expire()
        while got := await one.got(*held):
            held = [(first, last, ACCEPT) for first, last, _ in got]
            late += [now - dues[at] for first, last, _ in got for at in range(first, last + 1)]
        held = []
    assert len(late) == count
    assert min(late) >= 0, "early"
    assert sorted(late)[count * 99 // 100] < 10
