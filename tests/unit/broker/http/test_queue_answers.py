"""Answers about queues: every record of a share group by range, and where each partition stands."""

from collections.abc import Iterator
from typing import Any

import pytest

from broker.http.port.caller import EVERYBODY
from broker.http.port.messages import ApiError
from broker.http.port.parameters import Asked, understood
from broker.http.port.route import HttpRoute
from broker.http.resources import share_groups, share_records
from broker.http.timeline import queues
from broker.server.services import bound
from broker.share.waits import due_ranges
from protocol.records.builder import build_batch
from tests.support.worlds.handler_world import BATCH_TIME, produce_request
from tests.support.worlds.share_read_world import (
    ACCEPT,
    LOCK_MS,
    REJECT,
    RELEASE,
    ShareReadWorld,
    share_read_world,
)

BACKOFF_MS = 1000


def ask(world: ShareReadWorld, route: HttpRoute[Any], group: str = "g", **given: Any) -> Any:
    texts = {name: str(value) for name, value in given.items()}
    now_ms = world.clock.now_ms()
    fields, _ = understood(texts, route.parameters, now_ms, takes_settings=False)
    assert route.read is not None
    services = bound(route.services, world.broker)
    return route.read(services, Asked({"group": group}, fields, {}, EVERYBODY))


(RECORDS,) = share_records.ROUTES
GROUPS, GROUP = share_groups.ROUTES
(QUEUES,) = queues.ROUTES


def pages(world: ShareReadWorld, **given: Any) -> Iterator[dict[str, Any]]:
    """All ranges, page by page."""
    after: dict[str, str] = {}
    while True:
        answer = ask(world, RECORDS, **{**given, **after})
        yield from answer["records"]
        if answer["next"] is None:
            return
        after = {"after": answer["next"]}


def brief(each: dict[str, Any]) -> tuple[int, int, str, int]:
    return each["first"], each["last"], each["state"], each["deliveries"]


async def test_each_record_that_is_not_done_is_listed_with_its_state() -> None:
    world = await share_read_world()
    await world.configure(
        horolog_share_retry_backoff_ms=str(BACKOFF_MS), share_delivery_count_limit="2"
    )
    await world.produce(*(b"%d" % number for number in range(6)))
    one = world.reader()
    now_ms = world.clock.now_ms()
    assert await one.got() == [(0, 5, 1)]
    assert await one.code((0, 0, ACCEPT), (1, 1, RELEASE), (3, 3, ACCEPT), (4, 4, REJECT)) == 0
    found = list(pages(world))
    assert [brief(each) for each in found] == [
        (1, 1, "backing_off", 1), (2, 2, "acquired", 1), (3, 3, "acknowledged", 1),
        (4, 4, "archived", 1), (5, 5, "acquired", 1),
    ]  # fmt: skip
    wait, held, done = found[:3]
    assert (held["member"], held["since"]["ms"]) == ("m1", now_ms)
    assert held["until"]["ms"] == now_ms + LOCK_MS
    assert (wait["member"], wait["until"]["ms"]) == (None, now_ms + BACKOFF_MS)
    assert (held["record_time"]["ms"], held["arrival"]["ms"]) == (BATCH_TIME + 2, now_ms)
    assert (done["record_time"], done["arrival"]) == (None, None)
    assert [brief(each) for each in pages(world, limit=1)] == [brief(each) for each in found]
    assert list(pages(world, partition=1)) == list(pages(world, topic="other")) == []


async def test_of_a_group_that_nobody_reads_in_what_is_stored_is_listed() -> None:
    world = await share_read_world()
    await world.produce(b"0", b"1", b"2")
    one = world.reader()
    assert await one.got() == [(0, 2, 1)]
    assert await one.code((1, 1, ACCEPT)) == 0
    again = await world.again()
    (done,) = pages(again)
    assert brief(done) == (1, 1, "acknowledged", 1)
    (state,) = ask(again, GROUP)["partitions"]
    assert (state["in_memory"], state["start"]) == (False, 0)


async def test_records_that_wait_say_when_they_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_ranges, "PIECE_BYTES", 1)
    world = ShareReadWorld(None, 0)
    await world.make_topic(message_timestamp_after_max_ms=str(2**62))
    await world.initialized()
    await world.configure(horolog_share_delay="record-time")
    now_ms = world.clock.now_ms()
    for dues in ((5000, -1, 5000), (7000, 7000)):
        rows = [(now_ms + due, None, b"") for due in dues]
        answer = await world.call(produce_request(build_batch(rows)), 12)
        assert answer.responses[0].partition_responses[0].error_code == 0
    assert await world.reader().got() == [(1, 1, 1)]
    found = list(pages(world, limit=2))
    assert [brief(each) for each in found] == [
        (0, 0, "waiting", 0), (1, 1, "acquired", 1), (2, 2, "waiting", 0), (3, 4, "waiting", 0),
    ]  # fmt: skip
    dues = [each["due"] and each["due"]["ms"] - now_ms for each in found]
    assert dues == [5000, None, 5000, 7000]
    (state,) = ask(world, GROUP)["partitions"]
    assert (state["waiting"], state["records"]["acquired"]) == (4, 1)


async def test_dead_letters_are_counted_by_partition_and_reason() -> None:
    world = await share_read_world()
    await world.make_topic("dlq.t", errors_deadletterqueue_group_enable="true")
    await world.configure(errors_deadletterqueue_topic_name="dlq.t")
    await world.produce(b"0", b"1", b"2")
    one = world.reader()
    await one.got()
    assert await one.code((0, 1, REJECT)) == 0
    (state,) = ask(world, GROUP)["partitions"]
    assert state["letters"] == {"rejected": 2, "limit": 0}


async def test_the_oldest_unfinished_record_comes_first() -> None:
    world = await share_read_world()
    for partition, group in ((1, "g"), (0, "other")):
        await world.initialized("t", partition, group)
    await world.produce(b"0")
    world.clock.advance(60_000)
    await world.produce(b"0", partition=1)
    world.clock.advance(1000)
    answer = ask(world, QUEUES)
    shown = [
        (each["group"], each["partition"], each["oldest_arrival_seconds"])
        for each in answer["queues"]
    ]
    assert shown == [("g", 0, 61.0), ("other", 0, 61.0), ("g", 1, 1.0)]
    assert "held" not in answer["queues"][0]
    answer = ask(world, QUEUES, limit=1, topic="t")
    assert (len(answer["queues"]), answer["queues_in_all"]) == (1, 3)
    listed = ask(world, GROUPS)["groups"]
    assert [(each["group"], each["oldest_arrival_seconds"]) for each in listed] == [
        ("g", 61.0), ("other", 61.0),
    ]  # fmt: skip


async def test_strange_questions_are_refused() -> None:
    world = await share_read_world()
    for given in ({"after": "t"}, {"after": "t:x:0"}, {"limit": 0}, {"partition": -1}):
        with pytest.raises(ApiError, match=r"after|limit|partition"):
            ask(world, RECORDS, **given)
    with pytest.raises(ApiError, match="no share group 'none'"):
        ask(world, RECORDS, "none")
