"""A share group in a broker's life: what it was promised, and what a start after a crash delivers.

An answered accept or reject holds: the record is never delivered again. Whatever else is in the log
is delivered, unless an unanswered request may have finished it. Counts may be low after a crash.
In a life of jobs no record is delivered before its time, and none that nobody accepted is finished
without a dead letter.
"""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from broker.runtime.deferred import Deferred
from broker.share.state.key import ShareKey
from protocol.apis import share_acknowledge as ack
from protocol.apis import share_fetch as fetch
from tests.support.records.logs import records_of
from tests.support.worlds.broker_world import BrokerWorld
from tests.support.worlds.promises import BrokerLedger, Jobs, LogEnd, ShareFacts, TopicFacts

if TYPE_CHECKING:
    from tests.support.worlds.broker_life import BrokerLife

GROUP = "queue"
ACCEPT, RELEASE, REJECT = 1, 2, 3
LAST_DELIVERY = 5
GROUPS = 32
"""The kind of resource."""
DELAY_MS, LETTERS, LAST_DELIVERY_OF_JOBS = 300, "dlq.queue", 2
JOBS = {
    "share.delivery.count.limit": str(LAST_DELIVERY_OF_JOBS),
    "horolog.share.delay.ms": str(DELAY_MS),
    "errors.deadletterqueue.topic.name": LETTERS,
}
FOR_EVER = 10_000
"""Fetches after which a judge gives up."""


async def make_jobs(life: "BrokerLife") -> None:
    """The share group has a delay and dead letters from now on."""
    allowed = {"errors.deadletterqueue.group.enable": "true"}
    jobs = life.ledger.jobs = Jobs(DELAY_MS, LETTERS)
    made = await life.world.create_topic(LETTERS, 1, allowed)
    await life.settle()
    if life.agreed(None, not made.error_code):
        code = await life.world.set_configs(GROUPS, GROUP, JOBS)
        await life.settle()
        jobs.is_set = life.agreed(None, code == 0)


def note_ends(life: "BrokerLife") -> None:
    """Notes where logs end by now, for what must not come before its time."""
    jobs = life.ledger.jobs
    if jobs is None or not jobs.is_set:
        return
    now_ms = life.world.clock.now_ms()
    for topic in life.ledger.living():
        for index in range(len(topic.partitions)):
            if topic.topic_id is not None:
                end_offset = life.world.log(topic.name, index).snapshot.log_end_offset
                place = topic.topic_id, index
                jobs.seen.setdefault(place, []).append(LogEnd(end_offset, now_ms))


async def share(life: "BrokerLife", topic: TopicFacts) -> None:
    """A member comes, gets records, says what becomes of them, and perhaps goes."""
    assert topic.topic_id is not None
    place = topic.topic_id, life.dice.randrange(len(topic.partitions))
    facts = life.ledger.shares.setdefault(place, ShareFacts())
    if not facts.begun.latest and not await _begin(life, place, facts):
        return
    member = f"m{life.dice.randrange(1 << 30)}"
    await opened(life.world, member, place)
    got = await fetched(life.world, member, place, 1, life.dice.choice((1, 3, 500)))
    await life.settle()
    if got is None or not life.agreed(None, got is not None):
        return
    _judge_times(life, place, got)
    last = LAST_DELIVERY if life.ledger.jobs is None else LAST_DELIVERY_OF_JOBS
    for offset, deliveries in got.items():
        fact = facts.of(offset)
        fact.values = [False]  # it was delivered
        if deliveries >= last:
            fact.ask(True)  # given up with the end of its lock, or of the session
            facts.given_up.add(offset)
    await _acknowledge(life, member, place, facts, list(got))
    if life.dice.random() < 0.5:
        await life.world.call(_said(member, -1, place, {}), 2)
        if life.ledger.jobs is not None:
            await life.world.rests()  # letters of what this was the last delivery of
        await life.settle()


def _judge_times(life: "BrokerLife", place: tuple[UUID, int], got: dict[int, int]) -> None:
    jobs, now_ms = life.ledger.jobs, life.world.clock.now_ms()
    if jobs is None or not jobs.is_set:
        return
    early = [each for each in got if now_ms < jobs.not_before(place, each)]
    assert not early, f"{place}: {early} before their time"


async def _begin(life: "BrokerLife", place: tuple[UUID, int], facts: ShareFacts) -> bool:
    facts.begun.ask(True)
    key = ShareKey(GROUP, *place)
    made: Deferred[None] = life.world.broker.share_states.initialize(key, 1, 0)
    came: list[BaseException | None] = []
    made.listen(lambda _, error: came.append(error))
    await life.world.rests()
    await life.settle()
    if not life.agreed(facts.begun, came == [None]):
        return False
    facts.begun.answered()
    return True


async def _acknowledge(
    life: "BrokerLife", member: str, place: tuple[UUID, int], facts: ShareFacts, got: list[int]
) -> None:
    types = {
        offset: life.dice.choice((ACCEPT, ACCEPT, RELEASE, REJECT))
        for offset in got
        if life.dice.random() < 0.8
    }
    finished = [facts.of(each) for each, type_ in types.items() if type_ != RELEASE]
    facts.accepted.update(each for each, type_ in types.items() if type_ == ACCEPT)
    facts.given_up.update(each for each, type_ in types.items() if type_ == REJECT)
    for fact in finished:
        fact.ask(True)
    answer: Any = await life.world.call(_said(member, 2, place, types), 2)
    await life.settle()
    codes = [each.error_code for part in answer.responses for each in part.partitions]
    for fact in finished:
        if life.agreed(fact, not answer.error_code and codes == [0]):
            fact.answered()


async def shorten(life: "BrokerLife") -> None:
    """Stores again what share groups remember, and has go what came before."""
    pruning = life.world.broker.share_pruning
    await pruning.renew()
    await life.settle()
    await pruning.prune()
    await life.settle()


def _said(
    member: str, epoch: int, place: tuple[UUID, int], types: dict[int, int]
) -> ack.ShareAcknowledgeRequest:
    batches = [
        ack.AcknowledgementBatch(first_offset=each, last_offset=each, acknowledge_types=[type_])
        for each, type_ in sorted(types.items())
    ]
    part = ack.ShareAcknowledgePartition(partition_index=place[1], acknowledgement_batches=batches)
    topic = ack.ShareAcknowledgeTopic(topic_id=place[0], partitions=[part])
    return ack.ShareAcknowledgeRequest(
        group_id=GROUP, member_id=member, share_session_epoch=epoch, topics=[topic]
    )


async def opened(world: BrokerWorld, member: str, place: tuple[UUID, int]) -> None:
    """A session whose share partition is loaded."""
    await fetched(world, member, place, 0, 0)
    await world.rests()


async def fetched(
    world: BrokerWorld, member: str, place: tuple[UUID, int], epoch: int, most: int
) -> dict[int, int] | None:
    """Offsets that a member gets, with their deliveries; None when it is refused."""
    part = fetch.ShareFetchPartition(partition_index=place[1], acknowledgement_batches=[])
    topic = fetch.ShareFetchTopic(topic_id=place[0], partitions=[part])
    request = fetch.ShareFetchRequest(
        group_id=GROUP, member_id=member, share_session_epoch=epoch, max_wait_ms=0, min_bytes=1,
        max_bytes=1 << 20, max_records=most, batch_size=most, topics=[topic],
        forgotten_topics_data=[],
    )  # fmt: skip
    answer: Any = await world.call(request, 2)
    parts = [each for topic in answer.responses for each in topic.partitions]
    if answer.error_code or any(each.error_code for each in parts):
        return None
    return {
        offset: rows.delivery_count
        for each in parts
        for rows in each.acquired_records
        for offset in range(rows.first_offset, rows.last_offset + 1)
    }


async def judge_shares(world: BrokerWorld, ledger: BrokerLedger) -> None:
    """AssertionError says what was promised to the share group and not kept."""
    if any(log.corruption is not None for log in world.logs()):
        return  # not served, and counted by the others
    for place, facts in ledger.shares.items():
        if place[0] not in world.broker.topics.image.by_id:
            continue
        if ShareKey(GROUP, *place) not in world.broker.share_states.states:
            assert not (facts.begun.is_settled and facts.begun.latest), f"{place}: no state"
            continue
        await _judge(world, place, facts, ledger.jobs)


async def _judge(
    world: BrokerWorld, place: tuple[UUID, int], facts: ShareFacts, jobs: Jobs | None
) -> None:
    partition = world.broker.topics.image.by_id[place[0]].partitions[place[1]]
    await opened(world, "judge", place)
    delivered = await _delivered(world, place)
    snapshot = partition.log.snapshot
    for offset in range(snapshot.log_start_offset, snapshot.high_watermark):
        fate = facts.finished.get(offset)
        possible = [False] if fate is None else fate.values
        assert (offset not in delivered) in possible, (
            f"{place}: offset {offset} is {'' if offset in delivered else 'not '}delivered"
        )
    if jobs is not None and jobs.is_set:
        _judge_letters(world, partition, facts, delivered)
    answer = await world.produce(b"later", topic=partition.topic, partition=place[1], acks=-1)
    await world.call(_said("judge", -1, place, {}), 2)
    if jobs is not None:
        world.clock.advance(2 * jobs.delay_ms)
        await world.rests()
    await opened(world, "judge", place)
    again = await _delivered(world, place)
    assert answer.base_offset in again, f"{place}: a new record, {answer.base_offset}, is skipped"


def _judge_letters(
    world: BrokerWorld, partition: Any, facts: ShareFacts, delivered: set[int]
) -> None:
    """Compares letters with what is finished and was not accepted, and with what was given up."""
    lettered = _lettered(world, partition)
    snapshot = partition.log.snapshot
    present = set(range(snapshot.log_start_offset, snapshot.high_watermark))
    lost = present & facts.given_up - delivered - facts.accepted - lettered
    assert not lost, f"{partition}: {lost} is finished without a letter"
    assert lettered <= facts.given_up, f"{partition}: letters of {lettered - facts.given_up}"


def _lettered(world: BrokerWorld, partition: Any) -> set[int]:
    """Offsets of a partition whose letters are there."""
    found = [dict(each.headers) for each in records_of(world.log(LETTERS))]
    place = (partition.topic.encode(), b"%d" % partition.index)
    return {
        int(each["__dlq.errors.offset"] or b"")
        for each in found
        if (each["__dlq.errors.topic"], each["__dlq.errors.partition"]) == place
    }


async def _delivered(world: BrokerWorld, place: tuple[UUID, int]) -> set[int]:
    """All that a member gets that stays silent."""
    delivered: set[int] = set()
    for epoch in range(1, FOR_EVER):
        got = await fetched(world, "judge", place, epoch, 500)
        assert got is not None, f"{place}: a fetch is refused"
        assert not delivered & got.keys(), f"{place}: {delivered & got.keys()} twice at one time"
        if not got:
            break
        delivered |= got.keys()
    return delivered
