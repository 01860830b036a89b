"""A broker's life on a disk of which one call fails: refused, it may be; lost or made up, never.

What is refused is noted as possible. Each acks=all write to `t` is an idempotent producer's, which
sends what was refused again after the restart, and must then get the offset of one copy, on the
disk.
"""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from protocol.errors import KafkaError
from storage.errors import StorageError
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SimClock
from tests.support.records.logs import records_of
from tests.support.worlds.broker_life import BrokenPromiseError, BrokerLife
from tests.support.worlds.broker_world import BrokerWorld
from tests.support.worlds.handler_world import batch, produce_request
from tests.support.worlds.promises import Fact, TopicFacts, Written

CUTS = 2
Producing = tuple[int, int]
"""Producer id, next sequence."""


class FaultyLife(BrokerLife):
    """Nothing is looked at on the way; at the end the broker is killed or stopped, and judged."""

    def __init__(self, seed: int, fail_at: tuple[int, str] | None) -> None:
        """The call with this number fails so: eio, enospc, short. None: nothing fails."""
        self.refusals = 0
        self.calls: list[tuple[str, str]] = []
        """Of each mutating call the kind and the path, over all disks, each start included."""
        self._resends: dict[tuple[str, int], tuple[TopicFacts, Written, int, int]] = {}
        self._producing: dict[tuple[str, int], Producing] = {}
        self._fault = fail_at
        super().__init__(seed, 1)

    def _born(self) -> BrokerWorld:
        fs = SimFileSystem(clock=SimClock())
        self._watch_disk(fs)
        try:
            return BrokerWorld(fs, self.seed)
        except StorageError:
            self.refusals += 1
            after = fs.after_kill()
            self._watch_disk(after)
            return BrokerWorld(after, self.seed)

    def _watch(self) -> None:
        """A disk is watched before the start on it."""

    def _watch_disk(self, fs: SimFileSystem) -> None:
        """The call with the life's number fails, whichever disk it is made on."""
        fs.on_mutation = self._note
        number, error = self._fault or (0, "")
        if number > len(self.calls):
            fs.fail_at = fs.calls + number - len(self.calls), error

    def _note(self, operation: str, path: str) -> None:
        self.calls.append((operation, path))

    async def settle(self) -> None:
        """Later."""

    def agreed(self, fact: Fact[Any] | None, is_done: object) -> bool:
        if not is_done:
            self.refusals += 1
            if fact is not None and not fact.is_settled:
                fact.refused()
        return bool(is_done)

    async def attempt(self, step: Callable[[Any], Awaitable[None]]) -> None:
        try:
            await step(self)
        except (StorageError, KafkaError):
            self.refusals += 1
        except IndexError:  # no topic is left that can be used for this
            return

    async def make_groups(self) -> None:
        if self.step != "the first topics":
            await super().make_groups()  # an error ends the step
            return
        with suppress(KafkaError, StorageError):
            await super().make_groups()

    async def delete(self, name: str) -> None:
        """A topic that takes records after its deletion was refused stays."""
        await super().delete(name)
        fact = self.ledger.topics[name]
        topic = fact.latest
        if fact.is_settled or topic is None:
            return
        with suppress(IndexError, KafkaError, StorageError):
            is_taken = await self._send(topic, 0, self._row(topic), 1)
            if is_taken:
                fact.answered()

    # --- idempotent producers ---

    async def write(self, topic: TopicFacts, *, acks: int = -1) -> None:
        index = self.dice.randrange(len(topic.partitions))
        place = topic.name, index
        row = self._row(topic)
        if acks != -1 or topic.name != "t" or place in self._resends:
            await self._send(topic, index, row, acks)
            return
        if place not in self._producing:
            made = await self.world.new_producer_id()
            if not self.agreed(None, made >= 0):
                return
            self.ledger.producer_ids.add(made)
            self._producing[place] = made, 0
        producer_id, sequence = self._producing[place]
        is_taken = await self._send(
            topic, index, row, -1, producer_id=producer_id, producer_epoch=0, base_sequence=sequence
        )
        if is_taken:
            self._producing[place] = producer_id, sequence + 1
        else:
            self._resends[place] = topic, row, producer_id, sequence

    async def _send_again(self) -> None:
        """After the start: each refused record is taken now, and promised."""
        for (name, index), (topic, row, producer_id, sequence) in self._resends.items():
            if name not in self.world.broker.topics.image.topics:
                continue
            records = batch(
                row.value, at=row.at, producer_id=producer_id, producer_epoch=0,
                base_sequence=sequence,
            )  # fmt: skip
            request = produce_request(records, topic=name, partition=index, acks=-1)
            answer: Any = await self.world.call(request, 12)
            told = answer.responses[0].partition_responses[0]
            assert not told.error_code, f"{name}-{index}: the retry is refused: {told.error_code}"
            facts = topic.partitions[index]
            again = replace(row, is_durable=True, is_refused=False)
            facts.sent.setdefault(told.base_offset, []).append(again)
        self._resends.clear()

    # --- the end ---

    async def _all_is_durable(self) -> None:
        """Checks a start: what it serves is on the disk; what it does not was never promised.

        Its offset may be another record's now: what is said of that one means nothing for it.
        """
        for topic in self.ledger.living():
            for index, facts in enumerate(topic.partitions):
                records = records_of(self.world.log(topic.name, index))
                found = {each.offset: each.value for each in records}
                for offset, rows in facts.sent.items():
                    for row in rows:
                        row.is_durable |= found.get(offset) == row.value
                        row.is_refused |= not row.is_durable

    async def restart(self) -> None:
        if await self.world.stop():
            await self._stopped_well()
        await self._start(self.world.fs.after_kill())
        await self._all_is_durable()

    async def _stopped_well(self) -> None:
        """The directory is marked clean: a cut changes nothing, and what was served counts.

        Up to the fault all lives of a seed are the same one, and it is judged in that without any.
        """
        has_failed = self._fault is None or self._fault[0] <= len(self.calls)
        for seed in range(CUTS if has_failed else 0):
            await self._judged("a clean stop, then a cut", self.world.fs.after_crash(seed))

    async def end(self) -> None:
        """A cut now and one later; a restart, the retry of what was refused, and a cut then."""
        assert self._fault is None or self._fault[0] <= len(self.calls), "no call has failed"
        await self._judged("a cut", self.world.fs.after_crash(0))
        await self.attempt(_time_passes)
        await self._judged("syncs, checkpoints and a cut", self.world.fs.after_crash(1))
        await self.restart() if self.dice.random() < 0.3 else await self.kill()
        await self._judged("a restart", self.world.fs.after_kill())
        await self._send_again()
        for seed in range(CUTS):
            await self._judged("a restart, retries, a cut", self.world.fs.after_crash(seed))
        self.world.ends()

    async def _start(self, fs: SimFileSystem) -> None:
        self.world.ends()
        self._watch_disk(fs)
        try:
            self.world = await self.world.reborn(fs)
        except StorageError:  # it said so, and is started again
            self.refusals += 1
            after = fs.after_kill()
            self._watch_disk(after)
            self.world = await self.world.reborn(after)
        for each in self.producers.values():
            each.world = self.world

    async def _judged(self, when: str, disk: SimFileSystem) -> None:
        self.points += 1
        self._judging = random.Random(f"judge {self.seed}")
        try:
            await self._judge(0, disk)
        except BrokenPromiseError as error:
            raise BrokenPromiseError(f"after {when}: {error}") from error.__cause__


async def _time_passes(life: BrokerLife) -> None:
    """All is synced, what an earlier sync could not store as well, and checkpoints vouch for it."""
    for topic in life.ledger.living():
        await life.sync(topic)
    life.world.broker.logs.checkpoint()
