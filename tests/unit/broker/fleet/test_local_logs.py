"""Logs of a node's shards: what is committed and nothing else, whatever the directory has."""

import asyncio
import random
from collections.abc import Sequence
from uuid import UUID

import pytest

from broker.fleet.catalog.rows import (
    CommitId,
    CommittedSpan,
    Incarnation,
    OwnedShard,
    PartitionKey,
    PartitionRow,
)
from broker.fleet.frame import ArrivedBatch, CorruptFrame, PartitionBatches, StoredBatch, make_frame
from broker.fleet.local_logs import LocalLog
from protocol.records.builder import build_batch
from storage.errors import LogOffline, StorageError
from storage.log.following import batches_between
from tests.support.fleet.commits import HeldCommits
from tests.support.fleet.machines.real_host import RealDisk, RealHost
from tests.support.fleet.machines.sim_host import SimBatch, Value

NOW = 1_700_000_000_000
KEY = PartitionKey(UUID(int=5), 0)
OTHER = PartitionKey(UUID(int=6), 0)
COMMIT = CommitId(Incarnation(1, 1), 1)


class Committed:
    """Spans as the catalog has them, and their bytes."""

    def __init__(self) -> None:
        self.spans: list[CommittedSpan] = []
        self.bytes: dict[int, list[ArrivedBatch]] = {}
        self.asked: list[int] = []
        self.start = 0

    def add(self, epoch: int, batches: Sequence[StoredBatch]) -> None:
        part = PartitionBatches(KEY, epoch, batches)
        [span] = make_frame(UUID(int=1), COMMIT, [part]).spans
        self.spans.append(CommittedSpan(span, COMMIT, None))
        self.bytes[span.base_offset] = [
            ArrivedBatch(each.arrival_ms, each.data) for each in batches
        ]

    async def bytes_of(self, committed: CommittedSpan) -> list[ArrivedBatch]:
        self.asked.append(committed.span.base_offset)
        return self.bytes[committed.span.base_offset]

    def row(self, key: PartitionKey = KEY) -> PartitionRow:
        return PartitionRow(key, "t", 1, self.start, self.spans, None)


class Node:
    """A directory, and its process."""

    def __init__(self) -> None:
        self.now_ms = NOW
        self.disk = RealDisk(1, lambda: self.now_ms)
        self.host: RealHost
        self.again()

    def again(self) -> None:
        self.host = self.disk.host(random.Random(1))

    async def load(self, committed: Committed, epoch: int, key: PartitionKey = KEY) -> LocalLog:
        log = await self.host.shards.load(
            committed.row(key), OwnedShard(1, epoch), committed.bytes_of
        )
        assert isinstance(log, LocalLog)
        self.host.shards.serve(log, HeldCommits())
        return log

    def write(self, log: LocalLog, numbers: range, *, epoch: int) -> list[StoredBatch]:
        """Values of producer 1, of which nothing is committed."""
        assert log.shard.epoch == epoch
        begin = log.end_offset
        for number in numbers:
            self.now_ms += 1
            self.host.served[log.partition].append([Value(1, number)], number, self.now_ms)
        found = log.batches(begin, log.end_offset, 1 << 20)
        return list(found)

    def values(self, log: LocalLog) -> list[int]:
        return [each.value.sequence for each in self.host.served[log.partition].committed()]


async def test_what_was_not_committed_goes(node: Node) -> None:
    committed = Committed()
    log = await node.load(committed, 3)
    committed.add(3, node.write(log, range(3), epoch=3))
    committed.add(3, node.write(log, range(3, 4), epoch=3))
    node.write(log, range(4, 9), epoch=3)
    log.log.sync()
    node.again()
    log = await node.load(committed, 4)
    assert node.values(log) == [0, 1, 2, 3]
    assert committed.asked == [3], "only the zone that was cut is fetched, for its arrivals"
    committed.add(4, node.write(log, range(4, 6), epoch=4))
    log.mark_durable(6)
    assert [each.epoch for each in node.host.served[KEY].committed()] == [3] * 4 + [4] * 2


async def test_what_another_owner_committed_comes(node: Node, other: Node) -> None:
    """Ours of the same offsets was never committed: the epochs tell."""
    committed = Committed()
    first = await node.load(committed, 1)
    committed.add(1, node.write(first, range(3), epoch=1))
    node.write(first, range(3, 5), epoch=1)
    second = await other.load(committed, 2)
    assert committed.asked == [0]
    committed.add(2, other.write(second, range(3, 9), epoch=2))
    third = await node.load(committed, 3)
    assert committed.asked == [0, 3]
    found = node.host.served[KEY].committed()
    assert found == [SimBatch(1 + (each > 2), 0, Value(1, each)) for each in range(9)]
    assert [each.arrival_ms for each in third.batches(3, 9, 1 << 20)] == [
        each.arrival_ms for each in second.batches(3, 9, 1 << 20)
    ]


async def test_each_batch_is_committed_with_the_time_when_it_came(node: Node) -> None:
    """Those of a zone may be hours apart; its row has the first and the last."""
    log = await node.load(Committed(), 1)
    times = []
    for number, later_ms in enumerate((0, 36_000_000, 10_000)):
        node.now_ms += later_ms
        times += [each.arrival_ms for each in node.write(log, range(number, number + 1), epoch=1)]
    assert times == [NOW + 1, NOW + 36_000_002, NOW + 36_010_003]
    assert [each.arrival_ms for each in log.batches(0, 3, 1 << 20)] == times
    assert [each.arrival_ms for each in log.batches(1, 3, 1 << 20)] == times[1:]


async def test_arrivals_that_are_not_known_are_those_of_the_commits(node: Node) -> None:
    log = await node.load(Committed(), 1)
    node.write(log, range(3), epoch=1)
    log.settled(2)
    assert [each.base_offset for each in log.batches(2, 3, 1 << 20)] == [2]
    with pytest.raises(LogOffline, match="from 2 on"):
        log.batches(0, 3, 1 << 20)


async def test_producers_are_known_as_they_were(node: Node, other: Node) -> None:
    committed = Committed()
    first = await node.load(committed, 1)
    committed.add(1, node.write(first, range(3), epoch=1))
    second = await other.load(committed, 2)
    assert other.host.served[KEY].append([Value(1, 2)], 2, NOW) == 3, "it is there already"
    assert second.end_offset == 3
    other.write(second, range(3, 4), epoch=2)
    assert second.end_offset == 4


async def test_readers_see_nothing_that_is_not_committed(node: Node) -> None:
    log = await node.load(Committed(), 1)
    node.write(log, range(3), epoch=1)
    assert log.log.snapshot.high_watermark == 0
    log.mark_durable(2)
    assert log.log.snapshot.high_watermark == 2
    log.mark_durable(1)
    assert log.log.snapshot.high_watermark == 2


async def test_a_batch_of_which_a_part_was_deleted_is_not_read_from_the_log(node: Node) -> None:
    """It begins before the log's start: a checkpoint of it reads what was committed."""
    log = await node.load(Committed(), 1)
    batch = build_batch([(NOW, None, b"%d" % number) for number in range(3)])
    for _ in range(2):
        log.log.append(memoryview(bytearray(batch)), acks_all=True, leader_epoch=1)
    log.mark_durable(6)
    assert [each.base_offset for each in log.batches(0, 6, 1 << 20)] == [0, 3]
    log.log.delete_records(1)
    with pytest.raises(StorageError, match="Offset 0 is outside of 1 to 6"):
        log.batches(0, 6, 1 << 20)
    assert [each.base_offset for each in log.batches(3, 6, 1 << 20)] == [3]


@pytest.mark.parametrize("uncommitted", range(7))
async def test_a_log_whose_start_is_in_the_middle_of_a_batch_comes_to_every_disk(
    node: Node, other: Node, uncommitted: int
) -> None:
    """What a disk has before the start may end anywhere, since nobody compared it."""
    committed = Committed()
    log = await other.load(committed, 2)
    for first in (0, 5):
        batch = build_batch([(NOW, None, b"%d" % (first + each)) for each in range(5)])
        log.log.append(memoryview(batch), acks_all=True, leader_epoch=2)
    committed.add(2, log.batches(0, 10, 1 << 20))
    stale = await node.load(Committed(), 1)
    node.write(stale, range(uncommitted), epoch=1)
    committed.start = 3
    for epoch in (3, 4):
        loaded = await node.load(committed, epoch)
        assert (loaded.start_offset, loaded.end_offset) == (3, 10)
        batches = batches_between(loaded.log, 5, 10, 1 << 20)
        assert [(each.base_offset, each.last_offset) for each in batches] == [(5, 9)]
        assert len(loaded.log.read(3, 1 << 20, up_to=10, min_one_batch=True).read()) > 0


async def test_a_topic_of_the_same_name_begins_anew(node: Node) -> None:
    committed = Committed()
    log = await node.load(committed, 1)
    committed.add(1, node.write(log, range(3), epoch=1))
    node.host.shards.remove(log)
    assert not node.host.served
    fresh = await node.load(Committed(), 1, OTHER)
    assert (fresh.end_offset, fresh.log.topic_id) == (0, OTHER.topic_id)


async def test_a_commit_that_does_not_fit_is_served_to_nobody(node: Node, other: Node) -> None:
    committed = Committed()
    log = await node.load(committed, 1)
    committed.add(1, node.write(log, range(4), epoch=1))
    [committed.bytes[0][-1:]] = [[]]
    with pytest.raises(CorruptFrame, match="t-0 ends at 3, not at 4"):
        await other.load(committed, 2)
    assert not other.host.served
    damaged = committed.bytes[0][0].data[:-1] + b"?"
    committed.bytes[0][0] = ArrivedBatch(NOW, damaged)
    third = Node()
    with pytest.raises(CorruptFrame, match="offset 0 is damaged"):
        await third.load(committed, 2)


async def test_a_span_of_which_a_part_is_there_is_completed(node: Node, other: Node) -> None:
    """A checkpoint has made one span of two."""
    committed = Committed()
    first = await node.load(committed, 1)
    all_of_it = node.write(first, range(3), epoch=1)
    committed.add(1, all_of_it)
    await other.load(committed, 1)
    all_of_it += node.write(first, range(3, 7), epoch=1)
    whole = Committed()
    whole.add(1, all_of_it)
    log = await other.load(whole, 2)
    assert other.values(log) == list(range(7))
    assert isinstance(other.host, RealHost)


@pytest.fixture
async def node() -> Node:
    await asyncio.sleep(0)
    return Node()


@pytest.fixture
async def other() -> Node:
    return Node()


async def test_what_was_written_in_vain_says_nothing_of_producers_once_its_offsets_were_deleted(
    node: Node,
) -> None:
    """Another leader took other batches of them there, and nobody can compare any more."""
    committed = Committed()
    log = await node.load(committed, 1)
    committed.add(1, node.write(log, range(3), epoch=1))
    node.write(log, range(3, 6), epoch=1)
    log.log.sync()
    committed.spans, committed.start = [], 6
    log = await node.load(committed, 3)
    assert (log.start_offset, log.end_offset) == (6, 6)
    assert node.host.served[KEY].append([Value(1, 9)], 9, NOW) == 7
