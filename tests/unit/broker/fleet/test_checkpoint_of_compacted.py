"""Checkpoints of a log that compaction has rewritten: what was committed goes into the object."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from broker.fleet.catalog.rows import (
    Checkpoint,
    CommitAnswer,
    CommitId,
    Incarnation,
    OwnedShard,
    PartitionKey,
    PartitionRow,
)
from broker.fleet.checkpointer import Checkpointer, CommittedSpans
from broker.fleet.commit_objects import RowRoom
from broker.fleet.committer import Committer, FleetReach, Identity
from broker.fleet.frame import (
    ArrivedBatch,
    PartitionBatches,
    make_frame,
    read_directory,
    read_part,
)
from broker.fleet.local_logs import LocalLog, append_missing
from broker.fleet.tally import FleetTally
from broker.fleet.times import FleetTimes
from protocol.records.builder import build_batch
from protocol.records.markers import COMMIT, Marker, build_marker
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.validation.internal_batch import own_batch
from tests.support.disk.simenv import SimClock
from tests.support.fleet.inline import Inline
from tests.support.fleet.loop_time import LoopTime
from tests.support.records.cleaning import clean
from tests.support.records.logs import make_durable, records_of
from tests.unit.storage.log.test_following import NOW, SMALL, Side

SETTINGS: dict[str, Any] = {
    **SMALL,
    "cleanup_policy": "compact",
    "delete_retention_ms": 1000,
    "min_cleanable_dirty_ratio": 0.01,
    "segment_bytes": 1 << 20,
}
ME, FLEET, SHARD = Incarnation(1, 1), UUID(int=1), OwnedShard(1, 0)
KEY = PartitionKey(UUID(int=7), 0)


class Rows:
    """A catalog and a store, which take all."""

    def __init__(self) -> None:
        self.bodies: dict[CommitId, bytes] = {}
        self.objects: list[bytes] = []

    async def body(self, commit_id: CommitId) -> bytes:
        return self.bodies[commit_id]

    async def checkpoint(self, _: Checkpoint) -> CommitAnswer:
        return CommitAnswer.OK

    async def put(self, _: CommitId, body: bytes) -> str:
        self.objects.append(body)
        return f"object {len(self.objects)}"


class Leader(Side):
    """A leader whose log is compacted."""

    def __init__(self) -> None:
        super().__init__(SimClock(NOW), **SETTINGS)
        self.log.keep_arrivals()
        self.fs.make_dir("/data")
        self.offsets = CleanerOffsets(self.fs, "/data")
        self.rows = Rows()
        self.owned = LocalLog(KEY, SHARD, self.log, 0, lambda _: None)
        self.spans = CommittedSpans(RowRoom(1e9, lambda: 0.0))
        self.spans.add(self.owned, PartitionRow(KEY, "t", 1, 0, (), None))

    def put(self, *records: tuple[bytes, bytes | None], **header: Any) -> None:
        rows = [(self.clock.now_ms(), *each) for each in records]
        self.append(build_batch(rows, **header))

    def end_transaction(self) -> None:
        """By `transaction.version` 2: the marker has the next epoch."""
        marker = own_batch(build_marker(Marker(COMMIT, 1), 5, 1, NOW), NOW)
        self.log.append_own(marker, acks_all=True, leader_epoch=0)

    def commit(self) -> None:
        """What was appended is in a row."""
        begin, end = self.owned.durable_offset, self.owned.end_offset
        commit_id = CommitId(ME, len(self.rows.bodies) + 1)
        part = PartitionBatches(KEY, 0, self.owned.batches(begin, end, 1 << 20))
        frame = make_frame(FLEET, commit_id, [part])
        self.rows.bodies[commit_id] = frame.body
        self.spans.committed(self.owned, frame.spans[0], commit_id, None)
        self.owned.mark_durable(end)

    def compact(self) -> None:
        """A segment ends, and compaction runs, 15 s after its last run."""
        self.log.roll()
        make_durable(self.log)
        self.clock.advance(15_000)
        clean(self.log, self.env, self.offsets)

    def checkpoint(self) -> list[ArrivedBatch]:
        """Batches of the object that it makes."""
        asyncio.run(self._make())
        [body] = self.rows.objects
        _, [span] = read_directory(body, FLEET)
        return read_part(body[span.position : span.position + span.size_bytes])

    async def _make(self) -> None:
        rows: Any = self.rows
        reach = FleetReach(rows, rows, LoopTime(), FleetTimes(), Inline(), FleetTally())  # type: ignore[arg-type]
        identity = Identity(ME, FLEET)
        committer = Committer(reach, identity, self.spans.committed)
        standing: Any = SimpleNamespace()
        committing = asyncio.ensure_future(committer.run(standing))
        assert await Checkpointer(reach, committer, self.spans, identity).make()
        committing.cancel()


def next_leader(*parts: list[ArrivedBatch]) -> Side:
    """One that loads spans."""
    other = Side(SimClock(NOW), **SETTINGS)
    for part in parts:
        append_missing(other.log, part)
    make_durable(other.log)
    return other


def segment_of(leader: Leader) -> list[ArrivedBatch]:
    """Batches of before all commits, as the store has them."""
    found = [ArrivedBatch(each.arrival_ms, each.data) for each in leader.all()]
    leader.owned.mark_durable(leader.owned.end_offset)
    return found


def test_a_key_that_was_deleted_stays_deleted() -> None:
    """Its value is in a segment in the store; here compaction took that, and then the tombstone."""
    leader = Leader()
    leader.put((b"k", b"old"))
    segment = segment_of(leader)
    leader.put((b"k", None), (b"a", b"1"))
    leader.commit()
    leader.compact()
    leader.put((b"b", b"1"))
    leader.compact()
    leader.put((b"c", b"1"))
    leader.commit()
    assert [each.key for each in records_of(leader.log)] == [b"a", b"b", b"c"]
    other = next_leader(segment, leader.checkpoint())
    values = [(each.key, each.value) for each in records_of(other.log)]
    assert values == [(b"k", b"old"), (b"k", None), (b"a", b"1"), (b"b", b"1"), (b"c", b"1")]


def test_a_transaction_that_was_ended_stays_ended() -> None:
    """Its records are in a segment in the store; here compaction took these, and then what the
    marker said.
    """
    leader = Leader()
    leader.put((b"k", b"1"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    segment = segment_of(leader)
    leader.end_transaction()
    leader.put((b"k", b"2"))
    leader.commit()
    for key in (b"b", b"c", b"d"):
        leader.compact()
        leader.put((key, b"1"))
    leader.commit()
    other = next_leader(segment, leader.checkpoint())
    assert other.log.snapshot.last_stable_offset == other.log.snapshot.log_end_offset == 6


def test_what_compaction_left_alone_is_read_from_the_log() -> None:
    leader = Leader()
    leader.put((b"a", b"1"))
    leader.commit()
    leader.compact()
    leader.put((b"b", b"1"))
    leader.commit()
    leader.rows.bodies.clear()
    assert len(leader.checkpoint()) == 2
