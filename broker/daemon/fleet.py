"""A broker as a node of a fleet: what it is made of, and in which order it comes and goes."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from math import inf
from typing import Protocol, TypeVar
from uuid import UUID

from broker.daemon.fleet_levels import FleetLevels
from broker.daemon.fleet_parts import (
    FleetParts,
    LoopClock,
    commit_store,
    made_peers,
    store_part,
    times_of,
)
from broker.daemon.fleet_transactions import FleetTransactions
from broker.daemon.led_coordinator import LedCoordinator, ended
from broker.fleet.authority import FleetAuthority
from broker.fleet.catalog.port import CatalogError, CatalogRefused
from broker.fleet.catalog.postgres import PostgresCatalog
from broker.fleet.catalog.postgres_ledger import PostgresLedger
from broker.fleet.catalog.rows import (
    FleetFacts,
    Incarnation,
    ListenerAddress,
    NodeAddress,
    OwnedShard,
    Registration,
)
from broker.fleet.catalog.schema import NewFleet, migrate
from broker.fleet.commit_objects import CommitObjects
from broker.fleet.committer import FleetReach
from broker.fleet.fleet_commit import FleetCommit
from broker.fleet.image import BrokerImage
from broker.fleet.led_partitions import Coordinating, LedPartitions, nobody_yet
from broker.fleet.led_segments import LedSegments
from broker.fleet.life import FleetNode, Life
from broker.fleet.local_logs import LocalLogs
from broker.fleet.peers.log_ends import PeerLogEnds
from broker.fleet.tally import FleetTally
from broker.fleet.trimming import Trimming
from broker.groups.coordinator import GroupCoordinator
from broker.partitions.partition import Partition
from broker.runtime.documents import DocumentAuthority
from broker.runtime.endpoint import Endpoint, Nodes
from broker.runtime.event_log import event
from broker.share.state.coordinator import ShareCoordinator
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.markers import Markers
from config.errors import ConfigError
from config.fleet.rules import URL
from storage.files.meta_properties import kafka_uuid

T = TypeVar("T")

HAND_OVER_SECONDS = 10.0
RESIGN_SECONDS = 2.0
JOIN_PAUSE_SECONDS = 1.0
OBJECTS = "fleet-objects"
OBJECT_THREADS = 4
PEERS = "fleet-peers"
PEER_THREADS = 2
"""Of log-ins at other nodes."""
SERVED = frozenset((
    "add_offsets_to_txn", "add_partitions_to_txn", "alter_client_quotas", "alter_configs",
    "alter_partition_reassignments", "alter_user_scram_credentials", "api_versions",
    "consumer_group_describe", "consumer_group_heartbeat", "create_acls",
    "create_delegation_token", "create_partitions", "create_topics", "delete_acls",
    "delete_groups", "delete_records", "delete_topics", "describe_acls", "describe_client_quotas",
    "describe_cluster", "describe_configs", "describe_delegation_token", "describe_groups",
    "describe_log_dirs", "describe_producers", "describe_topic_partitions",
    "describe_transactions", "describe_user_scram_credentials", "elect_leaders", "end_txn",
    "expire_delegation_token", "fetch", "find_coordinator",
    "get_telemetry_subscriptions", "heartbeat",
    "incremental_alter_configs", "init_producer_id", "join_group", "leave_group",
    "list_config_resources", "list_groups", "list_offsets", "list_partition_reassignments",
    "list_transactions", "metadata", "offset_commit", "offset_delete", "offset_fetch",
    "offset_for_leader_epoch", "produce", "push_telemetry", "renew_delegation_token",
    "sasl_authenticate", "sasl_handshake", "streams_group_describe", "streams_group_heartbeat",
    "sync_group", "txn_offset_commit", "update_features", "write_txn_markers",
))  # fmt: skip
"""Handlers of a broker in a fleet."""
OF_SHARE_GROUPS = frozenset((
    "alter_share_group_offsets", "delete_share_group_offsets", "delete_share_group_state",
    "describe_share_group_offsets", "initialize_share_group_state", "read_share_group_state",
    "read_share_group_state_summary", "share_acknowledge", "share_fetch", "share_group_describe",
    "share_group_heartbeat", "write_share_group_state",
))  # fmt: skip
"""Those for which nodes ask each other."""


class SharedDocument(Protocol):
    """A service whose state is one text."""

    authority: DocumentAuthority

    async def follow(self, content: bytes) -> None:
        """Has what was decided. ConfigError, CorruptCheckpoint, NewerFormat."""


class Fleet:
    """The part of one broker. Used from the event loop."""

    def __init__(self, parts: FleetParts, loop: asyncio.AbstractEventLoop) -> None:
        """Nothing is connected. ConfigError when the object store cannot be used."""
        self._parts = parts
        self._settings = settings = parts.config.broker_config
        assert settings.horolog_fleet_url is not None
        clock = LoopClock(parts.monotonic, parts.env.clock.now_ms)
        self._url = str(settings.horolog_fleet_url)
        wait = settings.horolog_fleet_commit_timeout_ms / 1000
        self.commit = FleetCommit(parts.local, clock, loop.call_later, wait)
        self._catalog = PostgresCatalog(self._url)
        self.tally = FleetTally()
        objects = self._objects = CommitObjects(commit_store(settings), parts.objects, parts.rng)
        self._reach = FleetReach(
            self._catalog, objects, clock, times_of(settings), parts.lane, self.tally
        )
        self._coordinators: dict[str, Coordinating] = {}
        self._shared: list[SharedDocument] = []
        self._served = LedPartitions(
            settings.node_id,
            parts.topics,
            self.commit,
            self._coordinators,
            monotonic=parts.monotonic,
            lease=self,
        )
        self.segments = LedSegments(self._served.owned, self._rows)
        """Segments in the store, of partitions that are led here."""
        self._image = BrokerImage(
            self._catalog,
            parts.topics,
            self._served,
            self._nodes_are,
            parts.on_deleted,
            monotonic=parts.monotonic,
        )
        ledger, times = PostgresLedger(self._url, settings.node_id), times_of(settings)
        self.transactions = FleetTransactions(ledger, parts.topics, self, (clock, times))
        self.peers = made_peers(parts)
        """Other nodes; None where nodes have no way to each other: no share groups are served."""
        self._joining_peers = made_peers(parts)
        """Connections of their own: transactions that wait hold up no share group."""
        self.levels = FleetLevels(lambda: self._image.nodes, joins=self.peers is not None)
        """Levels of features that all nodes serve."""
        self.log_ends = None
        """Ends of partitions that they lead."""
        if self.peers is not None:
            self.log_ends = PeerLogEnds(self.peers.ask, parts.monotonic)
        self._facts: FleetFacts | None = None
        self._node: FleetNode | None = None
        self._task: asyncio.Task[None] | None = None

    async def join(self) -> str:
        """Makes the schema where there is none; the cluster's id. ConfigError."""
        return await self._answered(self._joined)

    async def learn(self) -> None:
        """Has topics, settings, users and rights of the fleet, and who leads what.

        Before it returns no client may be served: it would hear that topics do not exist, and be
        judged by rights that are not the fleet's. ConfigError, DiskError.
        """
        await self._answered(self._learned)

    async def _joined(self) -> str:
        settings, rng = self._settings, self._parts.rng
        new = NewFleet(rng.uuid(), settings.cluster_id or kafka_uuid(rng.uuid()))
        for each in await migrate(self._url, new):
            event("fleet_schema_changed", "info", step=each)
        self._facts = await self._catalog.facts()
        self._objects.use(self._facts.fleet_id)
        return self._facts.cluster_id

    async def _learned(self) -> None:
        await self._image.refresh()
        self._image.seen(await self._catalog.nodes(), await self._catalog.shards())

    async def _answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer of the catalog, however long that is away. ConfigError when it refuses."""
        while True:
            try:
                return await ask()
            except CatalogRefused as error:
                raise ConfigError(URL, f"{URL}: {error}") from error
            except CatalogError as error:
                event("fleet_catalog_away", "warning", error=str(error))
                await asyncio.sleep(JOIN_PAUSE_SECONDS)

    def decides(self) -> FleetAuthority:
        """Topics, settings and ids of producers are the fleet's affair from now on.

        Before it learns what there is, since what it follows is the fleet's too; and so before
        clients are let in: what they made here alone nobody else would know of, and an id could be
        another producer's at another node.
        """
        facts = self._facts
        assert facts is not None
        authority = FleetAuthority(self._reach, self._image, facts.shards)
        self._parts.topics.authority = authority
        for each in self._shared:
            each.authority = authority
        return authority

    def begin(self, addresses: Mapping[str, Endpoint]) -> None:
        """Lives from now on; what it owns comes by and by.

        `addresses`: where clients reach it, by listener; the first one is shown to operators.
        """
        facts, parts = self._facts, self._parts
        assert facts is not None
        host = LocalLogs(
            parts.logs, parts.lane, parts.config.topic_config, self._served, store_part(parts)
        )
        directory_id = parts.logs.directory_id
        assert directory_id is not None
        order = Registration(
            self._settings.node_id,
            directory_id,
            NodeAddress(*next(iter(addresses.values()))),
            version("horolog"),
            [ListenerAddress(name, *each) for name, each in addresses.items()],
            self.levels.joins,
        )
        self._node = FleetNode(self._reach, host, order, facts.fleet_id, self._image)
        self._task = asyncio.create_task(self._node.run())
        self._task.add_done_callback(self._has_ended)
        self.transactions.begin()

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        """A node that has nothing to do any more, for its disk has failed, serves no clients: they
        would not hear of what is new.
        """
        ended(task)
        if not task.cancelled() and task.exception() is None:
            self._parts.stop()

    async def hand_over(self) -> None:
        """Gives all shards to nodes that live, as far as they take them in time."""
        if self._node is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HAND_OVER_SECONDS):
                    await self._node.leave()

    async def end(self) -> None:
        """Nothing is committed any more, and others may take over at once what is still owned."""
        if self._task is not None and self._node is not None:
            me = self.me
            await self.transactions.end()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            if me is not None:  # else the others find out when the lease has ended
                with contextlib.suppress(CatalogError, TimeoutError):
                    async with asyncio.timeout(RESIGN_SECONDS):
                        await self._catalog.resign(me)
        for each in (self.peers, self._joining_peers):
            if each is not None:
                each.close()
        await self._catalog.close()

    @property
    def fleet_id(self) -> UUID:
        """Id of the fleet that it has joined."""
        assert self._facts is not None
        return self._facts.fleet_id

    def _nodes_are(self, living: Nodes, gone: Nodes) -> None:
        for each in (self.peers, self._joining_peers):
            if each is not None:
                each.nodes_are(living)
        self._parts.on_nodes(living, gone)

    def _rows(self) -> Trimming | None:
        life = self._life
        return None if life is None else life.trimming

    @property
    def image(self) -> BrokerImage:
        """Nodes, shards and topics, as the rows had them at the last look."""
        return self._image

    @property
    def _life(self) -> Life | None:
        """The present one; None between two."""
        return None if self._node is None else self._node.life

    @property
    def me(self) -> Incarnation | None:
        """The present life; None between two."""
        life = self._life
        return None if life is None else life.me

    def shard_of(self, partition: Partition) -> OwnedShard | None:
        """The shard of a partition that is led here; None for others."""
        return self._served.shard_of(partition)

    def coordinates(
        self, groups: GroupCoordinator, transactions: TransactionCoordinator, markers: Markers
    ) -> None:
        """They have what the partitions that are led here remember, from the start on."""
        for each in (groups, transactions):
            each.loading.share(self._parts.monotonic, self._settings.node_id)
            led = LedCoordinator(each, self._image, self.transactions.wake)
            self._coordinators[each.topic.name] = led
        self.transactions.participants.topic = transactions.topic
        self.transactions.marks(markers, groups)
        if self._joining_peers is not None:
            self.transactions.joins(transactions, self._joining_peers)

    def remembers(self, shares: ShareCoordinator) -> None:
        """Has what share groups remember in the partitions that are led here, from the start on."""
        shares.shared(self._parts.monotonic, self._settings.node_id)
        led = LedCoordinator(shares, self._image, lambda: None)
        self._coordinators[shares.topic.name] = led

    def on_lost(self, hears: Callable[[Partition], None]) -> None:
        """`hears` of each partition that is led here no more."""
        self._served.on_lost = hears

    def shares(self, name: str, service: SharedDocument) -> None:
        """A service has what the fleet has, from the start on."""
        self._image.followers[name] = service.follow
        self._shared.append(service)

    def stranger(self, partition: Partition) -> Partition:
        """A partition that was just made: nobody is known to lead it."""
        return nobody_yet(partition)

    def serves(self, api: str) -> bool:
        """False for an API that no node of a fleet serves, by its handler's module."""
        return api in SERVED or (self.peers is not None and api in OF_SHARE_GROUPS)

    @property
    def owned_shards(self) -> int:
        """Shards of which this node leads the partitions."""
        life = self._life
        return 0 if life is None else len(life.ownership.shards)

    @property
    def silent_seconds(self) -> float:
        """For how long no renewal of this node's lease was answered; 0 between two lives."""
        life = self._life
        return 0.0 if life is None else life.silent_seconds

    @property
    def is_held(self) -> bool:
        """As `Lease` has it; False between two lives."""
        life = self._life
        return life is not None and life.is_held

    @property
    def held_since(self) -> float:
        """As `Lease` has it."""
        life = self._life
        return -inf if life is None else max(life.held_since, life.spans.room.free_since)

    @property
    def has_room(self) -> bool:
        """As `Lease` has it."""
        life = self._life
        return life is None or not life.spans.room.is_full

    @property
    def row_bytes(self) -> int:
        """Committed bytes that the database alone has, of partitions that are led here."""
        life = self._life
        return 0 if life is None else life.spans.room.used_bytes

    @property
    def fault(self) -> str | None:
        """Reason for which this node serves nothing, for the operator; None: it lives."""
        life = self._life
        if life is None:
            return "it has not registered with its fleet yet"
        return None if life.answers_reads else "it cannot reach the catalog of its fleet"
