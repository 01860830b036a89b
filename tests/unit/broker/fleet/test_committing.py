"""Commits and checkpoints of a node whose partitions, or whose store, behave badly."""

import asyncio
import math
import random
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from broker.fleet import checkpointer
from broker.fleet.catalog.port import CatalogError
from broker.fleet.catalog.rows import (
    CommitAnswer,
    CommitId,
    CommittedSpan,
    Incarnation,
    Naming,
    OwnedShard,
    PartitionKey,
    PartitionRow,
    Span,
    Trim,
)
from broker.fleet.checkpointer import Checkpointer, CommittedSpans
from broker.fleet.commit_objects import CommitObjects, RowRoom
from broker.fleet.committer import PUT_SECONDS, Committer, FleetReach, Identity, NotCommitted
from broker.fleet.frame import PartitionBatches, StoredBatch, make_frame
from broker.fleet.tally import FleetTally
from broker.fleet.times import FleetTimes
from broker.fleet.trimming import Trimming
from protocol.records.builder import build_batch
from storage.errors import LogOffline
from storage.tier import port
from storage.tier.port import StoreTimedOut
from tests.support.fleet.inline import Inline
from tests.support.fleet.loop_time import LoopTime
from tests.support.fleet.virtual_loop import run_virtual
from tests.support.tier import memory_store
from tests.support.tier.memory_store import MemoryStore

TOPIC, ME, FLEET = UUID(int=100), Incarnation(1, 1), UUID(int=1)
MIB = 1 << 20
CHECKPOINT_BYTES = MIB
A_BATCH = MIB // 8


@pytest.fixture(autouse=True)
def small_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpointer, "CHECKPOINT_BYTES", CHECKPOINT_BYTES)


class OwnLog(SimpleNamespace):
    """A log of batches of one record and one size."""

    def __init__(self, index: int, batch_bytes: int) -> None:
        super().__init__(
            partition=PartitionKey(TOPIC, index), batch_bytes=batch_bytes, start_offset=0,
            shard=OwnedShard(0, 1), durable_offset=0, end_offset=0, takes_records=True,
        )  # fmt: skip

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def batches(self, begin: int, end: int, max_bytes: int) -> list[StoredBatch]:
        count = max(1, -(-max_bytes // self.batch_bytes))
        data = bytes(self.batch_bytes)
        return [StoredBatch(at, at, 0, 0, data) for at in range(begin, min(end, begin + count))]

    def settled(self, offset: int) -> None:
        self.settled_at = offset

    def mark_durable(self, offset: int) -> None:
        self.durable_offset = max(offset, self.durable_offset)


def rewritten(*_: object) -> list[StoredBatch]:
    raise LogOffline("t-0", "the batch at offset 0 is not known as it was appended")


class Rows:
    """A catalog that takes all; `answers_trims`: else they are lost."""

    answers_trims = True

    def __init__(self) -> None:
        self.changes: list[Trim | Naming] = []
        self.bodies: dict[CommitId, bytes] = {}

    async def body(self, commit_id: CommitId) -> bytes | None:
        return self.bodies.get(commit_id)

    async def commit(self, _: object) -> CommitAnswer:
        await asyncio.sleep(0.001)
        return CommitAnswer.OK

    checkpoint = commit

    async def trim(self, order: Trim) -> CommitAnswer:
        await asyncio.sleep(0.001)
        if not self.answers_trims:
            raise CatalogError("no answer")
        self.changes.append(order)
        return CommitAnswer.OK

    async def name_manifest(self, order: Naming) -> CommitAnswer:
        self.changes.append(order)
        return CommitAnswer.OK


class Store:
    """A store that takes objects, unless it hangs."""

    hangs = False

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    @property
    def sizes(self) -> list[int]:
        return [len(each) for each in self.bodies]

    async def put(self, _: CommitId, body: bytes) -> str:
        if self.hangs:
            await asyncio.sleep(30)
            raise StoreTimedOut("key", "put", "no answer")
        await asyncio.sleep(0.01)
        self.bodies.append(body)
        return f"object {len(self.bodies)}"


class Node:
    """The parts of a node that commit."""

    def __init__(self, **times: Any) -> None:
        terms = FleetTimes(**{"flush": 0.0, **times})
        self.room = RowRoom(terms.most_row_bytes, lambda: 0.0)
        self.rows, self.store, self.spans = Rows(), Store(), CommittedSpans(self.room)
        reach: Any = FleetReach(
            self.rows, self.store, LoopTime(), terms, Inline(), FleetTally()
        )  # type: ignore[arg-type]  # fmt: skip
        identity = Identity(ME, FLEET)
        self.committer = Committer(reach, identity, self.spans.committed)
        self.checkpointer = Checkpointer(reach, self.committer, self.spans, identity)
        self.trimming = Trimming(reach, ME, self.spans)

    def log(self, index: int, batch_bytes: int = 100_000) -> OwnLog:
        log: Any = OwnLog(index, batch_bytes)
        self.spans.add(log, PartitionRow(log.partition, "t", 0, 0, (), None))
        return log

    def append(self, log: Any) -> "asyncio.Future[None]":
        """One batch; done when it is committed."""
        committed = asyncio.get_running_loop().create_future()
        log.end_offset += 1
        self.committer.request(log, log.end_offset, lambda _: committed.set_result(None))
        return committed

    def inline(self, log: Any, count: int) -> None:
        """So many batches are in the rows."""
        for _ in range(count):
            at = log.end_offset
            log.end_offset = log.durable_offset = at + 1
            span = Span(log.partition, at, at, 1, 0, log.batch_bytes, 0)
            self.spans.committed(log, span, CommitId(ME, at), None)

    def in_rows(self) -> int:
        """Spans whose bytes are in rows."""
        return len(self.in_row_spans())

    def row_bytes(self) -> int:
        return sum(each.span.size_bytes for each in self.in_row_spans())

    def in_row_spans(self) -> list[CommittedSpan]:
        found = (each for log in self.spans.logs.values() for each in log.spans)
        return [each for each in found if each.object_key is None]


def run(work: Any, **times: Any) -> Node:
    """Does some work beside a node's committer, in virtual time."""

    async def both() -> Node:
        node = Node(**times)
        committing = asyncio.ensure_future(node.committer.run(None))  # type: ignore[arg-type]
        try:
            working: Coroutine[Any, Any, None] = work(node)
            await working
        finally:
            committing.cancel()
        assert node.room.used_bytes == node.row_bytes()
        return node

    return run_virtual(both())


def test_a_partition_that_fills_every_commit_keeps_no_other_waiting() -> None:
    async def work(node: Node) -> None:
        hot, cold = node.log(0, MIB), node.log(1, 100)
        busy = {node.append(hot) for _ in range(8)}
        other = node.append(cold)
        for _ in range(50):
            done, busy = await asyncio.wait(busy, return_when=asyncio.FIRST_COMPLETED)
            busy |= {node.append(hot) for _ in done}
            if other.done():
                return
        raise AssertionError("fifty commits, and not one with the other partition")

    run(work, flush_bytes=4 * MIB)


def test_checkpoints_are_bounded_and_in_the_end_all_is_in_objects() -> None:
    """A take-over reads the object whole."""

    async def work(node: Node) -> None:
        for index in range(6):
            node.inline(node.log(index, A_BATCH), 6)
        rounds = 0
        while await node.checkpointer.make():
            rounds += 1
        assert rounds == 6 * 6 // 8 + 1
        assert node.in_rows() == 0
        assert node.spans.small_bytes == 0

    node = run(work)
    assert max(node.store.sizes) < CHECKPOINT_BYTES + 10_000


def test_a_checkpoint_has_what_was_committed_where_the_disk_has_failed_since() -> None:
    """The log may have other bytes there by now."""

    async def work(node: Node) -> None:
        log, data = node.log(0), bytes(build_batch([(1, None, b"committed")]))
        commit_id = CommitId(ME, 0)
        frame = make_frame(
            FLEET, commit_id, [PartitionBatches(log.partition, 1, [StoredBatch(0, 0, 1, 1, data)])]
        )
        node.rows.bodies[commit_id] = frame.body
        node.spans.committed(log, frame.spans[0], commit_id, None)
        log.takes_records = False
        assert await node.checkpointer.make()
        assert data in node.store.bodies[-1]

    run(work)


def test_no_log_is_left_out_of_checkpoints_by_others() -> None:
    async def work(node: Node) -> None:
        hot, cold = node.log(0, A_BATCH), node.log(1, 100)
        node.inline(cold, 1)
        for _ in range(3):
            node.inline(hot, 9)
            assert await node.checkpointer.make()
        (_, spans, _) = node.spans.logs[cold.partition]
        assert [each.object_key is None for each in spans] == [False]

    run(work)


def test_a_batch_that_is_larger_than_a_checkpoint_goes_by_itself() -> None:
    async def work(node: Node) -> None:
        huge, small = node.log(0, 2 * CHECKPOINT_BYTES), node.log(1)
        node.inline(huge, 1)
        node.inline(small, 1)
        while await node.checkpointer.make():
            pass
        assert node.in_rows() == 0
        assert len(node.store.sizes) == 2

    run(work)


def test_a_store_that_hangs_keeps_commits_waiting_once() -> None:
    async def work(node: Node) -> None:
        log, clock, took = node.log(0), LoopTime(), []
        node.store.hangs = True
        for _ in range(100):
            began = clock.monotonic()
            await node.append(log)
            took.append(clock.monotonic() - began)
        assert took[0] < PUT_SECONDS + 0.1
        assert max(took[1:]) < 0.1

    node = run(work)
    assert node.committer.store_watch.is_away


def test_commits_use_the_store_again_once_a_checkpoint_has_reached_it() -> None:
    async def work(node: Node) -> None:
        log, clock = node.log(0), LoopTime()
        node.store.hangs = True
        await node.append(log)
        node.store.hangs = False
        await node.append(log)
        assert (node.store.sizes, node.in_rows()) == ([], 2)
        await asyncio.sleep(31)
        await node.checkpointer.when_due(clock)
        assert node.in_rows() == 0
        await node.append(log)
        assert (len(node.store.sizes), node.in_rows()) == (2, 0)

    run(work)


def test_a_store_that_hangs_is_not_asked_at_once_again_by_checkpoints() -> None:
    async def work(node: Node) -> None:
        clock = LoopTime()
        node.inline(node.log(0, A_BATCH), 9)
        node.store.hangs = True
        tries = 0
        while clock.monotonic() < 600:
            before = clock.monotonic()
            try:
                await node.checkpointer.when_due(clock)
            except StoreTimedOut:
                tries += 1
            await asyncio.sleep(max(0.0, before + 1 - clock.monotonic()))
        assert 5 < tries < 15

    run(work, checkpoint_bytes=A_BATCH)


def test_a_log_start_does_not_wait_for_a_checkpoint_that_waits_for_the_store() -> None:
    async def work(node: Node) -> None:
        log, clock = node.log(0), LoopTime()
        node.inline(log, 5)
        node.store.hangs = True
        making = asyncio.ensure_future(node.checkpointer.make())
        await asyncio.sleep(1)
        log.start_offset = 3
        before = clock.monotonic()
        assert await node.trimming.trim(log)
        assert clock.monotonic() - before < 0.1
        making.cancel()

    run(work)


def test_a_checkpoint_of_what_was_trimmed_meanwhile_is_given_up() -> None:
    async def work(node: Node) -> None:
        log = node.log(0)
        node.inline(log, 5)
        making = asyncio.ensure_future(node.checkpointer.make())
        await asyncio.sleep(0.005)
        log.start_offset = 3
        await node.trimming.trim(log)
        assert not await making
        assert node.in_rows() == 2
        assert await node.checkpointer.make()
        assert node.in_rows() == 0

    run(work)


def test_the_rows_have_a_log_s_start_before_a_manifest_that_begins_there() -> None:
    """Its commits go with the naming, and segments before the start are in no store."""

    async def work(node: Node) -> None:
        log: Any = node.log(0)
        node.inline(log, 5)
        log.start_offset = 3
        assert await node.trimming.name_manifest(log, 1, 5)
        trim, naming = node.rows.changes
        assert isinstance(trim, Trim)
        assert trim.log_start_offset == 3
        assert isinstance(naming, Naming)
        log.start_offset = 4
        node.rows.answers_trims = False
        with pytest.raises(CatalogError):
            await node.trimming.name_manifest(log, 2, 5)
        assert node.rows.changes == [trim, naming]

    run(work)


def test_a_log_that_is_trimmed_during_each_checkpoint_keeps_no_other_in_the_rows() -> None:
    async def work(node: Node) -> None:
        queue, other = node.log(0), node.log(1)
        node.inline(queue, 5)
        node.inline(other, 5)
        making = asyncio.ensure_future(node.checkpointer.make())
        await asyncio.sleep(0.005)
        queue.start_offset = 3
        await node.trimming.trim(queue)
        assert await making
        kept = {index: node.spans.logs[PartitionKey(TOPIC, index)].spans for index in (0, 1)}
        assert [each.object_key is None for each in kept[0]] == [True, True]
        assert [each.object_key is None for each in kept[1]] == [False]

    run(work)


def test_spans_that_the_rows_may_have_lost_are_in_no_checkpoint_until_that_is_known() -> None:
    """The answer to a checkpoint with them would end the life of the node."""

    async def work(node: Node) -> None:
        log, other = node.log(0), node.log(1)
        node.inline(log, 5)
        node.inline(other, 1)
        log.start_offset = 3
        node.rows.answers_trims = False
        with pytest.raises(CatalogError):
            await node.trimming.trim(log)
        assert await node.checkpointer.make()
        assert node.in_rows() == 5, "those of the other log are in an object"
        assert not await node.checkpointer.make()
        node.rows.answers_trims = True
        await node.trimming.trim(log)
        assert await node.checkpointer.make()
        assert node.in_rows() == 0

    run(work)


def test_commits_whose_bytes_are_nowhere_keep_no_other_in_the_rows() -> None:
    """Compaction has rewritten them here, and their row has them no longer: they stay as they
    are.
    """

    async def work(node: Node) -> None:
        log, other = node.log(0, CHECKPOINT_BYTES), node.log(1)
        log.batches = rewritten
        node.inline(log, 1)
        node.inline(other, 1)
        assert not await node.checkpointer.make()
        assert await node.checkpointer.make()
        assert [each.span.partition for each in node.in_row_spans()] == [log.partition]

    run(work)


def test_a_deletion_whose_shard_went_to_another_node_meanwhile_is_not_acknowledged() -> None:
    """Its answer was lost; when it was asked for again, the log was another's."""

    async def work(node: Node) -> None:
        log: Any = node.log(0)
        node.inline(log, 5)
        log.start_offset = 3
        node.rows.answers_trims = False
        answered = asyncio.get_running_loop().create_future()
        node.trimming.trim_for(log, answered.set_result)
        await asyncio.sleep(1)
        assert not answered.done()
        node.spans.drop(log)
        assert isinstance(await answered, NotCommitted)

    run(work)


def test_what_waits_in_rows_for_the_store_has_a_limit() -> None:
    async def work(node: Node) -> None:
        log, clock = node.log(0, 100_000), LoopTime()
        node.store.hangs = True
        while not node.room.is_full:
            await node.append(log)
        assert 1_000_000 <= node.row_bytes() < 1_200_000
        with pytest.raises(StoreTimedOut):
            await node.checkpointer.when_due(clock)
        assert node.room.is_full
        node.store.hangs = False
        await asyncio.sleep(31)
        await node.checkpointer.when_due(clock)
        assert not node.room.is_full
        assert node.room.free_since == 0.0

    run(work, most_row_bytes=1_000_000, checkpoint=0.0)


def test_room_in_rows_is_there_again_when_a_quarter_of_it_is_free() -> None:
    now = [5.0]
    room = RowRoom(100, lambda: now[0])
    room.changed(99)
    assert not room.is_full
    room.changed(1)
    assert (room.is_full, room.free_since) == (True, -math.inf)
    room.changed(-24)
    assert room.is_full
    room.changed(-1)
    assert (room.is_full, room.free_since) == (False, 5.0)


def test_bytes_in_rows_go_with_log_starts_segments_and_logs() -> None:
    async def work(node: Node) -> None:
        log, other = node.log(0), node.log(1)
        node.inline(log, 5)
        node.inline(other, 3)
        log.start_offset = 2
        await node.trimming.trim(log)
        assert node.room.used_bytes == 6 * log.batch_bytes
        node.spans.copied(log, 5)
        assert node.room.used_bytes == 4 * log.batch_bytes, "the newest span stays"
        node.spans.drop(other)
        assert node.room.used_bytes == log.batch_bytes
        row = PartitionRow(
            log.partition, "t", 0, 0, tuple(node.spans.logs[log.partition].spans), None
        )
        node.spans.add(log, row)
        assert node.room.used_bytes == log.batch_bytes, "loaded once more"

    run(work)


def test_an_object_that_is_too_large_to_be_read_whole_is_read_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Earlier versions made such checkpoints."""
    monkeypatch.setattr(memory_store, "MAX_GET_BYTES", 1000)
    monkeypatch.setattr(port, "ASKED_BYTES", 300)
    store, body = MemoryStore(), random.Random(1).randbytes(2345)
    store.put_new("large", body)

    class Lane:
        async def run(self, work: Any, *arguments: Any) -> Any:
            return work(*arguments)

    objects = CommitObjects(store, Lane(), random.Random(1))  # type: ignore[arg-type]
    assert asyncio.run(objects.get("large")) == body


def test_a_log_is_not_flushed_while_a_commit_of_it_is_under_way() -> None:
    """Also when nobody waits for that any more: a load in the same epoch would lack it."""

    async def work(node: Node) -> None:
        log, may_answer = node.log(0), asyncio.Event()

        async def commit(_: object) -> CommitAnswer:
            await may_answer.wait()
            return CommitAnswer.OK

        node.rows.commit = commit  # type: ignore[method-assign]
        node.append(log)
        await asyncio.sleep(0.01)
        node.committer.forget(log)
        assert not node.committer.is_flushed(log)
        may_answer.set()
        await asyncio.sleep(0.01)
        assert node.committer.is_flushed(log)

    run(work)
