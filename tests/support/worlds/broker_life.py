"""A broker's life in which the power may go at every call, and what each moment must leave.

Between two steps nothing is promised: what the disk would be after a cut at each call of a step is
kept, and judged by the ledger as it was while the step went on. A finding names seed, step and
call.
"""

import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.disk.simdisk import SimFileSystem, SimulatedCrash
from tests.support.worlds.broker_judge import judge
from tests.support.worlds.broker_world import BROKER, EVERY_BROKER, TOPIC, BrokerWorld
from tests.support.worlds.group_world import commit_request
from tests.support.worlds.handler_world import BATCH_TIME, batch, produce_request
from tests.support.worlds.promises import (
    ABORT,
    COMMIT,
    BrokerLedger,
    Fact,
    Membership,
    PartitionFacts,
    TopicFacts,
    TransactionFacts,
    Written,
)
from tests.support.worlds.transaction_world import Producer

SMALL_TOPIC = {"internal.segment.bytes": "700"}
NESTED_CALLS = 40
NAMES = ("a", "b", "k")  # `k` is compacted


class BrokenPromiseError(AssertionError):
    """A broken promise, and its place."""


class BrokerLife:
    """One broker, its ledger, and the eye on every call."""

    def __init__(self, seed: int, survivals: int, *, nested: bool = False) -> None:
        """`survivals`: how often the dice are rolled at each call."""
        self.seed = seed
        self.dice = random.Random(f"life {seed}")
        self.ledger = BrokerLedger()
        self.points = 0
        self.damaged = 0
        self.step = ""
        self.world = self._born()
        self.producers: dict[str, Producer] = {}
        self._survivals = survivals
        self._nested = nested
        self._judging = random.Random(f"judge {seed}")
        self._left: list[tuple[int, SimFileSystem]] = []
        self._counter = 0
        self._transactional_ids = 0
        self._watch()

    def _born(self) -> BrokerWorld:
        return BrokerWorld(seed=self.seed)

    # --- what is looked at ---

    def _watch(self) -> None:
        self.world.fs.on_call = self._look

    def _look(self, call: int) -> None:
        for survival in range(self._survivals):
            self._left.append((call, self.world.fs.after_crash(call * 1009 + survival)))

    async def settle(self) -> None:
        """Judges every moment since the last time, by what was promised until then."""
        self._look(self.world.fs.calls)
        left, self._left = self._left, []
        judged: set[int] = set()
        for call, disk in left:
            self.points += 1
            found = self._cut_again(disk, call) if self._nested else disk
            print_of = found.fingerprint()
            if print_of not in judged:  # the same disk and ledger have the same verdict
                judged.add(print_of)
                await self._judge(call, found)

    def _cut_again(self, disk: SimFileSystem, call: int) -> SimFileSystem:
        """The start loses its power, too."""
        disk.crash_at = self._judging.randint(1, NESTED_CALLS)
        with contextlib.suppress(SimulatedCrash):
            BrokerWorld(disk).ends()
        return disk.after_crash(call)

    async def _judge(self, call: int, disk: SimFileSystem) -> None:
        world = None
        try:
            world = await self.world.reborn(disk)
            self.damaged += await judge(world, self.ledger, self._judging)
        except Exception as error:
            text = str(error) if isinstance(error, AssertionError) else repr(error)
            raise BrokenPromiseError(f"{self.step}, call {call}: {text}") from error
        finally:
            if world is not None:
                world.ends()

    def agreed(self, fact: Fact[Any] | None, is_done: object) -> bool:
        """True when a request was fulfilled: here each must be, since no disk fails."""
        assert is_done, f"{self.step}: refused"
        return True

    async def attempt(self, step: Callable[[Any], Awaitable[None]]) -> None:
        """One step of a life."""
        await step(self)

    async def make_groups(self) -> None:
        await self.world.broker.groups.topic.make()

    # --- stops and starts ---

    async def restart(self) -> None:
        """A clean stop and a start; the power may go in between."""
        assert await self.world.stop()
        await self._all_is_durable()
        await self.settle()
        await self._start(self.world.fs.after_kill())

    async def kill(self) -> None:
        """kill -9 and a start; the page cache stays."""
        await self._start(self.world.fs.after_kill())
        await self._all_is_durable()

    async def _all_is_durable(self) -> None:
        """Makes everything count that the past step has synced."""
        await self.settle()
        for each in self._partitions():
            each.became_durable(1 << 62)

    async def _start(self, fs: SimFileSystem) -> None:
        self.world.fs.on_call = None
        self.world.ends()
        fs.on_call = self._look_at(fs)
        self.world = await self.world.reborn(fs)
        for each in self.producers.values():
            each.world = self.world
        self._watch()

    def _look_at(self, fs: SimFileSystem) -> Any:
        def look(call: int) -> None:
            self._left.append((call, fs.after_crash(call * 1009)))

        return look

    def _partitions(self) -> list[PartitionFacts]:
        return [
            each
            for fact in self.ledger.topics.values()
            if fact.latest is not None
            for each in fact.latest.partitions
        ]

    # --- topics ---

    async def create(self, name: str, **settings: str) -> None:
        named = {key.replace("_", "."): value for key, value in settings.items()}
        compacted = name == "k"
        if compacted:
            named["cleanup.policy"] = "compact"
        count = self.dice.randint(1, 2)
        facts = TopicFacts(
            name,
            [PartitionFacts() for _ in range(count)],
            Fact({**SMALL_TOPIC, **named}),
            compacted,
        )
        fact = self.ledger.topics.setdefault(name, Fact(None))
        if not fact.is_settled:  # an earlier change of it was refused
            return
        fact.ask(facts)
        made = await self.world.create_topic(name, count, facts.settings.latest)
        await self.settle()
        if not self.agreed(fact, not made.error_code):
            return
        facts.topic_id = made.topic_id
        self.ledger.known_ids.add(made.topic_id)
        fact.answered()

    async def delete(self, name: str) -> None:
        fact = self.ledger.topics[name]
        if not fact.is_settled:
            return
        offsets: list[Fact[Any]] = [
            each for place, each in self.ledger.offsets.items() if place[1] == name
        ]
        fact.ask(None)
        for each in offsets:
            each.ask(None)
        code = await self.world.delete_topic(name)
        await self.settle()
        facts: list[Fact[Any]] = [fact, *offsets]
        for each in facts:
            if self.agreed(each, code == 0):
                each.answered()

    async def alter(self, topic: TopicFacts, key: str, value: str) -> None:
        topic.settings.ask({**topic.settings.latest, key: value})
        code = await self.world.set_configs(TOPIC, topic.name, {key: value})
        await self.settle()
        if self.agreed(topic.settings, code == 0):
            topic.settings.answered()

    async def alter_broker(self, key: str, value: str) -> None:
        self.ledger.broker.ask({**self.ledger.broker.latest, key: value})
        code = await self.world.set_configs(BROKER, EVERY_BROKER, {key: value})
        await self.settle()
        if self.agreed(self.ledger.broker, code == 0):
            self.ledger.broker.answered()

    async def set_quota(self, user: str, rate: float) -> None:
        self.ledger.quotas.ask({**self.ledger.quotas.latest, user: rate})
        code = await self.world.set_quota(user, rate)
        await self.settle()
        if self.agreed(self.ledger.quotas, code == 0):
            self.ledger.quotas.answered()

    async def new_producer_id(self) -> None:
        made = await self.world.new_producer_id()
        await self.settle()
        if self.agreed(None, made >= 0):
            self.ledger.producer_ids.add(made)

    # --- records ---

    def _row(self, topic: TopicFacts, transaction: TransactionFacts | None = None) -> Written:
        self._counter += 1
        key = b"key-%d" % self.dice.randrange(4) if topic.is_compacted else None
        at = BATCH_TIME - self.dice.randrange(100_000)
        value = b"%d:" % self._counter + bytes(self.dice.randrange(80))
        return Written(key, value, at, transaction)

    async def write(self, topic: TopicFacts, *, acks: int = -1) -> None:
        """One record, promised when acks=all is answered."""
        index = self.dice.randrange(len(topic.partitions))
        await self._send(topic, index, self._row(topic), acks)

    async def _send(
        self, topic: TopicFacts, index: int, row: Written, acks: int, **producer: Any
    ) -> bool:
        facts, log = topic.partitions[index], self.world.log(topic.name, index)
        offset = log.snapshot.log_end_offset
        facts.sent.setdefault(offset, []).append(row)
        version = producer.pop("version", 12)
        transactional_id = producer.pop("transactional_id", None)
        records = batch(row.value, at=row.at, key=row.key, **producer)
        request: Any = produce_request(
            records,
            topic=topic.name,
            partition=index,
            acks=acks,
            transactional_id=transactional_id,
        )
        answer = await self.world.call(request, version)
        answer = answer.responses[0].partition_responses[0]
        await self.settle()
        if not self.agreed(None, not answer.error_code):
            row.is_refused = True
            return False
        assert answer.base_offset == offset, answer
        if acks == -1:
            facts.became_durable(offset + 1)
        return True

    async def sync(self, topic: TopicFacts) -> None:
        for index, facts in enumerate(topic.partitions):
            log = self.world.log(topic.name, index)
            is_synced = self.world.sync(log)
            await self.settle()
            if self.agreed(None, is_synced):
                facts.became_durable(log.snapshot.log_end_offset)

    async def delete_records(self, topic: TopicFacts) -> None:
        index = self.dice.randrange(len(topic.partitions))
        facts, snapshot = topic.partitions[index], self.world.log(topic.name, index).snapshot
        before = self.dice.randint(snapshot.log_start_offset, snapshot.high_watermark)
        facts.start_asked = max(facts.start_asked, before)
        start = await self.world.delete_records(topic.name, index, before)
        await self.settle()
        if self.agreed(None, start == before):
            facts.start = before

    async def retain(self, topic: TopicFacts) -> None:
        for index, facts in enumerate(topic.partitions):

            def decided(offset: int, facts: PartitionFacts = facts) -> None:
                facts.start_asked = max(facts.start_asked, offset)

            start = self.world.remove_old(self.world.log(topic.name, index), decided)
            await self.settle()
            facts.start = start

    async def clean(self, topic: TopicFacts) -> None:
        for index, facts in enumerate(topic.partitions):
            log = self.world.log(topic.name, index)
            self.world.clean(log, self.dice)
            await self.settle()
            if self.agreed(None, log.failed is None):
                facts.became_durable(log.durable_offset)

    # --- groups ---

    async def commit_offset(self, group: str, topic: TopicFacts, offset: int) -> None:
        index = self.dice.randrange(len(topic.partitions))
        fact = self.ledger.offset(group, topic.name, index)
        fact.ask(offset)
        request = commit_request((topic.name, index, offset), group_id=group)
        answer: Any = await self.world.call(request, 9)
        await self.settle()
        if self.agreed(fact, not answer.topics[0].partitions[0].error_code):
            fact.answered()

    async def join_group(self, group: str) -> None:
        """A member of its own: whoever was in the group leaves it first."""
        fact = self.ledger.members.setdefault(group, Fact(None))
        fact.ask(None)
        fact.answered()
        await self.make_groups()
        for known in list(getattr(self.world.broker.groups.groups.get(group), "members", ())):
            member = self.world.member(group_id=group)
            member.member_id = known
            member.leave()
        member = self.world.member(group_id=group, session_ms=1_700_000)
        joined = member.join()
        self.world.pass_ms(1)
        member.took(joined)
        synced = member.sync({member.member_id: b"all"})
        await self.settle()
        if not self.agreed(None, not synced.answer.error_code):
            return
        fact.ask(Membership(member.generation, member.member_id))
        fact.answered()

    # --- transactions ---

    async def transact(self, topics: list[TopicFacts], *, ends: str | None) -> None:
        """A transaction over some partitions and offsets; left open without an end."""
        version = self.dice.choice((1, 2))
        producer = await self._producer(version)
        if producer is None:
            return
        transaction = TransactionFacts(len(self.ledger.transactions))
        self.ledger.transactions.append(transaction)
        is_whole = await self._fill(transaction, producer, topics)
        is_whole = is_whole and await self._offset_in(transaction, producer, topics)
        if ends is not None:  # whoever was refused anything gives it up, as clients do
            await self._end(transaction, producer, ends if is_whole else ABORT)

    async def _fill(
        self, transaction: TransactionFacts, producer: Producer, topics: list[TopicFacts]
    ) -> bool:
        """Some records of it, others between them; whether all were taken."""
        dice, sequences = self.dice, dict[tuple[str, int], int]()
        for _ in range(dice.randint(1, 4)):
            topic = dice.choice(topics)
            place = topic.name, dice.randrange(len(topic.partitions))
            sequence = sequences.get(place, 0)
            sequences[place] = sequence + 1
            if not await self._write_in(transaction, producer, topic, place[1], sequence):
                return False
            if dice.random() < 0.3:
                await self.write(topic, acks=dice.choice((1, -1)))
        return True

    async def _write_in(
        self,
        transaction: TransactionFacts,
        producer: Producer,
        topic: TopicFacts,
        index: int,
        sequence: int,
    ) -> bool:
        if producer.version == 1:
            codes = await producer.join(index, topic=topic.name)
            if not self.agreed(None, codes == [0]):
                return False
        return await self._send(
            topic, index, self._row(topic, transaction), -1,
            version=11 if producer.version == 1 else 12,
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id, producer_epoch=producer.epoch,
            base_sequence=sequence, transactional=True,
        )  # fmt: skip

    async def _producer(self, version: int) -> Producer | None:
        """With an id of its own: what others leave open stays open."""
        self._transactional_ids += 1
        name = f"x{self._transactional_ids}"
        producer = self.producers[name] = Producer(self.world, name, version)
        code = await producer.begin()
        await self.settle()
        if not self.agreed(None, code == 0):
            return None
        self.ledger.producer_ids.add(producer.producer_id)
        return producer

    async def _offset_in(
        self, transaction: TransactionFacts, producer: Producer, topics: list[TopicFacts]
    ) -> bool:
        """Perhaps an offset of a group, too; False when it was refused."""
        if not any(topic.name == "t" for topic in topics) or self.dice.random() < 0.4:
            return True
        self._counter += 1
        transaction.offsets["g", "t", 0] = self._counter
        self.ledger.offset("g", "t", 0)
        code = await producer.commit_offset(self._counter, 0)
        await self.settle()
        return self.agreed(None, code == 0)

    async def _end(self, transaction: TransactionFacts, producer: Producer, how: str) -> None:
        transaction.outcome.ask(how)
        facts = {place: self.ledger.offsets[place] for place in transaction.offsets}
        for place, offset in transaction.offsets.items():
            facts[place].ask(offset if how == COMMIT else facts[place].latest)
        code = await producer.end(commit=how == COMMIT)
        await self.settle()
        asked: list[Fact[Any]] = [transaction.outcome, *facts.values()]
        for fact in asked:
            if self.agreed(fact, code == 0):
                fact.answered()
        await self.world.rests()
        await self.settle()


def outcome_of(dice: random.Random) -> str | None:
    """Committed, aborted, or left open."""
    return dice.choice((COMMIT, COMMIT, ABORT, ABORT, None))
