"""Records due at the rate of a million an hour, through a whole broker by a clock that steps.

From the log to a member's answer: none comes early, 99 of 100 at most 10 ms late by that clock, and
each batch of the log is looked at once, however often something comes due.
HOROLOG_DELAYED_RECORDS (3,000) says how many; the bench cell a-million-waiting has a million.
"""

import os
import random

import pytest

from broker.share.waits.due_times import DelayTerms, DueReader, DueTimes
from protocol.records.builder import build_batch
from tests.support.worlds.handler_world import BATCH_TIME, produce_request
from tests.support.worlds.share_read_world import ACCEPT, ShareReadWorld, acquired

RECORDS = int(os.environ.get("HOROLOG_DELAYED_RECORDS", "3000"))
A_BATCH, STEP_MS, HOUR_MS, A_MILLION = 200, 5, 3_600_000, 1_000_000
FOR_EVER = 2_000_000_000
LATE_MS = 10
pytestmark = pytest.mark.timeout(60 + RECORDS // 20)


def dues_of(count: int) -> list[int]:
    """Times in the order of the log but for some seconds, as queues of jobs have."""
    dice = random.Random(3)
    span_ms = HOUR_MS * count // A_MILLION
    return [
        BATCH_TIME + 1000 + max(span_ms * number // count + dice.randrange(-3000, 3000), 1)
        for number in range(count)
    ]


async def filled(dues: list[int]) -> ShareReadWorld:
    world = ShareReadWorld(None, 0)
    await world.make_topic(partitions=1, message_timestamp_after_max_ms=str(2**62))
    await world.initialized()
    await world.configure(horolog_share_delay="record-time")
    for first in range(0, len(dues), A_BATCH):
        rows = [(at_ms, None, b"v") for at_ms in dues[first : first + A_BATCH]]
        answer = await world.call(produce_request(build_batch(rows)), 12)
        assert answer.responses[0].partition_responses[0].error_code == 0
    return world


async def test_none_is_early_and_few_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    read = DueReader.read

    def counted(self: DueReader, terms: DelayTerms, now_ms: int) -> DueTimes:
        found = read(self, terms, now_ms)
        looked.extend(each.first for each in found.batches)
        return found

    monkeypatch.setattr(DueReader, "read", counted)
    dues = dues_of(RECORDS)
    world = await filled(dues)
    member, late = world.reader(), dict[int, int]()
    waiting = member.begin(wait_ms=FOR_EVER, min_bytes=1)
    while len(late) < RECORDS:
        assert world.clock.now_ms() < max(dues) + 60_000, f"{RECORDS - len(late)} never came"
        while waiting.answer is not None:
            now_ms, got = world.clock.now_ms(), acquired(waiting.answer)
            for first, last, deliveries in got:
                assert deliveries == 1
                late |= {at: now_ms - dues[at] for at in range(first, last + 1)}
            accepted = [(first, last, ACCEPT) for first, last, _ in got]
            waiting = member.begin(*accepted, wait_ms=FOR_EVER, min_bytes=1)
            await world.turn()
        await world.pass_ms(STEP_MS)
    lateness = sorted(late.values())
    assert lateness[0] >= 0, "early"
    assert lateness[len(lateness) * 99 // 100] < LATE_MS
    assert sorted(looked) == list(range(0, RECORDS, A_BATCH)), "some batches are looked at again"
