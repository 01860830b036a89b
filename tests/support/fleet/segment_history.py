"""A log of a fleet that is in segments in the store, over any number of leaders and lost disks.

By a seed: leaders write, copy, let go, remove and follow one another, with whatever their disks
have; those of before go on copying. Each next one has what is committed, and nothing else.
"""

import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from broker.fleet.catalog.rows import ManifestName
from broker.fleet.local_logs import LocalLog
from protocol.records.builder import build_batch
from protocol.records.markers import ABORT, COMMIT, Marker, build_marker
from storage.env import Env
from storage.errors import LogOffline, StorageError
from storage.log.compaction_state import CleanPart
from storage.log.lifecycle import learn_times
from storage.retention.plan import RetentionLimits
from storage.tier.names import object_of
from storage.tier.orphans import OrphanSweep, SweepOrder
from storage.tier.tiered_log import TieredLog
from storage.validation.internal_batch import own_batch
from tests.support.disk.simenv import SeededRng
from tests.support.fleet.machines.real_host import CONFIG
from tests.support.fleet.segment_world import KEY, Clock, Node, Rows, check
from tests.support.fleet.transactions_of_log import PRODUCERS as TRANSACTIONAL
from tests.support.fleet.transactions_of_log import Transactions
from tests.support.records.cleaning import COMPACT, clean_tiered
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.often_full import often_full

STEPS, KEYS = 60, 5
PRODUCERS = 3
TRANSACTIONAL_SHARE, END_SHARE = 0.3, 0.3
"""Batches that are of a transaction, and those of them that end it."""
COMPACTED = replace(CONFIG, cleanup_policy=COMPACT, delete_retention_ms=500)
ALL = RetentionLimits(retention_ms=0, retention_bytes=-1)


class Sent(NamedTuple):
    """A producer's batch, and where it is."""

    offset: int
    batch: bytes


class History:
    """A course of events by its seed."""

    def __init__(self, seed: int, *, is_compacted: bool = False, transacts: bool = True) -> None:
        self.dice = random.Random(seed)
        self.store = MemoryStore()
        clock = Clock()
        self.is_compacted = is_compacted
        self._transactional_share = TRANSACTIONAL_SHARE if transacts else 0.0
        config = COMPACTED if is_compacted else CONFIG
        self.nodes = [Node(number, self.store, clock, config) for number in (1, 2, 3)]
        self.clock = clock
        self.rows = Rows()
        self.next_value = 0
        self.zombies: list[TieredLog] = []
        self.sent = Counter[int]()
        """Records by producer."""
        self.latest: dict[int, Sent] = {}
        self.committed: tuple[Mapping[int, int], Mapping[int, Sent]] = {}, {}
        self.transactions = Transactions()

    async def run(self) -> None:
        self.leader = self.nodes[0]
        await self.leader.lead(self.rows)
        ways = [self.write, self.write, self.write, self.copy, self.copy, self.zombie]
        ways += [self.move, self.move]
        ways += [self.clean, self.clean] if self.is_compacted else [self.drop, self.trim]
        for _ in range(STEPS):
            await self.dice.choice(ways)()
        await self.move()

    def sweep(self) -> int:
        """Objects that nothing names go, as the leader finds them; how many did."""
        order = SweepOrder(
            frozenset((KEY.topic_id,)), frozenset(), frozenset(), frozenset(), 0, 0.0,
            past_ms=0, is_shared=True,
        )  # fmt: skip
        sweep = OrphanSweep(self.store, self.clock, self.leader.remote.find)
        return sum(sweep.round(order).removed.objects for _ in range(2))

    @property
    def log(self) -> LocalLog:
        assert self.leader.log is not None
        return self.leader.log

    def append(self, count: int) -> None:
        for _ in range(count):
            if self.dice.random() < self._transactional_share:
                self.transact()
                continue
            producer = self.next_value % PRODUCERS
            records = self.batch_records()
            batch = build_batch(
                [self.record() for _ in range(records)],
                producer_id=producer, producer_epoch=0, base_sequence=self.sent[producer],
            )  # fmt: skip
            sent = bytes(batch)
            at = self.send(sent)
            assert at == self.log.end_offset - records, "a batch was taken for one of before"
            self.sent[producer] += records
            self.latest[producer] = Sent(at, sent)

    def batch_records(self) -> int:
        return 1 if self.is_compacted else self.dice.choice((1, 2, 5))

    def transact(self) -> None:
        """A transaction goes on, or ends."""
        transactions, producer = self.transactions, self.dice.choice(TRANSACTIONAL)
        if producer in transactions.open and self.dice.random() < END_SHARE:
            kind = self.dice.choice((ABORT, COMMIT))
            marker = build_marker(Marker(kind, 0), producer, 0, self.clock.now_ms())
            transactions.ended(producer, self.send_own(marker), kind)
            return
        records = self.batch_records()
        batch = build_batch(
            [self.record() for _ in range(records)], transactional=True,
            producer_id=producer, producer_epoch=0, base_sequence=transactions.sent[producer],
        )  # fmt: skip
        at = self.send(bytes(batch))
        assert at == self.log.end_offset - records, "a batch was taken for one of before"
        transactions.written(producer, at, records)

    def send_own(self, batch: bytearray) -> int:
        """The offset of a batch of the broker's own."""
        own = own_batch(batch, self.clock.now_ms())
        log = self.log.log
        return log.append_own(own, acks_all=True, leader_epoch=self.rows.epoch).base_offset

    def send(self, batch: bytes) -> int:
        """The offset of the batch; that of its first arrival where it is known there."""
        ours = memoryview(bytearray(batch))
        log = self.log.log
        return log.append(ours, acks_all=True, leader_epoch=self.rows.epoch).base_offset

    def send_again(self) -> None:
        """Producers send their latest committed batches: the leader knows those that are there."""
        for producer, sent in self.latest.items():
            if sent.offset >= self.rows.log_start:
                end = self.log.end_offset
                assert self.send(sent.batch) == sent.offset, f"{producer} is not known"
                assert self.log.end_offset == end

    def record(self) -> tuple[int, bytes | None, bytes]:
        value = str(self.next_value).rjust(40).encode()
        self.next_value += 1
        key = b"%d" % self.dice.randrange(KEYS) if self.is_compacted else None
        return self.clock.now_ms(), key, value

    async def write(self) -> None:
        self.append(self.dice.randrange(1, 12))
        self.rows.commit(self.log)
        self.committed = dict(self.sent), dict(self.latest)
        self.rows.transactions = self.transactions.copy()
        if self.dice.random() < 0.3:
            self.log.log.roll()
        self.log.log.mark_durable(self.log.log.sync())

    def checkpoint(self) -> None:
        """Commits are read for one, as far as they are in the log."""
        for each in self.rows.spans:
            with suppress(StorageError):
                found = self.log.batches(each.span.base_offset, each.span.end_offset, 1 << 20)
                assert found[0].base_offset == each.span.base_offset

    async def copy(self) -> None:
        tiered = self.leader.tiered
        if self.is_compacted:
            cleaned = self.leader.logs.cleaner_offsets.clean_part(("t", 0))
            while tiered.mirror_next(lambda _: None, cleaned) is not None:
                pass
        else:
            tiered.copy_next(lambda _: None)
        if tiered.manifest.number and self.dice.random() < 0.8:
            self.rows.name(tiered)
            tiered.show()
            gone = tiered.take_replaced()
            tiered.forget(gone)
            self.store.delete([key for row in gone for key in tiered.objects_of(row)])

    async def clean(self) -> None:
        """A run of the leader's cleaner."""
        leader = self.leader
        env = Env(self.clock, leader.fs, SeededRng(2))
        clean_tiered(self.log.log, leader.logs, env, leader.tiered)

    async def drop(self) -> None:
        tiered, log = self.leader.tiered, self.log.log
        if self.rows.manifest != ManifestName(self.rows.epoch, tiered.manifest.number):
            return  # as a round has it: what is not named leaves nothing
        assert learn_times(log, 1000)
        below = tiered.leaving.droppable(ALL, self.clock.now_ms())
        while tiered.leave(below):
            pass

    async def trim(self) -> None:
        low, high = self.rows.log_start, self.log.log.snapshot.high_watermark
        if self.dice.random() < 0.5 or low == high:
            return
        start = self.dice.randrange(low, high + 1)
        self.log.log.delete_records(start)
        self.rows.trim(start)
        self.checkpoint()
        gone = self.leader.tiered.expire()
        if gone:
            self.rows.name(self.leader.tiered)
            self.leader.tiered.show()
            for row in gone:
                self.leader.tiered.forget([row])
                self.store.delete(list(self.leader.tiered.objects_of(row)))

    async def zombie(self) -> None:
        """A leader of before goes on copying: what it puts counts for nothing."""
        if self.zombies:
            zombie = self.dice.choice(self.zombies)
            try:
                if self.is_compacted:
                    zombie.mirror_next(lambda _: None, CleanPart())
                else:
                    zombie.copy_next(lambda _: None)
            except (LogOffline, StorageError):
                return

    async def move(self) -> None:
        """Another leader, or the same: what was not committed goes, and a disk perhaps."""
        self.append(self.dice.randrange(3))
        sent, latest = self.committed
        self.sent, self.latest = Counter(sent), dict(latest)
        self.transactions = self.rows.transactions.copy()
        if self.dice.random() < 0.5:
            self.log.log.sync()
        self.zombies = [self.leader.tiered]
        node = self.dice.choice(self.nodes)
        match self.dice.randrange(4):
            case 0:
                node.lose_disk()
            case 1:
                node.crash(self.dice)
        self.leader = node
        await node.lead(self.rows)
        check(self.rows, self.log, is_compacted=self.is_compacted)
        self.send_again()


async def swept_segments(seed: int) -> int:
    """A history, a sweep, and a take-over by an empty disk; how many objects went."""
    history = History(seed)
    with often_full():
        await history.run()
        removed = history.sweep()
    if history.leader.tiered.is_named:
        left = (object_of(each.key) for each in history.store.list("topics/"))
        epochs = {each.epoch for each in left if each is not None and each.epoch is not None}
        assert epochs == {history.rows.epoch}
    history.leader.lose_disk()
    await history.leader.lead(history.rows)
    check(history.rows, history.log, is_compacted=False)
    return removed


async def play_segments(seed: int, *, is_compacted: bool = False) -> int:
    """One history; the take-overs it had. AssertionError, or whatever it meets."""
    history = History(seed, is_compacted=is_compacted)
    with often_full():
        await history.run()
    return history.rows.epoch
