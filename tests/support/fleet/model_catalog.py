"""The rows of a fleet as plain Python: each call is done as a whole at one moment.

The model of `FleetCatalog` that simulations run on; one contract suite holds it and PostgreSQL to
the same answers.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from broker.fleet.catalog.rows import (
    CatalogCommit,
    Checkpoint,
    CommitAnswer,
    CommitId,
    CommittedSpan,
    CommittedState,
    Document,
    FleetFacts,
    Incarnation,
    LeaseRenewal,
    ManifestName,
    Naming,
    NewTopics,
    NodeRow,
    OwnedShard,
    PartitionKey,
    PartitionRow,
    Registration,
    ShardRow,
    Span,
    StatePiece,
    TopicAnswer,
    TopicRow,
    Topics,
    Trim,
)


@dataclass(slots=True)
class Node:
    """A row of `node`."""

    incarnation: Incarnation
    order: Registration
    renewed_ms: int
    renewals: int = 0
    is_fenced: bool = False
    is_draining: bool = False
    is_leaving: bool = False
    ahead_ms: int | None = None


class Body(NamedTuple):
    """A row of `wal`."""

    crc: int
    object_key: str | None
    inline: bytes | None


NO_MANIFEST = ManifestName(0, 0)


@dataclass(slots=True)
class Part:
    """A row of `part`, and those of its spans and state."""

    topic: str
    shard_id: int
    log_start: int = 0
    spans: list[tuple[Span, CommitId]] = field(default_factory=list)
    state: tuple[StatePiece, CommitId] | None = None
    manifest: ManifestName = NO_MANIFEST
    copied_end: int = 0

    @property
    def end(self) -> int:
        return self.spans[-1][0].end_offset if self.spans else max(self.log_start, self.copied_end)


class ModelCatalog:
    """The rows, and the calls of the port."""

    def __init__(self, facts: FleetFacts, now_ms: Callable[[], int]) -> None:
        self._facts = facts
        self.now_ms = now_ms
        self.node_rows: dict[int, Node] = {}
        self.shard_rows = [ShardRow(each, None, 0) for each in range(facts.shards)]
        self.topic_rows: dict[UUID, TopicRow] = {}
        self.topics_version = 0
        self.parts: dict[PartitionKey, Part] = {}
        self.wal: dict[CommitId, Body] = {}
        self.newest: dict[Incarnation, int] = {}
        self.trash_rows: dict[str, int] = {}
        self.document_rows: dict[str, Document] = {}
        self.producer_ids_below = 0
        self._changes: dict[asyncio.Event, None] = {}

    async def facts(self) -> FleetFacts:
        return self._facts

    async def register(self, order: Registration) -> Incarnation | None:
        before, number = self.node_rows.get(order.node_id), 1
        if before is not None:
            is_same = before.order.directory_id == order.directory_id
            if not before.is_fenced and not is_same:
                return None
            number = before.incarnation.number + 1
        me = Incarnation(order.node_id, number)
        draining = before is not None and before.is_draining
        row = Node(me, order, self.now_ms(), is_draining=draining)
        self.node_rows[order.node_id] = row
        self._insert(CommitId(me, 0), Body(0, None, None))
        return me

    async def renew(self, me: Incarnation, ahead_ms: int | None = None) -> LeaseRenewal | None:
        node = self._living(me)
        if node is None:
            return None
        node.ahead_ms = ahead_ms
        node.renewals += 1
        node.renewed_ms = self.now_ms()
        return LeaseRenewal(self.now_ms(), self.topics_version)

    async def nodes(self) -> Sequence[NodeRow]:
        return [
            NodeRow(
                each.incarnation,
                each.order.address,
                each.order.version,
                each.renewals,
                each.renewed_ms,
                each.is_fenced,
                each.is_draining or each.is_leaving,
                tuple(each.order.listeners),
                each.ahead_ms,
                each.order.joins,
            )
            for _, each in sorted(self.node_rows.items())
        ]

    async def fence(self, node: Incarnation, renewals: int) -> bool:
        row = self._living(node)
        if row is None or row.renewals != renewals:
            return False
        row.is_fenced = True
        self._note()
        return True

    async def resign(self, me: Incarnation) -> None:
        if (row := self._living(me)) is not None:
            row.is_fenced = True
            self._note()

    async def drain(self, node_id: int, *, draining: bool) -> bool:
        row = self.node_rows.get(node_id)
        if row is not None:
            row.is_draining = draining
            self._note()
        return row is not None

    async def leave(self, me: Incarnation) -> None:
        row = self.node_rows.get(me.node_id)
        if row is not None and row.incarnation == me and not row.is_leaving:
            row.is_leaving = True
            self._note()

    async def changed(self, seconds: float) -> bool:
        change = asyncio.Event()
        self._changes[change] = None
        try:
            await asyncio.wait_for(change.wait(), seconds)
        except TimeoutError:
            return False
        finally:
            self._changes.pop(change, None)
        return True

    def _note(self) -> None:
        for each in self._changes:
            each.set()

    async def shards(self) -> Sequence[ShardRow]:
        return list(self.shard_rows)

    async def report_loads(self, me: Incarnation, loads: Mapping[int, int]) -> None:
        for shard_id, load in loads.items():
            if self.shard_rows[shard_id].owner == me:
                self.shard_rows[shard_id] = self.shard_rows[shard_id]._replace(load=load)

    async def take(self, me: Incarnation, at_most: int) -> Sequence[OwnedShard]:
        if self._living(me) is None:
            return []
        free = [
            row for row in self.shard_rows if row.owner is None or self._living(row.owner) is None
        ]
        for row in free[:at_most]:
            self._owner(row, me)
        return [OwnedShard(row.shard_id, row.epoch + 1) for row in free[:at_most]]

    async def owned(self, me: Incarnation) -> Sequence[OwnedShard]:
        return [OwnedShard(row.shard_id, row.epoch) for row in self.shard_rows if row.owner == me]

    async def give(self, me: Incarnation, shard: OwnedShard, to: Incarnation) -> bool:
        receiver = self._living(to)
        if not self.owns(me, shard) or receiver is None or receiver.is_leaving:
            return False
        self._owner(self.shard_rows[shard.shard_id], to)
        return True

    async def commit(self, order: CatalogCommit) -> CommitAnswer:
        refused = self._refusal(order, [each.partition for each in order.spans])
        if refused is not None:
            return refused
        if any(each.base_offset != self.parts[each.partition].end for each in order.spans):
            return CommitAnswer.OFFSETS
        self._insert(order.commit_id, Body(order.crc, order.object_key, order.body))
        for each in order.spans:
            self.parts[each.partition].spans.append((each, order.commit_id))
        return CommitAnswer.OK

    async def checkpoint(self, order: Checkpoint) -> CommitAnswer:
        named = [each.partition for each in order.spans]
        named += [each.partition for each in order.states]
        refused = self._refusal(order, named)
        if refused is not None:
            return refused
        if not all(self._replaces(each) for each in order.spans):
            return CommitAnswer.OFFSETS
        self._insert(order.commit_id, Body(order.crc, order.object_key, None))
        touched: set[CommitId] = set()
        for span in order.spans:
            part = self.parts[span.partition]
            touched |= {by for old, by in part.spans if _is_within(old, span)}
            part.spans = [row for row in part.spans if not _is_within(row[0], span)]
            part.spans = sorted([*part.spans, (span, order.commit_id)])
        for piece in order.states:
            part = self.parts[piece.partition]
            touched |= {part.state[1]} if part.state is not None else set()
            part.state = (piece, order.commit_id)
        self._forget(touched, order.keep_ms)
        return CommitAnswer.OK

    async def keys(self, shards: Sequence[int]) -> Mapping[PartitionKey, int]:
        return {key: part.shard_id for key, part in self.parts.items() if part.shard_id in shards}

    async def partitions(self, shards: Sequence[int]) -> Sequence[PartitionRow]:
        return [
            PartitionRow(
                key,
                part.topic,
                part.shard_id,
                part.log_start,
                tuple(CommittedSpan(span, by, self.wal[by].object_key) for span, by in part.spans),
                None if part.state is None else self._state(*part.state),
                part.manifest if part.manifest.number else None,
                part.copied_end,
            )
            for key, part in sorted(self.parts.items())
            if part.shard_id in shards
        ]

    async def body(self, commit_id: CommitId) -> bytes | None:
        row = self.wal.get(commit_id)
        return None if row is None else row.inline

    async def version(self) -> int:
        return self.topics_version

    async def topics(self) -> Topics:
        rows = sorted(self.topic_rows.values(), key=lambda each: each.name)
        return Topics(self.topics_version, rows)

    async def create_topics(self, new: NewTopics) -> TopicAnswer:
        there = self.topic_rows
        if all(each.topic_id in there and there[each.topic_id].name == each.name
               for each in new.topics):  # fmt: skip
            return TopicAnswer.ALREADY
        names = {each.name for each in there.values()}
        if any(each.topic_id in there or each.name in names for each in new.topics):
            return TopicAnswer.TAKEN
        if new.settings is not None and not await self.put_document(new.settings):
            return TopicAnswer.CHANGED
        for topic_id, name, shards in new.topics:
            there[topic_id] = TopicRow(topic_id, name, tuple(shards))
            for index, shard_id in enumerate(shards):
                self.parts[PartitionKey(topic_id, index)] = Part(name, shard_id)
        self.topics_version += 1
        self._note()
        return TopicAnswer.OK

    async def grow_topic(self, topic_id: UUID, had: int, shards: Sequence[int]) -> bool:
        row = self.topic_rows.get(topic_id)
        if row is None or len(row.shards) != had:
            return row is not None and len(row.shards) == had + len(shards)
        self.topic_rows[topic_id] = TopicRow(topic_id, row.name, (*row.shards, *shards))
        for index, shard_id in enumerate(shards, had):
            self.parts[PartitionKey(topic_id, index)] = Part(row.name, shard_id)
        self.topics_version += 1
        self._note()
        return True

    async def delete_topic(self, topic_id: UUID, keep_ms: int) -> bool:
        row = self.topic_rows.pop(topic_id, None)
        if row is None:
            return False
        touched: set[CommitId] = set()
        for index in range(len(row.shards)):
            part = self.parts.pop(PartitionKey(topic_id, index))
            touched |= {by for _, by in part.spans}
            touched |= {part.state[1]} if part.state is not None else set()
        self._forget(touched, keep_ms)
        self.topics_version += 1
        self._note()
        return True

    async def trim(self, order: Trim) -> CommitAnswer:
        me, shard, key, start, keep_ms = order
        part = self.parts.get(key)
        if self._living(me) is None:
            return CommitAnswer.FENCED
        if not self.owns(me, shard):
            return CommitAnswer.STALE
        if part is None or part.shard_id != shard.shard_id:
            return CommitAnswer.NO_PARTITION
        if start > part.end:
            return CommitAnswer.OFFSETS
        if start <= part.log_start:
            return CommitAnswer.ALREADY
        part.log_start = start
        touched = {by for span, by in part.spans if span.last_offset < start}
        part.spans = [row for row in part.spans if row[0].last_offset >= start]
        self._forget(touched, keep_ms)
        return CommitAnswer.OK

    async def name_manifest(self, order: Naming) -> CommitAnswer:
        me, shard, key, number, end, keep_ms = order
        part = self.parts.get(key)
        if self._living(me) is None:
            return CommitAnswer.FENCED
        if not self.owns(me, shard):
            return CommitAnswer.STALE
        if part is None or part.shard_id != shard.shard_id:
            return CommitAnswer.NO_PARTITION
        if end > part.end:
            return CommitAnswer.OFFSETS
        name = ManifestName(shard.epoch, number)
        if name <= part.manifest:
            return CommitAnswer.ALREADY
        part.manifest, part.copied_end = name, max(part.copied_end, end)
        gone = [row for row in part.spans[:-1] if row[0].last_offset < end]
        part.spans = [row for row in part.spans if row not in gone]
        self._forget({by for _, by in gone}, keep_ms)
        return CommitAnswer.OK

    async def documents(self, known: Mapping[str, int]) -> Sequence[Document]:
        rows = sorted(self.document_rows.values())
        return [each for each in rows if known.get(each.name) != each.version]

    async def put_document(self, document: Document) -> bool:
        before = self.document_rows.get(document.name, Document(document.name, 0, b""))
        if before.version != document.version - 1:
            return before == document
        self.document_rows[document.name] = document
        self.topics_version += 1
        self._note()
        return True

    async def producer_ids(self, count: int) -> int:
        self.producer_ids_below += count
        return self.producer_ids_below - count

    async def producer_ids_end(self) -> int:
        return self.producer_ids_below

    async def trash(self, at_most: int) -> Sequence[str]:
        due = sorted((after, key) for key, after in self.trash_rows.items())
        return [key for after, key in due if after < self.now_ms()][:at_most]

    async def unnamed(self, keys: Sequence[str]) -> Sequence[str]:
        named = {row.object_key for row in self.wal.values()} | self.trash_rows.keys()
        return [key for key in keys if key not in named]

    async def sweep(self, at_most: int, keep_ms: int) -> int:
        named = self._named()
        left = [
            each
            for each, row in sorted(self.wal.items())
            if each not in named
            and (
                self.newest[each.incarnation] != each.number
                or row.inline is not None
                or row.object_key is not None
            )
        ]
        self._forget(set(left[:at_most]), keep_ms)
        return len(left[:at_most])

    async def removed(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.trash_rows.pop(key, None)

    def _living(self, me: Incarnation) -> Node | None:
        row = self.node_rows.get(me.node_id)
        return row if row is not None and row.incarnation == me and not row.is_fenced else None

    def owns(self, me: Incarnation, shard: OwnedShard) -> bool:
        """True while the shard is this incarnation's, in this epoch."""
        row = self.shard_rows[shard.shard_id]
        return (row.owner, row.epoch) == (me, shard.epoch)

    def _owner(self, row: ShardRow, owner: Incarnation) -> None:
        self.shard_rows[row.shard_id] = row._replace(owner=owner, epoch=row.epoch + 1)
        self._note()

    def _refusal(
        self, order: CatalogCommit | Checkpoint, named: Iterable[PartitionKey]
    ) -> CommitAnswer | None:
        me, number = order.commit_id
        if self._living(me) is None:
            return CommitAnswer.FENCED
        if (had := self.wal.get(order.commit_id)) is not None:
            return CommitAnswer.ALREADY if had.crc == order.crc else CommitAnswer.CONFLICT
        if self.newest.get(me) != number - 1:
            return CommitAnswer.GAP
        if not all(self.owns(me, each) for each in order.shards):
            return CommitAnswer.STALE
        shards = {each.shard_id for each in order.shards}
        if any(key not in self.parts or self.parts[key].shard_id not in shards for key in named):
            return CommitAnswer.NO_PARTITION
        return None

    def _insert(self, commit_id: CommitId, body: Body) -> None:
        self.wal[commit_id] = body
        self.newest[commit_id.incarnation] = commit_id.number

    def _replaces(self, span: Span) -> bool:
        old = [
            each
            for each, _ in self.parts[span.partition].spans
            if span.base_offset <= each.base_offset <= span.last_offset
        ]
        return bool(
            old
            and old[0].base_offset == span.base_offset
            and old[-1].last_offset == span.last_offset
            and {each.epoch for each in old} == {span.epoch}
        )

    def _named(self) -> set[CommitId]:
        named = {by for part in self.parts.values() for _, by in part.spans}
        return named | {part.state[1] for part in self.parts.values() if part.state is not None}

    def _forget(self, touched: set[CommitId], keep_ms: int) -> None:
        for each in touched - self._named():
            row = self.wal[each]
            if row.object_key is not None:
                self.trash_rows.setdefault(row.object_key, self.now_ms() + keep_ms)
            if self.newest[each.incarnation] == each.number:
                self.wal[each] = Body(row.crc, None, None)
            else:
                del self.wal[each]

    def _state(self, piece: StatePiece, by: CommitId) -> CommittedState:
        key = self.wal[by].object_key
        assert key is not None
        return CommittedState(piece, key)


def _is_within(old: Span, span: Span) -> bool:
    return (
        old.partition == span.partition
        and span.base_offset <= old.base_offset
        and old.last_offset <= span.last_offset
    )
