"""Transactions without network, threads or disk: producers speak through handlers, time stands
still.

A `Producer` is one client of a transactional id; by protocol 1 it names its partitions, by protocol
2 (KIP-890) they join by themselves and every end gives it a new epoch. What a reader of committed
records sees is read as Kafka's clients read it: the answer's aborted transactions are left out.
"""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from protocol.apis import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    fetch,
    init_producer_id,
    offset_fetch,
    produce,
    txn_offset_commit,
)
from protocol.errors import ErrorCode
from protocol.records.batch import iter_headers
from protocol.records.markers import ABORT, marker_of
from protocol.records.record import read_records
from tests.support.disk.simdisk import SimFileSystem
from tests.support.worlds.handler_world import ManualCommit, World, batch, produce_request

GROUP = "g"
TIMEOUT_MS = 60_000


class PromptCommit(ManualCommit):
    """An fsync thread that is done before anybody can wait for it."""

    def request(self, log: Any, offset: int, done: Callable[[BaseException | None], None]) -> None:
        super().request(log, offset, done)
        self.sync()


class TransactionWorld(World):
    """A broker whose transactions are tried.

    What is written counts at once; with `horolog_durability` by-acks what was promised, alone, is
    on the disk.
    """

    commit_kind = PromptCommit

    def __init__(self, fs: SimFileSystem | None = None, seed: int = 0, **settings: str) -> None:
        small = {
            "transaction_state_log_num_partitions": "2",
            "offsets_topic_num_partitions": "2",
            "horolog_durability": "os",
        }
        self.settings = settings
        super().__init__(fs, seed, **{**small, **settings})

    def clock_watch(self, broker: SimpleNamespace) -> Any:
        """A clock watch without holds."""
        return SimpleNamespace(look=lambda: False, trusted_ms=self.clock.now_ms)

    def remains(self, power_cut: int | None = None) -> SimFileSystem:
        """State of the disk after kill -9 at this moment, or a power cut (a seed)."""
        return self.fs.after_kill() if power_cut is None else self.fs.after_crash(power_cut)

    async def reborn(self, fs: SimFileSystem | None = None) -> "TransactionWorld":
        """A broker on what is left, after kill -9 unless given; the wall clock goes on."""
        fs = fs or self.remains()
        again = TransactionWorld(fs, self.seed + 1, **self.settings)
        again.clock.step(self.clock.now_ms() - again.clock.now_ms())
        await again.loaded()
        return again

    async def loaded(self) -> None:
        await self.broker.share_states.load()
        await self.broker.groups.load()
        await self.broker.transactions.load()

    async def passes(self, ms: int) -> None:
        """Time passes, and what is overdue is aborted."""
        self.clock.advance(ms)
        await self.broker.transactions.abort_overdue()

    async def rests(self) -> None:
        """Ends that are under way are over."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def committed(self, topic: str = "t", partition: int = 0) -> list[bytes]:
        """The values that a reader of committed records gets."""
        values: list[bytes] = []
        offset, aborted = self.partition(topic, partition).log.snapshot.log_start_offset, set[int]()
        while True:
            answer = await self.fetched(topic, partition, offset)
            assert answer.error_code == 0
            starts = sorted((each.first_offset, each.producer_id) for each in _listed(answer))
            data = memoryview(answer.records)
            if not data:
                return values
            for position, header in iter_headers(data):
                whole = data[position : position + header.size_bytes]
                while starts and starts[0][0] <= header.last_offset:
                    aborted.add(starts.pop(0)[1])
                offset = header.last_offset + 1
                marker = marker_of(whole) if header.is_control else None
                if marker is not None and marker.kind == ABORT:
                    aborted.discard(header.producer_id)
                elif not header.is_control and not (
                    header.is_transactional and header.producer_id in aborted
                ):
                    values += [each.value or b"" for each in read_records(whole)]

    async def fetched(
        self, topic: str, partition: int, offset: int, max_bytes: int = 1 << 20, **how: int
    ) -> Any:
        asked = fetch.FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
        )
        request = fetch.FetchRequest(
            max_wait_ms=how.get("wait_ms", 0),
            min_bytes=how.get("min_bytes", 0),
            max_bytes=1 << 20,
            isolation_level=1,
            topics=[fetch.FetchTopic(topic=topic, partitions=[asked])],
        )
        response = await self.call(request, 11)
        return response.responses[0].partitions[0]

    async def offset(self, partition: int = 0, *, stable: bool = False) -> tuple[int, int]:
        """The group's committed offset, and the error code."""
        topic = offset_fetch.OffsetFetchRequestTopic(name="t", partition_indexes=[partition])
        request = offset_fetch.OffsetFetchRequest(
            group_id=GROUP, topics=[topic], require_stable=stable
        )
        answer = (await self.call(request, 7)).topics[0].partitions[0]
        return answer.committed_offset, answer.error_code

    def stable_offset(self, topic: str = "t", partition: int = 0) -> int:
        """The last stable offset."""
        return self.partition(topic, partition).log.snapshot.last_stable_offset


def _listed(answer: Any) -> list[Any]:
    return answer.aborted_transactions or []


class Producer:
    """One client; codes are what it is answered."""

    def __init__(self, world: TransactionWorld, transactional_id: str, version: int = 1) -> None:
        self.world = world
        self.transactional_id = transactional_id
        self.version = version
        self.producer_id, self.epoch = -1, -1
        self._sequences: dict[tuple[str, int], int] = {}

    async def begin(self, *, goes_on: bool = False, timeout_ms: int = TIMEOUT_MS) -> int:
        """InitProducerId."""
        asked = init_producer_id.InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=self.producer_id if goes_on else -1,
            producer_epoch=self.epoch if goes_on else -1,
        )
        answer = await self.world.call(asked, 5)
        if not answer.error_code:
            self._is(answer.producer_id, answer.producer_epoch)
        return int(answer.error_code)

    async def join(self, *partitions: int, topic: str = "t", api_version: int = 3) -> list[int]:
        """AddPartitionsToTxn: a code for each partition."""
        named = add_partitions_to_txn.AddPartitionsToTxnTopic(name=topic, partitions=[*partitions])
        asked = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[named],
        )
        answer = await self.world.call(asked, api_version)
        results = answer.results_by_topic_v3_and_below[0].results_by_partition
        return [each.partition_error_code for each in results]

    async def write(self, value: bytes, partition: int = 0, topic: str = "t") -> int:
        """One record, in the transaction."""
        if self.version == 1:
            (code,) = await self.join(partition, topic=topic)
            if code:
                return code
        return await self.send(value, partition, topic)

    async def send(self, value: bytes, partition: int = 0, topic: str = "t", **how: Any) -> int:
        """The Produce request alone."""
        place = topic, partition
        sequence = how.pop("sequence", self._sequences.get(place, 0))
        records = batch(
            value, producer_id=self.producer_id, producer_epoch=self.epoch,
            base_sequence=sequence, transactional=True,
        )  # fmt: skip
        request: produce.ProduceRequest = produce_request(
            records, topic=topic, partition=partition, acks=-1,
            transactional_id=self.transactional_id,
        )  # fmt: skip
        response = await self.world.call(request, 11 if self.version == 1 else 12)
        code = response.responses[0].partition_responses[0].error_code
        if not code:
            self._sequences[place] = sequence + 1
        return int(code)

    async def commit_offset(self, offset: int, partition: int = 0, **member: Any) -> int:
        """The group's offset, in the transaction."""
        if self.version == 1:
            asked = add_offsets_to_txn.AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id, producer_id=self.producer_id,
                producer_epoch=self.epoch, group_id=GROUP,
            )  # fmt: skip
            code = (await self.world.call(asked, 3)).error_code
            if code:
                return int(code)
        each = txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset
        )
        topic = txn_offset_commit.TxnOffsetCommitRequestTopic(name="t", partitions=[each])
        commit = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id, group_id=GROUP, producer_id=self.producer_id,
            producer_epoch=self.epoch, topics=[topic], **member,
        )  # fmt: skip
        answer = await self.world.call(commit, 3 if self.version == 1 else 5)
        return int(answer.topics[0].partitions[0].error_code)

    async def end(self, *, commit: bool = True) -> int:
        """EndTxn; by protocol 2 with a new epoch."""
        asked = end_txn.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = await self.world.call(asked, 4 if self.version == 1 else 5)
        if not answer.error_code and self.version > 1:
            self._is(answer.producer_id, answer.producer_epoch)
        return int(answer.error_code)

    def _is(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch


async def transaction_world(partitions: int = 2, **settings: str) -> TransactionWorld:
    """With the topic `t`."""
    world = TransactionWorld(None, 0, **settings)
    await world.make_topic(partitions=partitions)
    return world


async def producer(
    world: TransactionWorld, transactional_id: str = "x", version: int = 1
) -> Producer:
    """One that has begun."""
    made = Producer(world, transactional_id, version)
    assert await made.begin() == ErrorCode.NONE
    return made
