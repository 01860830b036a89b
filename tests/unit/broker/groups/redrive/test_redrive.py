"""Dead letters that are sent back: partition and times kept, each once, over kill -9 too."""

import asyncio
from typing import Any

import pytest

from broker.groups.redrive.progress import RedriveProgress
from broker.groups.redrive.redrive_call import RedriveAsked, RedriveCall, RedriveOutcome
from broker.partitions.leadership import Leadership
from broker.partitions.partition import Partition
from broker.partitions.partition_services import NOBODY
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.share.letters import returned
from broker.share.letters.header_names import REDRIVEN_ARRIVAL
from broker.share.letters.source import LocalRecords
from config.resources.kinds import ResourceKind
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import iter_headers
from protocol.records.builder import build_batch
from protocol.records.record import Header, Record, read_records
from tests.support.worlds.handler_world import BATCH_TIME, produce_request
from tests.support.worlds.share_read_world import GROUP, REJECT, ShareReadWorld, share_read_world

LETTERS = "dlq.t"
COPIES = {
    "errors_deadletterqueue_topic_name": LETTERS,
    "errors_deadletterqueue_copy_record_enable": "true",
}
PLAIN = {"errors_deadletterqueue_topic_name": LETTERS}
DAY_MS = 86_400_000
OLD_MS = BATCH_TIME - 3_600_000


async def made(durability: str = "os", **settings: str) -> ShareReadWorld:
    world = await share_read_world(horolog_durability=durability)
    await world.make_topic(LETTERS, 2, errors_deadletterqueue_group_enable="true")
    await world.configure(**(settings or COPIES))
    return world


def records(world: ShareReadWorld, partition: int = 0, topic: str = "t") -> list[Record]:
    log = world.partition(topic, partition).log
    snapshot = log.snapshot
    begin, end = snapshot.log_start_offset, snapshot.log_end_offset
    data = log.read(begin, 1 << 24, up_to=end, min_one_batch=True)
    raw = memoryview(data.read())
    return [each for at, _ in iter_headers(raw) for each in read_records(raw[at:])]


def values(world: ShareReadWorld, partition: int = 0, topic: str = "t") -> list[bytes | None]:
    return [each.value for each in records(world, partition, topic)]


async def send(world: ShareReadWorld, *rows: Any, partition: int = 0, topic: str = "t") -> None:
    request = produce_request(build_batch(rows), topic=topic, partition=partition, acks=-1)
    answer = await world.call(request, 12)
    assert answer.responses[0].partition_responses[0].error_code == 0


async def rejected(world: ShareReadWorld, *numbers: int) -> None:
    """These records of partition 0 are rejected."""
    one = world.reader()
    await one.got()
    for each in numbers:
        assert await one.code((each, each, REJECT)) == 0
    await one.acknowledge(epoch=-1)


def letter(offset: int, group: str = GROUP, topic: str = "t", partition: int = 0) -> Any:
    """A letter of a copied record, as the broker writes it."""
    headers: list[Header] = [
        ("own", b"header"),
        ("__dlq.errors.topic", topic.encode()),
        ("__dlq.errors.partition", b"%d" % partition),
        ("__dlq.errors.offset", b"%d" % offset),
        ("__dlq.errors.group", group.encode()),
        ("horolog.dlq.reason", b"rejected"),
        ("horolog.dlq.record.time", b"%d" % (OLD_MS + offset)),
        ("horolog.dlq.arrival.time", b"%d" % (OLD_MS + 500)),
    ]
    return BATCH_TIME, b"key", b"%d" % offset, headers


async def redriven(world: ShareReadWorld, **bounds: Any) -> RedriveOutcome:
    given: dict[str, Any] = {
        "may_write": lambda _: True, "most_letters": 1000, "most_bytes": 1 << 20, "seconds": 10.0,
    }  # fmt: skip
    image = world.broker.topics.image.topics[LETTERS]
    asked = RedriveAsked(group=GROUP, letters=image, sender=NOBODY, **{**given, **bounds})
    outcome: RedriveOutcome = await world.broker.redrive.send_back(asked)
    return outcome


def progress(world: ShareReadWorld) -> dict[int, int]:
    found = world.broker.redrive.progress(GROUP, LETTERS).positions()
    assert [each.intent for each in found.values()] == [None] * len(found)
    return {index: each.offset for index, each in found.items()}


async def test_a_letter_goes_back_as_the_record_that_it_was() -> None:
    world = await made()
    row = (OLD_MS, b"key", b"value", [("own", b"header")])
    await send(world, row, row)
    await rejected(world, 1)
    outcome = await redriven(world)
    assert (outcome.letters, outcome.passed_over, outcome.stopped) == (1, {}, None)
    back = records(world)[2]
    assert (back.offset, back.timestamp, back.key, back.value) == (2, OLD_MS, b"key", b"value")
    assert list(back.headers) == [("own", b"header")]
    assert (await redriven(world)).letters == 0, "once"
    assert progress(world) == {0: 1}
    assert world.broker.redrive.sent == 1


async def test_a_header_may_have_a_name_that_is_no_utf8() -> None:
    """Other clients write such names; the record leaves as it came."""
    world = await made()
    await send(world, (OLD_MS, b"key", b"value", [("\udcff", b"x")]))
    await rejected(world, 0)
    outcome = await redriven(world)
    assert (outcome.letters, outcome.stopped) == (1, None)
    assert list(records(world)[1].headers) == [("\udcff", b"x")]


@pytest.mark.parametrize("name", ["record.time", "arrival.time", "errors.offset"])
@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 10**19 - 1])
@pytest.mark.parametrize("settings", [COPIES, PLAIN])
async def test_a_letter_with_a_number_that_no_record_has_holds_up_no_other(
    name: str, number: int, settings: dict[str, str]
) -> None:
    """Whoever may write to the letters' topic may write such a letter."""
    world = await made(**settings)
    await send(world, (OLD_MS + 1, b"key", b"1"), (OLD_MS + 2, b"key", b"2"))
    at, key, value, headers = letter(0)
    headers = [(each, b"%d" % number if name in each else text) for each, text in headers]
    await send(world, (at, key, value, headers), letter(1), letter(2), topic=LETTERS)
    outcome = await redriven(world)
    assert (outcome.stopped, outcome.passed_over["no_letter"]) == (None, 1)
    assert outcome.letters == 2
    assert progress(world) == {0: 3}


async def test_of_a_letter_without_a_copy_the_record_is_looked_up() -> None:
    world = await made(**PLAIN)
    await send(world, (OLD_MS, b"k0", b"0"), (OLD_MS + 1, b"k1", b"1"))
    await send(world, (OLD_MS + 2, b"k2", b"2"))
    await rejected(world, 0, 1, 2)
    world.partition().log.delete_records(1)
    outcome = await redriven(world)
    assert (outcome.letters, outcome.passed_over) == (2, {returned.RECORD_GONE: 1})
    back = records(world)[-2:]
    assert [(each.key, each.value, each.timestamp) for each in back] == [
        (b"k1", b"1", OLD_MS + 1), (b"k2", b"2", OLD_MS + 2),
    ]  # fmt: skip


async def test_partitions_are_kept_and_what_is_none_of_the_groups_is_passed_over() -> None:
    world = await made()
    strange = (BATCH_TIME, None, b"", [("__dlq.errors.topic", b"\xff")])
    await send(
        world, letter(0, partition=1), letter(1, "other"), (BATCH_TIME, None, b"x"), strange,
        letter(2, topic="gone"), letter(3, partition=7), letter(4, topic="__consumer_offsets"),
        letter(5, topic=LETTERS), letter(6), topic=LETTERS,
    )  # fmt: skip
    await send(world, letter(7), topic=LETTERS, partition=1)
    outcome = await redriven(world)
    assert outcome.passed_over == {
        returned.OTHER_GROUP: 1, returned.NO_LETTER: 2, returned.NO_TOPIC: 4,
    }  # fmt: skip
    assert (values(world), values(world, 1)) == ([b"6", b"7"], [b"0"])
    assert outcome.letters == 3
    assert progress(world) == {0: 9, 1: 1}
    assert world.broker.redrive.passed_over == outcome.passed_over


async def test_where_arrival_is_the_time_that_of_before_is_in_a_header() -> None:
    world = await made()
    await world.make_topic("stamped", message_timestamp_type="LogAppendTime")
    await send(world, letter(0, topic="stamped"), topic=LETTERS)
    assert (await redriven(world)).letters == 1
    (back,) = records(world, topic="stamped")
    assert dict(back.headers) == {"own": b"header", REDRIVEN_ARRIVAL: b"%d" % (OLD_MS + 500)}


async def test_a_call_has_bounds_and_the_next_one_goes_on() -> None:
    world = await made()
    await send(world, *map(letter, range(5)), topic=LETTERS)
    assert (await redriven(world, most_letters=2)).letters == 2
    assert progress(world) == {0: 2}
    assert (await redriven(world, seconds=0.0)).letters == 0, "no time, no letter"
    assert (await redriven(world, most_bytes=1, most_letters=1)).letters == 1
    assert (await redriven(world)).letters == 2
    assert values(world) == [b"0", b"1", b"2", b"3", b"4"]


async def test_letters_go_back_in_batches_that_their_topics_take() -> None:
    world = await made()
    await world.make_topic("small", max_message_bytes="1000")
    rows = [letter(number, topic="small") for number in range(6)]
    large = (*letter(6, topic="small")[:2], b"7" * 3000, letter(6, topic="small")[3])
    await send(world, *rows, large, topic=LETTERS)
    outcome = await redriven(world)
    assert (outcome.letters, outcome.stopped) == (7, None)
    assert values(world, topic="small") == [*(b"%d" % each for each in range(6)), b"7" * 3000]


class DiedError(Exception):
    """The broker dies here."""


@pytest.mark.parametrize("power_cut", [None, 1, 2, 3])
@pytest.mark.parametrize("step", range(6))
async def test_the_end_of_the_broker_at_any_step_loses_no_letter_and_repeats_none(
    step: int, power_cut: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pieces of two letters, in two partitions of origin; each piece takes three writes."""
    monkeypatch.setattr("broker.groups.redrive.redrive_call.MOST_LETTERS", 2)
    world = await made("by-acks")
    await send(world, *(letter(each, partition=each % 2) for each in range(4)), topic=LETTERS)
    left = [step]

    def counted(real: Any) -> Any:
        async def do(*given: Any, **how: Any) -> Any:
            if not left[0]:
                raise DiedError
            left[0] -= 1
            return await real(*given, **how)

        return do

    with monkeypatch.context() as patch:
        patch.setattr(RedriveProgress, "commit", counted(RedriveProgress.commit))
        patch.setattr(RedriveCall, "_append_all", counted(RedriveCall._append_all))
        with pytest.raises(DiedError):
            await redriven(world)
    again = await world.again(world.remains(power_cut))
    outcome = await redriven(again)
    assert outcome.stopped is None
    assert (values(again), values(again, 1)) == ([b"0", b"2"], [b"1", b"3"])
    assert progress(again) == {0: 4}


async def test_letters_that_were_lost_since_the_crash_repeat_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await made()
    await send(world, letter(0), topic=LETTERS)
    await send(world, letter(1), topic=LETTERS)
    real, commits = RedriveProgress.commit, list[Any]()

    async def once(*given: Any) -> None:
        commits.append(given)
        if len(commits) > 1:
            raise DiedError
        await real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(RedriveProgress, "commit", once)
        with pytest.raises(DiedError):
            await redriven(world)
    again = await world.again()
    again.partition(LETTERS).log.delete_records(1)
    assert (await redriven(again)).stopped is None
    assert values(again) == [b"0", b"1"]
    assert progress(again) == {0: 2}


async def test_a_topic_that_refuses_a_record_stops_it_and_nothing_is_repeated() -> None:
    world = await made()
    await world.make_topic("strict", message_timestamp_before_max_ms="1000")
    await send(world, letter(0), letter(1, topic="strict"), topic=LETTERS)
    outcome = await redriven(world)
    assert outcome.letters == 0
    stopped = outcome.stopped
    assert stopped is not None
    assert (stopped.partition, stopped.offset) == (0, 0)
    assert stopped.error.code == ErrorCode.INVALID_TIMESTAMP
    assert world.broker.redrive.stops == 1
    assert values(world) == [b"0"]
    config = world.broker.config
    wide = {"message.timestamp.before.max.ms": str(2**62)}
    config.commit(config.prepare(ResourceKind.TOPIC, "strict", wide))
    outcome = await redriven(world)
    assert (outcome.letters, outcome.stopped) == (2, None)
    assert (values(world), values(world, topic="strict")) == ([b"0"], [b"1"])


async def test_nothing_goes_to_a_topic_that_the_caller_may_not_write() -> None:
    world = await made()
    await world.make_topic("other")
    await send(world, letter(0), letter(1, topic="other"), topic=LETTERS)
    outcome = await redriven(world, may_write=lambda name: name == "t")
    assert outcome.stopped is not None
    assert outcome.stopped.error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (values(world), values(world, topic="other")) == ([], [])
    assert progress(world) == {}
    assert (await redriven(world)).letters == 2


async def test_only_one_redrive_of_a_group_is_under_way() -> None:
    world = await made()
    await send(world, letter(0), topic=LETTERS)
    first = asyncio.get_running_loop().create_task(redriven(world))
    await asyncio.sleep(0)
    with pytest.raises(KafkaError, match="under way"):
        await redriven(world)
    assert (await first).letters == 1


async def test_what_has_gone_back_is_remembered_for_as_long_as_there_are_letters() -> None:
    world = await made()
    await send(world, letter(0), topic=LETTERS)
    assert (await redriven(world)).letters == 1
    world.clock.advance(400 * DAY_MS)
    await world.broker.groups.expire()
    again = await world.again()
    assert (await redriven(again)).letters == 0
    await again.delete_topic(LETTERS)
    await again.make_topic(LETTERS, errors_deadletterqueue_group_enable="true")
    await send(again, letter(1), topic=LETTERS)
    assert (await redriven(again)).letters == 1, "another topic of this name"


async def test_a_group_with_members_is_not_taken_for_the_one_that_remembers() -> None:
    world = await made()
    group = world.broker.groups.find_or_make("horolog.redrive.g")
    world.broker.groups.shares.share_of(group)
    await send(world, letter(0), topic=LETTERS)
    with pytest.raises(KafkaError, match="made for something else"):
        await redriven(world)
    assert values(world) == []


class OtherNode:
    """Another node: it leads what is in `led`, whose records are in this world's logs, too."""

    def __init__(self, world: ShareReadWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.led: set[tuple[str, int]] = set()
        self.appended: list[tuple[str, int, bytes]] = []
        self.fails = list[bool]()
        """Of the next appends: whether the answer is lost; True, after it was carried out."""
        here = Partition.leader_elsewhere

        def elsewhere(partition: Partition) -> Leadership | None:
            is_led = (partition.topic, partition.index) in self.led
            found: Leadership | None = here.fget(partition)  # type: ignore[misc]
            return Leadership(2, 5, is_here=False) if is_led else found

        monkeypatch.setattr(Partition, "leader_elsewhere", property(elsewhere))
        parts = world.broker.redrive._parts
        world.broker.redrive._parts = parts._replace(other_nodes=self)

    async def bounds(self, partition: Partition) -> tuple[int, int]:
        snapshot = partition.log.snapshot
        return snapshot.log_start_offset, snapshot.high_watermark

    def source(self, partition: Partition) -> LocalRecords:
        assert (partition.topic, partition.index) in self.led
        return LocalRecords(partition.log)

    async def run(self, work: Any) -> Any:
        return work()

    async def append(self, partition: Partition, batch: bytes) -> None:
        is_lost = self.fails.pop(0) if self.fails else None
        if is_lost is not False:
            place = partition.topic, partition.index
            self.led.discard(place)  # for the moment of the append it is that node
            try:
                outcome = partition.writer.append(memoryview(bytearray(batch)), -1, NOBODY)
                if isinstance(outcome, Deferred):
                    await wait_for(outcome)
            finally:
                self.led.add(place)
            self.appended.append((*place, batch))
        if is_lost is not None:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "node 2 does not answer")


@pytest.mark.parametrize("settings", [COPIES, PLAIN])
async def test_letters_and_records_of_other_nodes_go_back_too(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await made(**settings)
    await send(world, *((OLD_MS + each, b"k", b"%d" % each) for each in range(4)))
    await rejected(world, 0, 1, 2, 3)
    await send(world, letter(9, partition=1), topic=LETTERS, partition=1)
    other = OtherNode(world, monkeypatch)
    other.led = {(LETTERS, 0), ("t", 0)}
    outcome = await redriven(world)
    assert (outcome.letters, outcome.stopped, outcome.passed_over) == (5, None, {})
    assert [place[:2] for place in other.appended] == [("t", 0)]
    assert values(world)[4:] == [b"0", b"1", b"2", b"3"]
    assert values(world, 1) == [b"9"]
    assert (await redriven(world)).letters == 0


@pytest.mark.parametrize("is_carried_out", [False, True])
async def test_an_answer_of_another_node_that_is_lost_repeats_no_record(
    is_carried_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await made()
    await send(world, letter(0), letter(1, partition=1), topic=LETTERS)
    other = OtherNode(world, monkeypatch)
    other.led, other.fails = {("t", 0)}, [is_carried_out]
    outcome = await redriven(world)
    assert outcome.stopped is not None
    assert outcome.stopped.error.code == ErrorCode.NETWORK_EXCEPTION
    assert values(world, 1) == [b"1"]
    outcome = await redriven(world)
    assert (outcome.letters, outcome.stopped) == (2, None)
    assert (values(world), values(world, 1)) == ([b"0"], [b"1"])


async def test_where_nodes_have_no_way_to_each_other_it_stops_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await made()
    await send(world, letter(0, partition=1), letter(1), topic=LETTERS)
    other = OtherNode(world, monkeypatch)
    other.led = {("t", 0)}
    world.broker.redrive._parts = world.broker.redrive._parts._replace(other_nodes=None)
    outcome = await redriven(world)
    assert outcome.stopped is not None
    assert outcome.stopped.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (values(world), outcome.letters, progress(world)) == ([], 0, {})
