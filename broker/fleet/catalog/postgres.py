"""The rows of a fleet in PostgreSQL.

Renewals have a connection of their own, so that a long commit never costs a lease, and so have
commits.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from broker.fleet.catalog import statements as sql
from broker.fleet.catalog.line import LIMITS, Line, LineLimits
from broker.fleet.catalog.listener import ChangeListener
from broker.fleet.catalog.rows import (
    CatalogCommit,
    Checkpoint,
    CommitAnswer,
    CommitId,
    CommittedSpan,
    CommittedState,
    Document,
    FleetFacts,
    ImportAnswer,
    Incarnation,
    LeaseRenewal,
    ListenerAddress,
    ManifestName,
    Naming,
    NewTopics,
    NodeAddress,
    NodeRow,
    OwnedShard,
    PartitionKey,
    PartitionRow,
    Registration,
    ShardRow,
    Span,
    StatePiece,
    TopicAnswer,
    TopicImport,
    TopicRow,
    Topics,
    Trim,
)
from broker.fleet.catalog.servers import Connection

Row = Mapping[str, Any]
CHANNELS = ("horolog_topics", "horolog_shards")


class PostgresCatalog:
    """The `FleetCatalog` of a database. Used from one event loop."""

    def __init__(self, url: str, limits: LineLimits = LIMITS, *, only_reads: bool = False) -> None:
        """Nothing is connected. `only_reads`: as `Line` has it."""
        self._leases, self._commits, self._others = (
            Line(url, limits, only_reads=only_reads) for _ in range(3)
        )
        self._listener = ChangeListener(url, CHANNELS, limits)

    async def close(self) -> None:
        """Waits a while for what is under way, and ends the connections."""
        self._listener.close()
        await asyncio.gather(self._leases.close(), self._commits.close(), self._others.close())

    async def facts(self) -> FleetFacts:
        """As the port has it."""
        [row] = await self._others.ask(sql.FACTS)
        return FleetFacts(row["fleet_id"], row["cluster_id"], row["shards"])

    async def register(self, order: Registration) -> Incarnation | None:
        """As the port has it."""
        host, port = order.address
        rows = await self._leases.ask(
            sql.REGISTER, order.node_id, order.directory_id, host, port, order.version,
            ["{} {} {}".format(*each) for each in order.listeners], order.joins,
        )  # fmt: skip
        return Incarnation(order.node_id, rows[0]["incarnation"]) if rows else None

    async def renew(self, me: Incarnation, ahead_ms: int | None = None) -> LeaseRenewal | None:
        """As the port has it."""
        rows = await self._leases.ask(sql.RENEW, *me, ahead_ms)
        return LeaseRenewal(rows[0]["now_ms"], rows[0]["topics_version"]) if rows else None

    async def nodes(self) -> Sequence[NodeRow]:
        """As the port has it."""
        return [_node(row) for row in await self._others.ask(sql.NODES)]

    async def fence(self, node: Incarnation, renewals: int) -> bool:
        """As the port has it."""
        return bool(await self._others.ask(sql.FENCE, *node, renewals))

    async def resign(self, me: Incarnation) -> None:
        """As the port has it."""
        await self._leases.ask(sql.RESIGN, *me)

    async def drain(self, node_id: int, *, draining: bool) -> bool:
        """As the port has it."""
        return bool(await self._others.ask(sql.DRAIN, node_id, draining))

    async def leave(self, me: Incarnation) -> None:
        """As the port has it."""
        await self._others.ask(sql.LEAVE, *me)

    async def changed(self, seconds: float) -> bool:
        """As the port has it."""
        return await self._listener.wait(seconds)

    async def shards(self) -> Sequence[ShardRow]:
        """As the port has it."""
        return [_shard(row) for row in await self._others.ask(sql.SHARDS)]

    async def report_loads(self, me: Incarnation, loads: Mapping[int, int]) -> None:
        """As the port has it."""
        await self._others.ask(sql.REPORT_LOADS, *me, list(loads), list(loads.values()))

    async def take(self, me: Incarnation, at_most: int) -> Sequence[OwnedShard]:
        """As the port has it."""
        return _owned(await self._others.ask(sql.TAKE, *me, at_most))

    async def owned(self, me: Incarnation) -> Sequence[OwnedShard]:
        """As the port has it."""
        return _owned(await self._others.ask(sql.OWNED, *me))

    async def give(self, me: Incarnation, shard: OwnedShard, to: Incarnation) -> bool:
        """As the port has it."""
        return bool(await self._others.ask(sql.GIVE, *me, *shard, *to))

    async def commit(self, order: CatalogCommit) -> CommitAnswer:
        """As the port has it."""
        me, number = order.commit_id
        rows = await self._commits.ask(
            sql.COMMIT, *me, number, order.crc, order.object_key, order.body,
            *_columns(order.shards, 2), *_spans_as_columns(order.spans),
        )  # fmt: skip
        return CommitAnswer(rows[0][0])

    async def checkpoint(self, order: Checkpoint) -> CommitAnswer:
        """As the port has it."""
        me, number = order.commit_id
        states = [(*each.partition, *each[1:]) for each in order.states]
        rows = await self._commits.ask(
            sql.CHECKPOINT, *me, number, order.crc, order.object_key, *_columns(order.shards, 2),
            *_spans_as_columns(order.spans), *_columns(states, 5), order.keep_ms,
        )  # fmt: skip
        return CommitAnswer(rows[0][0])

    async def keys(self, shards: Sequence[int]) -> Mapping[PartitionKey, int]:
        """As the port has it."""
        return {_key(row): row["shard_id"] for row in await self._others.ask(sql.KEYS, shards)}

    async def partitions(self, shards: Sequence[int]) -> Sequence[PartitionRow]:
        """As the port has it."""

        async def read(connection: Connection) -> tuple[list[Row], ...]:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return (
                    await connection.fetch(sql.PARTITIONS, shards),
                    await connection.fetch(sql.SPANS, shards),
                    await connection.fetch(sql.STATES, shards),
                )

        partitions, spans, states = await self._others.run(read)
        return _joined(partitions, spans, states)

    async def body(self, commit_id: CommitId) -> bytes | None:
        """As the port has it."""
        me, number = commit_id
        rows = await self._others.ask(sql.BODY, *me, number)
        return rows[0]["inline"] if rows else None

    async def version(self) -> int:
        """As the port has it."""
        [row] = await self._others.ask(sql.VERSION)
        version: int = row["topics_version"]
        return version

    async def topics(self) -> Topics:
        """As the port has it."""
        rows = await self._others.ask(sql.TOPICS)
        there = (row for row in rows if row["topic_id"] is not None)
        topics = [TopicRow(row["topic_id"], row["name"], tuple(row["shards"])) for row in there]
        return Topics(rows[0]["version"], topics)

    async def create_topics(self, new: NewTopics) -> TopicAnswer:
        """As the port has it."""
        topics, document = new.topics, new.settings or Document("", 1, b"")
        rows = await self._others.ask(
            sql.CREATE_TOPICS,
            [each.topic_id for each in topics],
            [each.name for each in topics],
            [len(each.shards) for each in topics],
            [shard for each in topics for shard in each.shards],
            document.name,
            document.version - 1,
            None if new.settings is None else document.content,
        )
        return TopicAnswer(rows[0][0])

    async def import_topics(self, order: TopicImport) -> ImportAnswer:
        """Makes all that one broker had a fleet's that has nothing. CatalogError.

        Beside the port: no node asks for it.
        """
        topics, parts = order.topics, order.partitions
        rows = await self._others.ask(
            sql.IMPORT_TOPICS,
            *_columns([(*each[:2], len(each.shards)) for each in topics], 3),
            [each.shard_id for each in parts],
            *_columns([(*each.partition, *each[2:]) for each in parts], 6),
            list(order.documents),
            list(order.documents.values()),
            order.producer_ids_below,
        )
        return ImportAnswer(rows[0][0])

    async def grow_topic(self, topic_id: UUID, had: int, shards: Sequence[int]) -> bool:
        """As the port has it."""
        return bool((await self._others.ask(sql.GROW_TOPIC, topic_id, had, shards))[0][0])

    async def delete_topic(self, topic_id: UUID, keep_ms: int) -> bool:
        """As the port has it."""
        return bool((await self._others.ask(sql.DELETE_TOPIC, topic_id, keep_ms))[0][0])

    async def trim(self, order: Trim) -> CommitAnswer:
        """As the port has it."""
        rows = await self._others.ask(
            sql.TRIM, *order.incarnation, *order.shard, *order.partition, *order[3:]
        )
        return CommitAnswer(rows[0][0])

    async def name_manifest(self, order: Naming) -> CommitAnswer:
        """As the port has it."""
        rows = await self._others.ask(
            sql.NAME_MANIFEST, *order.incarnation, *order.shard, *order.partition, *order[3:]
        )
        return CommitAnswer(rows[0][0])

    async def documents(self, known: Mapping[str, int]) -> Sequence[Document]:
        """As the port has it."""
        rows = await self._others.ask(sql.DOCUMENTS, list(known), list(known.values()))
        return [Document(row["name"], row["version"], row["content"]) for row in rows]

    async def put_document(self, document: Document) -> bool:
        """As the port has it."""
        name, version, content = document
        return bool((await self._others.ask(sql.PUT_DOCUMENT, name, version - 1, content))[0][0])

    async def producer_ids(self, count: int) -> int:
        """As the port has it."""
        [row] = await self._others.ask(sql.PRODUCER_IDS, count)
        first: int = row["first"]
        return first

    async def producer_ids_end(self) -> int:
        """As the port has it."""
        [row] = await self._others.ask(sql.PRODUCER_IDS_END)
        end: int = row["producer_ids_below"]
        return end

    async def trash(self, at_most: int) -> Sequence[str]:
        """As the port has it."""
        return [row["key"] for row in await self._others.ask(sql.TRASH, at_most)]

    async def unnamed(self, keys: Sequence[str]) -> Sequence[str]:
        """As the port has it."""
        return [row["key"] for row in await self._others.ask(sql.UNNAMED, keys)]

    async def sweep(self, at_most: int, keep_ms: int) -> int:
        """As the port has it."""
        [row] = await self._others.ask(sql.SWEEP_WAL, at_most, keep_ms)
        count: int = row[0]
        return count

    async def removed(self, keys: Sequence[str]) -> None:
        """As the port has it."""
        await self._others.ask(sql.REMOVED, keys)


def _columns(rows: Sequence[Sequence[object]], width: int) -> list[list[object]]:
    return [[row[at] for row in rows] for at in range(width)]


def _spans_as_columns(spans: Sequence[Span]) -> list[list[object]]:
    return _columns([(*each.partition, *each[1:]) for each in spans], 8)


def _node(row: Row) -> NodeRow:
    return NodeRow(
        Incarnation(row["node_id"], row["incarnation"]),
        NodeAddress(row["host"], row["port"]),
        row["version"],
        row["renewals"],
        row["renewed_ms"],
        row["fenced"],
        row["draining"],
        tuple(map(_listener, row["listeners"])),
        row["ahead_ms"],
        row["joins"],
    )


def _listener(text: str) -> ListenerAddress:
    name, host, port = text.split(" ")
    return ListenerAddress(name, host, int(port))


def _shard(row: Row) -> ShardRow:
    owner = None if row["owner"] is None else Incarnation(row["owner"], row["incarnation"])
    return ShardRow(row["shard_id"], owner, row["epoch"], row["bytes_per_second"])


def _owned(rows: Sequence[Row]) -> Sequence[OwnedShard]:
    return sorted(OwnedShard(row["shard_id"], row["epoch"]) for row in rows)


def _joined(
    partitions: Sequence[Row], spans: Sequence[Row], states: Sequence[Row]
) -> Sequence[PartitionRow]:
    spans_of = defaultdict[PartitionKey, list[CommittedSpan]](list)
    for row in spans:
        spans_of[_key(row)].append(_span(row))
    state_of = {_key(row): _state(row) for row in states}
    return [
        PartitionRow(
            key := _key(row),
            row["name"],
            row["shard_id"],
            row["log_start"],
            tuple(spans_of[key]),
            state_of.get(key),
            _manifest(row),
            row["copied_end"],
        )
        for row in partitions
    ]


def _manifest(row: Row) -> ManifestName | None:
    name = ManifestName(row["manifest_epoch"], row["manifest"])
    return name if name.number else None


def _key(row: Row) -> PartitionKey:
    return PartitionKey(row["topic_id"], row["part"])


def _commit_id(row: Row) -> CommitId:
    return CommitId(Incarnation(row["node_id"], row["incarnation"]), row["seq"])


def _span(row: Row) -> CommittedSpan:
    span = Span(
        _key(row), row["base_offset"], row["last_offset"], row["epoch"], row["pos"], row["len"],
        row["max_ts"],
    )  # fmt: skip
    return CommittedSpan(span, _commit_id(row), row["object_key"])


def _state(row: Row) -> CommittedState:
    piece = StatePiece(_key(row), row["at_offset"], row["pos"], row["len"])
    return CommittedState(piece, row["object_key"])
