"""The port to a fleet's rows. Real: `broker.fleet.catalog.postgres`.

Each call is one statement, done as a whole or not at all, at one moment between those of others. An
error leaves open whether it was done, and it may still be done after the error: so every call is
made in a way that a second or late one does no harm, or is looked up.
"""

# ruff: noqa: N818 - an error is named after what happened

from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

from broker.fleet.catalog.rows import (
    CatalogCommit,
    Checkpoint,
    CommitAnswer,
    CommitId,
    Document,
    FleetFacts,
    Incarnation,
    LeaseRenewal,
    Naming,
    NewTopics,
    NodeRow,
    OwnedShard,
    PartitionKey,
    PartitionRow,
    Registration,
    ShardRow,
    TopicAnswer,
    Topics,
    Trim,
)


class CatalogError(Exception):
    """The catalog did not do it, or did not say. Asked again later it may."""


class CatalogAway(CatalogError):
    """The catalog cannot be reached, or the connection ended before its answer came."""


class CatalogTimedOut(CatalogError):
    """The catalog did not answer in time."""


class CatalogReadOnly(CatalogError):
    """The catalog takes no changes: it is a standby, or its disk is full."""


class CatalogRefused(CatalogError):
    """The catalog cannot be used as it is set up. Asked again it is the same."""


class FleetCatalog(Protocol):
    """The rows of one fleet. Every call: CatalogError."""

    async def facts(self) -> FleetFacts:
        """The fleet as it was made."""

    async def register(self, order: Registration) -> Incarnation | None:
        """Begins a new life of a node. None while that of another directory is not fenced."""

    async def renew(self, me: Incarnation, ahead_ms: int | None = None) -> LeaseRenewal | None:
        """Shows that the incarnation lives. None when it is fenced, or another has begun.

        `ahead_ms`: what it knows of its clock against the catalog's; noted, to be shown.
        """

    async def nodes(self) -> Sequence[NodeRow]:
        """All nodes that ever lived."""

    async def fence(self, node: Incarnation, renewals: int) -> bool:
        """Ends an incarnation that has not renewed since. False: it has, or was ended before."""

    async def resign(self, me: Incarnation) -> None:
        """Ends the own incarnation."""

    async def drain(self, node_id: int, *, draining: bool) -> bool:
        """Notes that a node shall have no shards, or may again. False: there is no such node."""

    async def leave(self, me: Incarnation) -> None:
        """Notes that the incarnation gives its shards away and ends: nobody gives it any more."""

    async def changed(self, seconds: float) -> bool:
        """Returns when nodes, shards, topics or documents have changed, or after some seconds.

        True: something may have changed since the last call. By one task at a time.
        """

    async def shards(self) -> Sequence[ShardRow]:
        """All shards in order."""

    async def report_loads(self, me: Incarnation, loads: Mapping[int, int]) -> None:
        """Notes bytes a second by shard, of those that are this incarnation's."""

    async def take(self, me: Incarnation, at_most: int) -> Sequence[OwnedShard]:
        """Shards without a living owner become this incarnation's, each in a new epoch."""

    async def owned(self, me: Incarnation) -> Sequence[OwnedShard]:
        """Shards that are this incarnation's: what `take` gave when its answer was lost."""

    async def give(self, me: Incarnation, shard: OwnedShard, to: Incarnation) -> bool:
        """Makes a shard another living incarnation's, in a new epoch. False: nothing changed.

        One that leaves gets none.
        """

    async def commit(self, order: CatalogCommit) -> CommitAnswer:
        """Makes bytes count."""

    async def checkpoint(self, order: Checkpoint) -> CommitAnswer:
        """Has an object take the place of older commits."""

    async def keys(self, shards: Sequence[int]) -> Mapping[PartitionKey, int]:
        """The partitions of these shards, each with its shard."""

    async def partitions(self, shards: Sequence[int]) -> Sequence[PartitionRow]:
        """The partitions of these shards, and what is committed of them, as of one moment."""

    async def body(self, commit_id: CommitId) -> bytes | None:
        """The bytes in a commit's row; None when they are in an object by now, or gone."""

    async def version(self) -> int:
        """Rises with each change of topics and of documents."""

    async def topics(self) -> Topics:
        """All topics."""

    async def create_topics(self, new: NewTopics) -> TopicAnswer:
        """Makes topics, each of whose partitions are of the shards that it names."""

    async def grow_topic(self, topic_id: UUID, had: int, shards: Sequence[int]) -> bool:
        """Adds partitions of these shards behind the first `had`. False: it has others, or went."""

    async def delete_topic(self, topic_id: UUID, keep_ms: int) -> bool:
        """Removes a topic and all that is committed of it. False: there was none."""

    async def trim(self, order: Trim) -> CommitAnswer:
        """Moves a log start up; what is committed below goes. It never falls."""

    async def name_manifest(self, order: Naming) -> CommitAnswer:
        """Has a manifest count; commits of what is in its segments go. An older one never counts
        again.
        """

    async def documents(self, known: Mapping[str, int]) -> Sequence[Document]:
        """Documents of other versions than these, by name."""

    async def put_document(self, document: Document) -> bool:
        """Makes a new version of a document. False: another one was made before it."""

    async def producer_ids(self, count: int) -> int:
        """The first of so many producer ids in a row that nobody ever gets again."""

    async def producer_ids_end(self) -> int:
        """The id behind all producer ids that `producer_ids` has given so far."""

    async def trash(self, at_most: int) -> Sequence[str]:
        """Keys of objects that may be removed now."""

    async def unnamed(self, keys: Sequence[str]) -> Sequence[str]:
        """Those of the keys that neither a commit nor the trash has."""

    async def sweep(self, at_most: int, keep_ms: int) -> int:
        """Removes commits that were left behind and that nothing names; their number."""

    async def removed(self, keys: Sequence[str]) -> None:
        """Objects in the trash are gone."""
