"""Topics, settings and leaders of a fleet, as its rows have them, in the image of this node."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from broker.fleet.catalog.port import FleetCatalog
from broker.fleet.catalog.rows import Document, NodeRow, PartitionRow, ShardRow, TopicRow
from broker.fleet.lately_gone import LatelyGone
from broker.fleet.led_partitions import LedPartitions
from broker.runtime.endpoint import Endpoint, Nodes
from broker.runtime.event_log import event
from broker.runtime.lanes import heard
from broker.topics.authority import DecidedTopic
from broker.topics.topic_catalog import TopicCatalog
from config.errors import ConfigError
from storage.errors import CorruptCheckpoint, NewerFormat

SETTINGS = "settings"
"""The document with all that clients set of topics, brokers and groups."""


class FleetImage(Protocol):
    """Knowledge of a node about its fleet, beside its logs."""

    async def follow(self, metadata_version: int) -> None:
        """Has what the rows have at this version or later. CatalogError, StorageError."""

    @property
    def spread(self) -> Iterable[Sequence[int]]:
        """Of each topic the shards of its partitions."""

    def knows(self, row: PartitionRow) -> bool:
        """False while the partition is not here yet: another round will find it."""

    def seen(self, nodes: Sequence[NodeRow], shards: Sequence[ShardRow]) -> None:
        """Nodes and shards as they are."""


Follower = Callable[[bytes], Awaitable[None]]
"""Has a document. ConfigError, CorruptCheckpoint, NewerFormat: this node cannot."""
Others = Callable[[Nodes, Nodes], None]
Deleted = Callable[[Sequence[str], frozenset[UUID]], None]


class BrokerImage:
    """The `FleetImage` of a broker. Used from the event loop."""

    def __init__(
        self,
        catalog: FleetCatalog,
        topics: TopicCatalog,
        served: LedPartitions,
        on_nodes: Others,
        on_deleted: Deleted,
        *,
        monotonic: Callable[[], float],
    ) -> None:
        """Nothing is asked.

        `on_nodes` hears where clients reach each node that lives, by listener, and each that has
        gone lately; `on_deleted` the names and ids of topics that went.
        """
        self._gone = LatelyGone(monotonic)
        self._catalog = catalog
        self._topics = topics
        self._served = served
        self._on_nodes = on_nodes
        self._on_deleted = on_deleted
        self.rows: Sequence[TopicRow] = ()
        """Topics as the rows have them."""
        self.nodes: Sequence[NodeRow] = ()
        """Nodes as the rows had them at the last look, and shards."""
        self.shards: Sequence[ShardRow] = ()
        self._seen: tuple[object, ...] = ()
        self._following: set[asyncio.Future[None]] = set()
        self.version = -1
        """Of the rows that are here."""
        self.documents_version = -1
        """Version of the rows of which at least the documents are here."""
        self.documents: dict[str, int] = {}
        """Versions of the documents that are here."""
        self._settings: bytes | None = None
        """Content of that document, as it is here."""
        self.unreadable: frozenset[str] = frozenset()
        """Documents that this node cannot have as they are now."""
        self.followers: dict[str, Follower] = {SETTINGS: self._follow_settings}
        """Services that have a document, by its name."""

    async def follow(self, metadata_version: int) -> None:
        """As the port has it."""
        if metadata_version > self.version:
            await self.refresh()

    async def refresh(self) -> None:
        """Has what the rows have now. CatalogError, StorageError.

        What has begun goes on to its end also when the node's life ends: threads that make topics
        do, and the next life is not to make others beside them.
        """
        whole = asyncio.ensure_future(self._in_turn())
        self._following.add(whole)
        whole.add_done_callback(self._following.discard)
        whole.add_done_callback(heard)
        await asyncio.shield(whole)

    async def _in_turn(self) -> None:
        async with self._topics.changing:
            await self._follow()

    @property
    def spread(self) -> Iterable[Sequence[int]]:
        """As the port has it."""
        return (each.shards for each in self.rows)

    def knows(self, row: PartitionRow) -> bool:
        """As the port has it."""
        topic = self._topics.image.by_id.get(row.partition.topic_id)
        return topic is not None and topic.partition(row.partition.number) is not None

    def seen(self, nodes: Sequence[NodeRow], shards: Sequence[ShardRow]) -> None:
        """As the port has it."""
        self.nodes, self.shards = nodes, shards
        living = {
            each.incarnation.node_id: {
                name: Endpoint(host, port) for name, host, port in each.listeners
            }
            for each in nodes
            if not each.is_fenced
        }
        gone = self._gone.look(living)
        led = [(each.owner, each.epoch) for each in shards]  # loads change all the time
        now = (self.version, living, gone, led)
        if now != self._seen:
            self._seen = now
            self._on_nodes(living, gone)
            self._served.led_elsewhere(self.rows, {each.shard_id: each for each in shards})

    def note(self, document: Document) -> None:
        """A document is here: it was decided by this node, or followed."""
        self.documents[document.name] = document.version
        if document.name == SETTINGS:
            self._settings = document.content

    def next_settings(self, content: bytes) -> Document:
        """The document of settings with this content: the one that is here, or the one after it."""
        version = self.documents.get(SETTINGS, 0)
        return Document(SETTINGS, version + (content != self._settings), content)

    async def _follow(self) -> None:
        rows = await self._catalog.topics()
        await self._follow_documents()
        self.documents_version = rows.version
        before = {name: each.topic_id for name, each in self._topics.image.topics.items()}
        decided = [DecidedTopic(each[0], each.name, len(each.shards)) for each in rows.topics]
        try:
            await self._topics.follow(decided)
        finally:  # those that went have gone also where another could not be made
            self._have_gone(before)
        self.rows, self.version = rows.topics, rows.version

    def _have_gone(self, before: Mapping[str, UUID]) -> None:
        there = self._topics.image.by_id
        gone = {name: topic_id for name, topic_id in before.items() if topic_id not in there}
        if SETTINGS in self.unreadable:  # which say what topics made again have
            self._topics.forget_settings(gone)
        if gone:
            self._on_deleted(list(gone), frozenset(gone.values()))

    async def _follow_documents(self) -> None:
        unreadable = set()
        for each in await self._catalog.documents(self.documents):
            follower = self.followers.get(each.name)
            if follower is None or await _followed(follower, each):
                self.note(each)
            else:
                unreadable.add(each.name)
        self.unreadable = frozenset(unreadable)

    async def _follow_settings(self, content: bytes) -> None:
        await self._topics.follow_settings(content.decode())


async def _followed(follower: Follower, document: Document) -> bool:
    """One that this node cannot have is named, and the others come all the same.

    False then: this node changes nothing of it, since that would take back what it cannot have.
    """
    try:
        await follower(document.content)
    except (ConfigError, CorruptCheckpoint, NewerFormat, UnicodeDecodeError) as error:
        event("fleet_settings_refused", "error", document=document.name, error=error)
        return False
    return True
