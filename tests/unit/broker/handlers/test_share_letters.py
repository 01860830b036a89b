"""Dead letters of share groups (KIP-1191): written before a record is given up, or it stays."""

import os
from typing import Any

import pytest

from broker.share.acknowledge import AcknowledgedPart
from broker.share.letters import letter
from broker.share.state.key import ShareKey
from config.resources.kinds import ResourceKind
from protocol.errors import ErrorCode
from protocol.records.batch import iter_headers
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.record import Record, read_records
from tests.support.worlds.handler_world import BATCH_TIME, produce_request
from tests.support.worlds.share_read_world import (
    ACCEPT,
    GAP,
    GROUP,
    LOCK_MS,
    REJECT,
    RELEASE,
    ShareReadWorld,
    share_read_world,
)

NAME = "dlq.t"
LETTERS = {
    "errors_deadletterqueue_topic_name": NAME,
    "share_delivery_count_limit": "2",
}
RETRY_MS = 1000
ENABLED = {"errors_deadletterqueue_group_enable": "true"}


@pytest.fixture
async def world() -> ShareReadWorld:
    made = await share_read_world()
    await made.make_topic(NAME, partitions=3, **ENABLED)
    await made.configure(**LETTERS)
    await made.produce(b"0", b"1", b"2", b"3")
    return made


def letters(world: ShareReadWorld, partition: int = 0, topic: str = NAME) -> list[Record]:
    log = world.partition(topic, partition).log
    data = log.read(0, 1 << 24, up_to=log.snapshot.log_end_offset, min_one_batch=True)
    raw = memoryview(data.read())
    return [each for at, _ in iter_headers(raw) for each in read_records(raw[at:])]


def told(record: Record) -> dict[str, str]:
    """The headers that the broker wrote, without the begins of their names."""
    return {
        name.removeprefix("__dlq.errors.").removeprefix("horolog.dlq."): (value or b"").decode()
        for name, value in record.headers
        if name.startswith(("__dlq.errors.", "horolog.dlq."))
    }


async def test_a_rejected_record_has_a_letter_with_its_origin(world: ShareReadWorld) -> None:
    world.clock.advance(5000)
    one = world.reader()
    await one.got()
    assert await one.code((0, 3, ACCEPT, REJECT, GAP, RELEASE)) == 0
    (found,) = letters(world)
    assert told(found) == {
        "topic": "t",
        "partition": "0",
        "offset": "1",
        "group": GROUP,
        "delivery.count": "1",
        "message": "A member rejected the record.",
        "reason": "rejected",
        "record.time": str(BATCH_TIME + 1),
        "arrival.time": str(BATCH_TIME),
        "member": "m1",
    }
    assert (found.key, found.value, found.timestamp) == (None, None, BATCH_TIME + 5000)
    assert (world.state().start_offset, world.state().finished) == (1, 2)
    assert await one.got() == [(3, 3, 2)]
    assert await one.code((3, 3, RELEASE)) == 0
    assert [told(each)["reason"] for each in letters(world)] == ["rejected", "limit"]
    assert told(letters(world)[1])["message"] == "Delivered 2 times, and not accepted."
    assert await one.got() == []
    assert world.broker.share_reads.letters.written == {"rejected": 1, "limit": 1}


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
async def test_a_letter_is_a_copy_if_the_group_wants_it(
    codec: Codec, world: ShareReadWorld
) -> None:
    await world.configure(**LETTERS, errors_deadletterqueue_copy_record_enable="true")
    row = (BATCH_TIME, b"key", b"value", [("own", b"header")])
    request = produce_request(build_batch([row, row], codec=codec), partition=1)
    await world.call(request, 12)
    await world.initialized(partition=1)
    one = world.reader("m1", ("t", 1))
    await one.fetch()
    session = world.broker.share_reads.sessions.find(GROUP, "m1")
    served = world.broker.share_reads.partitions.of_group(GROUP)[0]
    assert session is not None
    done = served.acknowledge("m1", [AcknowledgedPart(1, 1, REJECT)])
    await world.turn()
    assert done.settled
    (found,) = letters(world, partition=1)
    assert (found.key, found.value, found.headers[0]) == (b"key", b"value", ("own", b"header"))
    assert (told(found)["partition"], told(found)["offset"]) == ("1", "1")


async def test_the_end_of_a_lock_and_of_a_session_at_the_limit(world: ShareReadWorld) -> None:
    one = world.reader()
    for _ in range(2):
        await one.got(max_records=500)
        await world.pass_ms(LOCK_MS)
    assert [told(each)["offset"] for each in letters(world)] == ["0", "1", "2", "3"]
    assert {told(each)["reason"] for each in letters(world)} == {"limit"}
    await world.produce(b"4")
    for count in (1, 2):
        each = world.reader(f"n{count}")
        assert await each.got() == [(4, 4, count)]
        await each.acknowledge(epoch=-1)
        await world.turn()
    assert [told(each)["offset"] for each in letters(world)][4:] == ["4"]
    assert (world.state().start_offset, world.state().finished) == (4, 1)


async def test_without_its_letter_a_record_stays(world: ShareReadWorld) -> None:
    await world.configure(**LETTERS | {"errors_deadletterqueue_topic_name": "dlq.later"})
    one, other = world.reader("m1"), world.reader("m2")
    await one.got()
    assert await one.code((0, 1, ACCEPT, REJECT)) == ErrorCode.UNKNOWN_SERVER_ERROR
    await one.acknowledge(epoch=-1)
    assert await other.got() == [(2, 3, 2)], "what is accepted is done, what is rejected stays"
    assert await other.code((2, 3, ACCEPT)) == 0
    assert (world.state().start_offset, world.state().finished) == (1, 2)
    await world.pass_ms(RETRY_MS)
    await world.pass_ms(2 * RETRY_MS)
    assert world.broker.share_reads.letters.failures == 3
    await world.make_topic("dlq.later", **ENABLED)
    await world.pass_ms(4 * RETRY_MS)
    (found,) = letters(world, topic="dlq.later")
    assert told(found)["offset"] == "1"
    await world.produce(b"4")
    assert await other.got() == [(4, 4, 1)]
    assert await other.code((4, 4, ACCEPT)) == 0
    assert (world.state().start_offset, world.state().finished) == (4, 1)


async def test_a_group_that_wants_no_letters_any_more_gives_up_without_them(
    world: ShareReadWorld,
) -> None:
    await world.configure(**LETTERS | {"errors_deadletterqueue_topic_name": "dlq.never"})
    one = world.reader()
    await one.got()
    assert await one.code((0, 3, REJECT)) != 0
    await world.configure()
    await world.pass_ms(RETRY_MS)
    assert (world.state().start_offset, world.state().finished) == (0, 4)


async def test_what_waits_for_a_letter_outlives_the_last_session(world: ShareReadWorld) -> None:
    await world.configure(**LETTERS | {"errors_deadletterqueue_topic_name": "dlq.never"})
    one = world.reader()
    await one.got()
    assert await one.code((0, 3, REJECT)) != 0
    await one.acknowledge(epoch=-1)
    assert await world.reader("m2").got() == [], "nobody gets it"
    again = await world.again()
    await again.configure(**LETTERS)
    other = again.reader("m3")
    assert await other.got() == [(0, 3, 1)], "after a restart it comes again"
    assert await other.code((0, 3, REJECT)) == 0
    assert len(letters(again)) == 4


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("dlq.other", {}),
        ("dlq.other", ENABLED | {"cleanup_policy": "compact"}),
        ("t", None),
    ],
)
async def test_topics_that_take_no_letters(
    name: str, settings: dict[str, str] | None, world: ShareReadWorld
) -> None:
    if settings is not None:
        await world.make_topic(name, **settings)
        await world.configure(**LETTERS | {"errors_deadletterqueue_topic_name": name})
        one = world.reader()
        await one.got()
        assert await one.code((0, 3, REJECT)) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert letters(world, topic=name) == []
        return
    with pytest.raises(Exception, match="must begin with dlq"):
        await world.configure(errors_deadletterqueue_topic_name=name)


async def test_the_topic_is_made_if_the_broker_may() -> None:
    world = await share_read_world(
        errors_deadletterqueue_auto_create_topics_enable="true",
        errors_deadletterqueue_topic_name_prefix="",
    )
    await world.configure(errors_deadletterqueue_topic_name="bad")
    await world.produce(b"0")
    one = world.reader()
    await one.got()
    assert await one.code((0, 0, REJECT)) == 0
    topic = world.broker.topics.image.topics["bad"]
    assert len(topic.partitions) == 2, "as many as the topic has"
    assert topic.partitions[0].log.config.errors_deadletterqueue_group_enable
    assert len(letters(world, topic="bad")) == 1


async def test_many_letters_in_several_reads(
    world: ShareReadWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter, "READ_BYTES", 100)
    monkeypatch.setattr(letter, "MOST_LETTERS", 2)
    for number in range(5):
        await world.produce(*(b"%d" % number,) * 3)
    one = world.reader()
    got = await one.got()
    assert (got[0][0], got[-1][1]) == (0, 18)
    types = [REJECT if at % 3 else ACCEPT for at in range(19)]
    assert await one.code((0, 18, *types)) == 0
    found = [int(told(each)["offset"]) for each in letters(world)]
    assert found == [at for at in range(19) if at % 3]
    assert (world.state().start_offset, world.state().finished) == (1, 18)


# --- sizes ---

COPIES = {**LETTERS, "errors_deadletterqueue_copy_record_enable": "true"}
MAX_BYTES = 1_048_588


def batch_sizes(world: ShareReadWorld) -> list[int]:
    log = world.partition(NAME, 0).log
    data = log.read(0, 1 << 30, up_to=log.snapshot.log_end_offset, min_one_batch=True)
    return [header.size_bytes for _, header in iter_headers(memoryview(data.read()))]


async def all_rejected(world: ShareReadWorld) -> int:
    """The code of rejecting all that is there, in one answer or more."""
    one, code = world.reader(), 0
    while got := await one.got(max_bytes=1 << 26):
        code = code or await one.code((got[0][0], got[-1][1], REJECT))
    return code


@pytest.fixture
async def large() -> ShareReadWorld:
    world = await share_read_world()
    await world.make_topic(NAME, partitions=1, **ENABLED)
    await world.configure(**COPIES)
    config = world.broker.config
    change = config.prepare(ResourceKind.TOPIC, "t", {"max.message.bytes": str(1 << 26)})
    config.commit(change)
    return world


async def append(world: ShareReadWorld, rows: list[Any], codec: Codec = Codec.NONE) -> None:
    answer = await world.call(produce_request(build_batch(rows, codec=codec)), 12)
    assert answer.responses[0].partition_responses[0].error_code == 0


async def test_letters_come_in_batches_that_their_topic_takes(large: ShareReadWorld) -> None:
    """Another node takes them by Produce, which refuses larger ones."""
    values = [os.urandom(2000) for _ in range(600)]
    await append(large, [(BATCH_TIME, None, each) for each in values])
    assert await all_rejected(large) == 0
    assert [each.value for each in letters(large)] == values
    assert len(batch_sizes(large)) == 2
    assert max(batch_sizes(large)) <= MAX_BYTES


async def test_records_that_come_packed_are_not_all_unpacked_at_once(large: ShareReadWorld) -> None:
    """A kilobyte of the log may be a hundred megabytes of records."""
    for _ in range(6):
        await append(large, [(BATCH_TIME, None, bytes(16_000_000))], Codec.ZSTD)
    assert await all_rejected(large) == 0
    assert [len(each.value or b"") for each in letters(large)] == [16_000_000] * 6
    assert len(batch_sizes(large)) == 6
    assert max(batch_sizes(large)) <= MAX_BYTES


async def test_a_record_that_their_topic_does_not_take_has_a_letter_without_a_copy(
    large: ShareReadWorld,
) -> None:
    small = [(BATCH_TIME, b"k", b"small")]
    await append(large, [*small, (BATCH_TIME, b"k", os.urandom(2_000_000)), *small])
    assert await all_rejected(large) == 0
    assert [each.value for each in letters(large)] == [b"small", None, b"small"]
    assert [told(each)["offset"] for each in letters(large)] == ["0", "1", "2"]


async def test_a_topic_that_takes_no_letter_at_all_loses_none(large: ShareReadWorld) -> None:
    limited = {"errors.deadletterqueue.group.enable": "true", "max.message.bytes": "100"}
    config = large.broker.config
    config.commit(config.prepare(ResourceKind.TOPIC, NAME, limited))
    await large.produce(b"0")
    one = large.reader()
    assert await one.got() == [(0, 0, 1)]
    assert await one.code((0, 0, REJECT)) == ErrorCode.UNKNOWN_SERVER_ERROR
    config.commit(config.prepare(ResourceKind.TOPIC, NAME, limited | {"max.message.bytes": "1000"}))
    await large.pass_ms(2 * RETRY_MS)
    assert [told(each)["offset"] for each in letters(large)] == ["0"]


async def test_letters_that_wait_do_not_keep_a_group_that_is_gone() -> None:
    world = await share_read_world()
    await world.make_topic(NAME, partitions=3)  # takes no letters: they wait
    await world.configure(**LETTERS)
    await world.produce(b"0")
    one, served = world.reader(), world.broker.share_reads.partitions
    await one.got()
    assert await one.code((0, 0, REJECT)) == ErrorCode.UNKNOWN_SERVER_ERROR
    await one.acknowledge(epoch=-1)
    assert served.count == 1
    await world.settled(world.broker.share_states.delete(ShareKey(GROUP, world.topic_id(), 0)))
    await world.configure()  # the settings of the group go with it
    for _ in range(3):
        await world.pass_ms(400_000)
    assert served.count == 0
