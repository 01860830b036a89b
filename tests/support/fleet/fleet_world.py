"""A fleet in a simulation: nodes, clients, and an oracle that sees every row and every answer."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from broker.fleet.catalog.rows import (
    CatalogCommit,
    CommitAnswer,
    CommitId,
    Incarnation,
    Naming,
    NewTopics,
    PartitionKey,
    Span,
    TopicRow,
)
from broker.fleet.committer import Done
from broker.fleet.frame import ArrivedBatch, read_part
from broker.fleet.life import Life
from broker.fleet.times import FleetTimes
from protocol.errors import KafkaError
from storage.errors import StorageError
from tests.support.fleet.machines.real_host import RealServedLog, records_in, value_of
from tests.support.fleet.machines.sim_host import (
    ServedLog,
    SimBatch,
    Value,
    decoded,
)
from tests.support.fleet.machines.sim_node import FLEET, SHARDS, Logs, SimNode
from tests.support.fleet.machines.sim_store import SegmentStore, SimObjects
from tests.support.fleet.model_catalog import ModelCatalog, Part
from tests.support.fleet.segment_oracle import NamedSegments

NODES, PARTITIONS = 3, 5
TOPIC = UUID(int=100)
TIMES = FleetTimes(watch=1.5, flush=0.05, inline_bytes=180, checkpoint=6.0, keep=20.0, loads=1e9)
BUSY = TIMES._replace(loads=3.0, load_rest=7.0, load_gap=40)
"""Some histories move shards for what they take."""
BUSY_EVERY = 4
SHORT_READ_ONLY = 8.0
"""Seconds; sweeps take twice as long, and are to be seen within a history."""
START_MS = 1_700_000_000_000
ANSWER_SECONDS = 12.0


@dataclass
class Told:
    """Answers that clients have."""

    acknowledged: dict[PartitionKey, dict[int, Value]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    read: dict[PartitionKey, dict[int, SimBatch]] = field(default_factory=lambda: defaultdict(dict))
    deleted: dict[PartitionKey, int] = field(default_factory=lambda: defaultdict(int))
    """The offset before which all is gone."""
    asked: dict[PartitionKey, int] = field(default_factory=lambda: defaultdict(int))
    """The furthest offset of a deletion, answered or not."""


class WatchedRows(ModelCatalog):
    """Rows that are looked at before commits leave them, or compaction has been there."""

    def __init__(self, world: "FleetWorld") -> None:
        super().__init__(FLEET, world.now_ms)
        self._world = world

    async def commit(self, order: CatalogCommit) -> CommitAnswer:
        answer = await super().commit(order)
        if self._world.logs is Logs.COMPACTED:
            for each in order.spans:
                if each.partition in self.parts:
                    self._world.committed(each.partition)
        return answer

    async def name_manifest(self, order: Naming) -> CommitAnswer:
        if order.partition in self.parts:
            self._world.committed(order.partition)
        answer = await super().name_manifest(order)
        if answer is CommitAnswer.OK:
            self._world.check_named(order.partition)
        return answer


class FleetWorld:
    """All of it. Made and used on a virtual loop."""

    def __init__(self, seed: int, logs: Logs = Logs.LISTS) -> None:
        self.dice = random.Random(seed)
        self.times = BUSY if seed % BUSY_EVERY == BUSY_EVERY - 1 else TIMES
        if logs.have_store:
            self.times = self.times._replace(read_only_after=SHORT_READ_ONLY)
        self.logs = logs
        self.objects = SimObjects()
        self.segments = SegmentStore(self.objects, self.dice, self.wall_ms)
        self.named = NamedSegments(self.segments.memory)
        self.catalog_step_ms = 0
        self._latest_ms = 0
        """The latest time that the catalog's clock has shown: it may be set back after that."""
        self.rows = WatchedRows(self)
        self.nodes = [SimNode(self, each) for each in range(1, NODES + 1)]
        self.told = Told()
        self.partitions = [PartitionKey(TOPIC, each) for each in range(PARTITIONS)]
        self.owner_of_epoch: dict[tuple[int, int], Incarnation] = {}
        self._decoded: dict[tuple[CommitId, Span], list[tuple[int, SimBatch, int]]] = {}
        self._arrived: dict[tuple[PartitionKey, int], int] = {}
        self._judged: dict[PartitionKey, tuple[list[tuple[Span, CommitId]], list[SimBatch]]] = {}
        """All that was ever seen committed, deleted or not: it never changes."""

    @property
    def sweep_rest(self) -> float:
        """Seconds in which a node that owns nothing any longer has learnt that."""
        return self.times.read_only_after + 2 * self.times.watch

    def now_ms(self) -> int:
        """The catalog's clock."""
        now_ms = self.wall_ms() + self.catalog_step_ms
        self._latest_ms = max(self._latest_ms, now_ms)
        return now_ms

    def wall_ms(self) -> int:
        return START_MS + round(asyncio.get_running_loop().time() * 1000)

    async def begin(self) -> None:
        row = TopicRow(TOPIC, "t", [each % SHARDS for each in range(PARTITIONS)])
        await self.rows.create_topics(NewTopics([row]))
        for node in self.nodes:
            node.start()

    # --- clients ---

    async def produce(self, key: PartitionKey, values: Sequence[Value], sequence: int) -> bool:
        """One try of a batch; True when it was acknowledged. `sequence`: of this producer's
        records there.
        """
        writing = await self._writing(key)
        if writing is None:
            return False
        log, life, node = writing
        try:
            end = log.append(values, sequence, self.wall_ms() + node.wall_ms)
        except KafkaError:  # it was another's meanwhile, and lacks what was acknowledged there
            await asyncio.sleep(0.3)
            return False
        if not await _is_done(partial(life.committer.request, log.owned, end)):
            return False
        for offset, value in enumerate(values, end - len(values)):
            self._acknowledged(key, offset, value)
        return True

    async def delete(self, key: PartitionKey) -> bool:
        """One try to delete records of a real log; True when it was acknowledged."""
        writing = await self._writing(key)
        if writing is None:
            return False
        log, *_ = writing
        assert isinstance(log, RealServedLog)
        start = log.delete(self.dice)
        self.removing(key, start)
        if not await _is_done(partial(log.commits.start_moved, log.owned)):
            return False
        self.told.deleted[key] = max(self.told.deleted[key], start)
        return True

    def removing(self, key: PartitionKey, start: int) -> None:
        """Records of before go: clients asked for it, or retention."""
        self.committed(key)  # while it is there
        self.told.asked[key] = max(self.told.asked[key], start)

    async def _writing(self, key: PartitionKey) -> tuple[ServedLog, Life, SimNode] | None:
        """A log that takes writes; None, after some time, while there is none."""
        serving = self._serving(key)
        if serving is None:
            await asyncio.sleep(0.3)
            return None
        node, log = serving
        assert node.node is not None
        life = node.node.life
        if not log.takes_writes or life is None or life.committer is None:
            await asyncio.sleep(0.1)
            return None
        return log, life, node

    def read(self, key: PartitionKey) -> None:
        """Reads all there is from some node that answers."""
        serving = self._serving(key)
        if serving is None:
            return
        node, log = serving
        life = node.node.life if node.node is not None else None
        if life is None or not life.answers_reads:
            return
        before = self.told.read[key]
        with suppress(StorageError):  # the store of segments may be away
            for offset, each in log.by_offset().items():
                assert before.setdefault(offset, each) == each, f"{key.number}:{offset} has changed"

    def _serving(self, key: PartitionKey) -> tuple[SimNode, ServedLog] | None:
        found = [
            (node, node.host.served[key])
            for node in self.nodes
            if key in node.host.served and not node.is_stopped and node.node is not None
        ]
        return self.dice.choice(found) if found else None

    def _acknowledged(self, key: PartitionKey, offset: int, value: Value) -> None:
        had = self.told.acknowledged[key].setdefault(offset, value)
        assert had == value, f"{key.number}:{offset} was acknowledged for {had} and {value}"

    async def sweep(self) -> None:
        """Peace: a look for orphans on each node, of which two find all."""
        for node in self.nodes:
            node.wall_ms = 0  # an object is not old enough for a clock that is behind
            if node.host.tier is not None:
                await node.host.tier.sweep(0.0)

    def check_swept(self) -> None:
        """The store has nothing but what is named, or about to be."""
        for node in self.nodes:
            if node.host.tier is not None:
                for key in node.host.served:
                    part = self.rows.parts[key]
                    tiered = node.host.tier.tiered(part.topic, key.number)
                    self.named.check_swept(key, part, tiered)

    # --- oracle ---

    def check(self) -> dict[PartitionKey, list[SimBatch]]:
        """Invariants of the rows and of what was answered; what is committed."""
        found = {key: self.committed(key) for key in self.rows.parts}
        for key in self.rows.parts:
            self.check_named(key)
        for key, values in self.told.acknowledged.items():
            have = found[key]
            for offset, value in values.items():
                assert offset < len(have), f"{key.number}:{offset} is lost: {value}"
                assert have[offset].value == value, f"{key.number}:{offset} is another: {value}"
        for key, read in self.told.read.items():
            have = found[key]
            for offset, each in read.items():
                assert have[offset : offset + 1] == [each], f"{key.number}:{offset} was read"
        self._check_starts()
        self._check_trash()
        return found

    def check_named(self, key: PartitionKey) -> None:
        """Segments that the rows name, from the start that was asked for on."""
        self.named.check(key, self.rows.parts[key], self.told.asked[key])

    def committed(self, key: PartitionKey) -> list[SimBatch]:
        """All that was ever committed, as far as it was seen."""
        part = self.rows.parts[key]
        for _, commit_id in part.spans:
            assert self._body(commit_id) is not None, f"{commit_id} has no bytes"
        spans, seen = self._judged.get(key, ([], []))
        if spans != part.spans:
            begin = part.spans[0][0].base_offset if part.spans else part.end
            assert len(seen) >= begin, f"{key.number} begins at {begin}, and ended at {len(seen)}"
            seen = self._merged(key, seen, begin, part)
            values = [each.value for each in seen[part.log_start :]]
            assert len(set(values)) == len(values), f"{key.number} has a record twice: {values}"
            self._judged[key] = [*part.spans], seen
        return seen

    def _merged(
        self, key: PartitionKey, seen: Sequence[SimBatch], begin: int, part: Part
    ) -> list[SimBatch]:
        """All that was seen, and what the rows have: compaction may have removed some there."""
        found = self._read(key, begin, part.spans)
        merged = list(seen if self.logs is Logs.COMPACTED else seen[:begin])
        for offset in range(begin, part.end):
            if offset == len(merged):
                merged.append(found[offset])
            assert found.get(offset, merged[offset]) == merged[offset], f"{key.number}:{offset}"
        return merged

    def _body(self, commit_id: CommitId) -> bytes | None:
        row = self.rows.wal[commit_id]
        return row.inline if row.object_key is None else self.objects.objects[row.object_key]

    def _read(
        self, key: PartitionKey, begin: int, spans: Sequence[tuple[Span, CommitId]]
    ) -> dict[int, SimBatch]:
        """Records by offset."""
        found, arrivals, at = dict[int, SimBatch](), list[int](), begin
        for span, commit_id in spans:
            assert span.base_offset == at, f"{key.number} has a gap or an overlap"
            for offset, record, arrival_ms in self._records_of(span, commit_id):
                assert offset >= at, f"{key.number} has {offset} at {at}"
                found[offset], at = record, offset + 1
                arrivals.append(arrival_ms)
            assert at == span.end_offset or self.logs is Logs.COMPACTED
            assert at <= span.end_offset
            at = span.end_offset
        epochs = [each.epoch for each in found.values()]
        assert epochs == sorted(epochs), f"epochs of {key.number} fall: {epochs}"
        assert arrivals == sorted(arrivals), f"arrivals of {key.number} fall: {arrivals}"
        return found

    def _records_of(self, span: Span, commit_id: CommitId) -> Sequence[tuple[int, SimBatch, int]]:
        """Offsets, records, and when they came."""
        found = self._decoded.get((commit_id, span))
        if found is None:
            body = self._body(commit_id)
            assert body is not None
            arrived = read_part(body[span.position : span.position + span.size_bytes])
            found = list(self._records(span, arrived))
            self._decoded[commit_id, span] = found
        return found

    def _records(
        self, span: Span, arrived: Sequence[ArrivedBatch]
    ) -> Iterator[tuple[int, SimBatch, int]]:
        for offset, each in enumerate(arrived, span.base_offset):
            if self.logs is Logs.LISTS:
                record = SimBatch(span.epoch, each.arrival_ms, decoded(each.data))
                yield offset, record, each.arrival_ms
                continue
            for found in records_in(memoryview(each.data)):
                place = span.partition, found.offset
                came = self._arrived.setdefault(place, each.arrival_ms)
                assert came == each.arrival_ms, f"{place} came at {came}"
                yield found.offset, SimBatch(span.epoch, 0, value_of(found)), each.arrival_ms

    def note_owners(self) -> None:
        """One incarnation an epoch, and epochs that rise."""
        for row in self.rows.shard_rows:
            if row.owner is not None:
                place = row.shard_id, row.epoch
                owner = self.owner_of_epoch.setdefault(place, row.owner)
                assert owner == row.owner, f"{place} has two owners"

    def _check_starts(self) -> None:
        """Deleted records do not come back, and no others go."""
        for key, part in self.rows.parts.items():
            deleted, asked = self.told.deleted[key], self.told.asked[key]
            begins = f"{key.number} begins at {part.log_start}"
            assert deleted <= part.log_start, f"{begins}: {deleted} was acknowledged"
            assert part.log_start <= asked, f"{begins}: {asked} was asked for"

    def _check_trash(self) -> None:
        """Nothing that is named is trash, and trash stays until its time has come."""
        named = {
            self.rows.wal[by].object_key
            for part in self.rows.parts.values()
            for _, by in part.spans
        }
        for key, after in list(self.rows.trash_rows.items()):
            assert key not in named, f"{key} is named and trash"
            assert after < self._latest_ms or key in self.objects.objects, f"{key} went early"


async def _is_done(ask: Callable[[Done], None]) -> bool:
    """True when what was asked for was answered in time, and without an error."""
    answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(error: BaseException | None) -> None:
        if not answered.done():
            answered.set_result(None) if error is None else answered.set_exception(error)

    ask(done)
    await asyncio.wait({answered}, timeout=ANSWER_SECONDS)
    return answered.done() and answered.exception() is None
