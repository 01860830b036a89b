"""Partitions that cannot be loaded: they hold up neither others nor the node that leads them."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from errno import EIO, ENOSPC
from uuid import UUID

import pytest

from broker.fleet.bodies import CommittedBodies
from broker.fleet.catalog.rows import (
    CommitId,
    CommittedSpan,
    Incarnation,
    ManifestName,
    NodeRow,
    OwnedShard,
    PartitionKey,
    PartitionRow,
    ShardRow,
    TopicRow,
)
from broker.fleet.committer import NotCommitted
from broker.fleet.frame import CorruptFrame, PartitionBatches, StoredBatch, make_frame
from broker.fleet.host import BytesOf, OwnedLog, WriteCommits
from storage.errors import DiskError, NoSpace
from storage.tier.port import ObjectMissing, StoreError
from tests.support.fleet.logs_alone import LogsAlone
from tests.support.fleet.machines.sim_host import Disk, SimHost, SimLog, Value
from tests.support.fleet.model_catalog import ModelCatalog
from tests.support.fleet.small_fleet import SmallNode, owners, rows_with
from tests.support.fleet.virtual_loop import run_virtual

BAD, GOOD = UUID(int=100), UUID(int=101)
TOPICS = TopicRow(BAD, "bad", [0]), TopicRow(GOOD, "good", [1])
MISSING = ObjectMissing("wal/7", "get", "there is none")


class OneBad(SimHost):
    """One topic cannot be loaded."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(Disk())
        self.error = error
        self.tries = list[float]()

    async def load(self, row: PartitionRow, shard: OwnedShard, bytes_of: BytesOf) -> OwnedLog:
        if row.topic == "bad":
            self.tries.append(asyncio.get_running_loop().time())
            if self.error is not None:
                raise self.error.with_traceback(None)
        return await super().load(row, shard, bytes_of)


class NotServed(SimHost):
    """One topic cannot be served, for a while."""

    def __init__(self) -> None:
        super().__init__(Disk())
        self.left = 2

    def serve(self, log: OwnedLog, commits: WriteCommits) -> None:
        if log.partition.topic_id == BAD and self.left:
            self.left -= 1
            raise KeyError("bad")
        super().serve(log, commits)


class Silent(SimHost):
    """The store of the node answers nothing for half a minute, and then with an error."""

    def __init__(self) -> None:
        super().__init__(Disk())
        self.at_once = self.most_at_once = 0

    async def load(self, row: PartitionRow, shard: OwnedShard, bytes_of: BytesOf) -> OwnedLog:
        if row.manifest is not None:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            try:
                await asyncio.sleep(30)
            finally:
                self.at_once -= 1
            raise MISSING
        return await super().load(row, shard, bytes_of)


class Looks(LogsAlone):
    """Counts what it sees."""

    def __init__(self) -> None:
        self.seen_at = list[float]()

    def seen(self, nodes: Sequence[NodeRow], shards: Sequence[ShardRow]) -> None:
        self.seen_at.append(asyncio.get_running_loop().time())


class CountedReads:
    """A store with one object."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.reads = 0

    async def get(self, key: str) -> bytes:
        self.reads += 1
        await asyncio.sleep(0)
        return self.body

    async def put(self, commit_id: CommitId, body: bytes) -> str:
        raise AssertionError("nothing is put")

    async def remove(self, keys: Sequence[str]) -> None:
        raise AssertionError("nothing is removed")

    async def all(self) -> Sequence[tuple[str, int]]:
        return []


class FullDisk(Looks):
    """A node whose disk refuses a topic that was just made; it has the others."""

    async def follow(self, metadata_version: int) -> None:
        raise DiskError("bad-0", "mkdir", "no space", 28)

    def knows(self, row: PartitionRow) -> bool:
        return row.topic == "good"


ERRORS = pytest.mark.parametrize("error", [MISSING, CorruptFrame("it is cut"), KeyError("bug")])


@ERRORS
def test_one_that_cannot_be_loaded_stops_neither_looks_nor_others(error: Exception) -> None:
    async def story() -> None:
        host, looks = OneBad(error), Looks()
        node = SmallNode(await rows_with(*TOPICS), 1, host, looks)
        await asyncio.sleep(10)
        assert list(host.served) == [PartitionKey(GOOD, 0)]
        assert len(looks.seen_at) > 50
        assert node.tally.lives == 1
        host.error = None
        await asyncio.sleep(6)
        assert set(host.served) == {PartitionKey(GOOD, 0), PartitionKey(BAD, 0)}
        await node.stop()

    run_virtual(story())


def test_a_topic_that_the_disk_refuses_keeps_the_node_from_no_other() -> None:
    """Others give it shards while it renews its lease, and watch it: it is to do its part."""

    async def story() -> None:
        rows = await rows_with(*TOPICS)
        host, looks = SimHost(Disk()), FullDisk()
        node = SmallNode(rows, 1, host, looks)
        await asyncio.sleep(5)
        assert owners(rows) == [1, 1, 1, 1]
        assert list(host.served) == [PartitionKey(GOOD, 0)], "the other one is not known"
        assert len(looks.seen_at) > 20
        other = SmallNode(rows, 2, SimHost(Disk()))
        await asyncio.sleep(5)
        assert Counter(owners(rows)) == {1: 2, 2: 2}
        await other.stop()
        await asyncio.sleep(20)
        assert owners(rows) == [1, 1, 1, 1], "it fences who is gone"
        assert node.tally.lives == 1
        await node.stop()

    run_virtual(story())


@ERRORS
def test_its_shard_is_given_away_all_the_same(error: Exception) -> None:
    async def story() -> None:
        rows, good = await rows_with(*TOPICS), SimHost(Disk())
        node = SmallNode(rows, 1, OneBad(error))
        await asyncio.sleep(1)
        other = SmallNode(rows, 2, good)
        await asyncio.sleep(2)
        assert Counter(owners(rows)) == {1: 2, 2: 2}
        await rows.drain(1, draining=True)
        await asyncio.sleep(1)
        assert owners(rows) == [2, 2, 2, 2]
        await asyncio.sleep(1)
        assert len(good.served) == 2
        await asyncio.wait_for(node.node.leave(), 1)
        await node.stop()
        await other.stop()

    run_virtual(story())


BROKEN = DiskError("bad-0", "fsync", "Input/output error", EIO)


def test_a_node_whose_disk_has_failed_leaves_all_shards_to_others() -> None:
    async def story() -> None:
        rows, good = await rows_with(*TOPICS), SimHost(Disk())
        broken = OneBad(BROKEN)
        node = SmallNode(rows, 1, broken)
        await asyncio.sleep(5)
        assert list(broken.served) == [PartitionKey(GOOD, 0)], "there is no other"
        assert not node.task.done()
        other = SmallNode(rows, 2, good)
        await asyncio.sleep(2)
        assert owners(rows) == [2, 2, 2, 2]
        assert (len(good.served), len(broken.served)) == (2, 0)
        await asyncio.sleep(20)
        assert owners(rows) == [2, 2, 2, 2], "it got some again"
        assert node.task.done(), "it goes on, and has nothing"
        await node.task
        again = SmallNode(rows, 1, SimHost(Disk()))
        await asyncio.sleep(5)
        assert Counter(owners(rows)) == {1: 2, 2: 2}
        await again.stop()
        await other.stop()

    run_virtual(story())


@pytest.mark.parametrize(
    "error",
    [MISSING, StoreError("wal/7", "get", "no", EIO), NoSpace("bad-0", "write", "full", ENOSPC)],
)
def test_a_node_that_lacks_an_object_or_room_keeps_its_shards(error: Exception) -> None:
    async def story() -> None:
        rows = await rows_with(*TOPICS)
        nodes = [SmallNode(rows, number, OneBad(error)) for number in (1, 2)]
        await asyncio.sleep(30)
        assert Counter(owners(rows)) == {1: 2, 2: 2}
        for each in nodes:
            await each.stop()

    run_virtual(story())


def test_it_is_tried_again_after_pauses_that_grow() -> None:
    async def story() -> None:
        host = OneBad(MISSING)
        node = SmallNode(await rows_with(*TOPICS), 1, host)
        await asyncio.sleep(60)
        pauses = [after - before for before, after in zip(host.tries, host.tries[1:], strict=False)]
        assert pauses[0] < 1
        assert pauses[-1] == pytest.approx(5, abs=0.2)
        assert len(host.tries) < 20
        await node.stop()

    run_virtual(story())


def test_one_that_cannot_be_served_is_not_taken_for_loaded() -> None:
    async def story() -> None:
        host = NotServed()
        node = SmallNode(await rows_with(*TOPICS), 1, host)
        await asyncio.sleep(5)
        assert len(host.served) == 2
        assert node.tally.lives == 1
        assert node.tally.loaded_partitions == 2
        await node.stop()

    run_virtual(story())


async def many() -> ModelCatalog:
    """One partition that needs no store, behind many that do."""
    rows = await rows_with(TopicRow(BAD, "bad", [0] * 40), TopicRow(GOOD, "good", [1]))
    for key, part in rows.parts.items():
        if key.topic_id == BAD:
            part.manifest = ManifestName(1, 1)
    return rows


def test_what_needs_no_store_does_not_wait_for_a_silent_one() -> None:
    async def story() -> None:
        host, looks = Silent(), Looks()
        node = SmallNode(await many(), 1, host, looks)
        await asyncio.sleep(0.05)
        assert list(host.served) == [PartitionKey(GOOD, 0)]
        await asyncio.sleep(20)
        assert 1 < host.most_at_once <= 4
        assert max(b - a for a, b in zip(looks.seen_at, looks.seen_at[1:], strict=False)) < 1
        await node.stop()
        assert host.at_once == 0

    run_virtual(story())


async def test_loads_at_one_time_read_an_object_once() -> None:
    part = PartitionBatches(PartitionKey(GOOD, 0), 1, [StoredBatch(0, 0, 0, 0, bytes(20))])
    commit_id = CommitId(Incarnation(1, 1), 1)
    frame = make_frame(UUID(int=1), commit_id, [part])
    store = CountedReads(frame.body)
    rows = await rows_with(*TOPICS)
    bodies = CommittedBodies(rows, store)
    committed = CommittedSpan(frame.spans[0], commit_id, "wal/1")
    found = await asyncio.gather(*(bodies.batches_of(committed) for _ in range(4)))
    assert [len(each) for each in found] == [1] * 4
    assert store.reads == 1


def test_a_shard_with_a_log_whose_disk_has_failed_is_taken_in_a_new_epoch_once_a_minute() -> None:
    async def story() -> None:
        host, rows = SimHost(Disk()), await rows_with(*TOPICS)
        node = SmallNode(rows, 1, host)
        await asyncio.sleep(1)
        bad, good = (host.served[PartitionKey(each, 0)] for each in (BAD, GOOD))
        failed = bad.owned
        assert isinstance(failed, SimLog)
        failed.takes_records = False
        answers: list[BaseException | None] = []
        assert node.node.life is not None
        end = failed.append([Value(1, 1)], 1, 0)
        node.node.life.committer.request(failed, end, answers.append)
        await asyncio.sleep(1)
        assert [type(each) for each in answers] == [NotCommitted], "its bytes were committed"
        again = host.served[failed.partition].owned
        assert (again.shard.epoch, again.end_offset) == (failed.shard.epoch + 1, 0)
        assert host.served[PartitionKey(GOOD, 0)] is good
        assert isinstance(again, SimLog)
        again.takes_records = False
        await asyncio.sleep(50)
        assert host.served[failed.partition].owned is again
        await asyncio.sleep(20)
        assert host.served[failed.partition].owned.shard.epoch == failed.shard.epoch + 2
        assert (node.tally.lives, node.tally.given_shards) == (1, 0)
        await node.stop()

    run_virtual(story())
