"""A broker without network, threads or disk: handlers are called as the dispatcher calls them.

Lanes run their work at once (or when the test says so), fsync happens when the test says so, the
clock stands still. Encoding both ways is part of every call: what a version cannot say is lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

from broker.daemon.queues import made_redrive
from broker.daemon.routes import served
from broker.daemon.telemetry import made_telemetry
from broker.fetching.damage import DamageMet
from broker.fetching.sessions import FetchSessions
from broker.groups.coordinator import GroupCoordinator
from broker.groups.share.progress import LocalProgress
from broker.groups.share.states_persister import StatesPersister
from broker.guards.admission import Intake
from broker.guards.clock_guard import ClockWatch
from broker.guards.crash_guard import CrashGuard
from broker.guards.disk_space import DiskSpace
from broker.partitions.fetch_waiters import FetchWaiters
from broker.partitions.partition import Partition
from broker.partitions.partition_services import PartitionServices
from broker.partitions.refused_writes import RefusedWrites
from broker.quotas.service import Quotas
from broker.record_times.offenders import DirtyClients
from broker.record_times.quarantine import Quarantine
from broker.runtime.answers import Answers
from broker.runtime.deferred import Deferred
from broker.runtime.endpoint import Endpoint
from broker.runtime.gathering import wait_for
from broker.runtime.memory_account import MemoryAccount
from broker.runtime.principals import ANONYMOUS
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import Peer, RequestContext
from broker.runtime.rights import Rights
from broker.runtime.unpacking import Unpacking
from broker.security.audit.trail import AuditTrail
from broker.security.authority import Authority
from broker.security.delegation.tokens import Tokens
from broker.security.users import Users
from broker.server.client_software import ClientSoftware
from broker.server.features import LevelsAlone
from broker.server.services import bound
from broker.share.share_reads import ShareReads, ShareServices
from broker.share.state.coordinator import ShareCoordinator
from broker.share.state.pruning import ShareStatePruning
from broker.share.undelivered import nowhere_else
from broker.state.services import StateServices
from broker.topics.config_resources import ConfigResources
from broker.topics.creation import TopicRules
from broker.topics.removal_warning import RemovalForecast
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.admission import LocalAdmission
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.markers import LocalParticipants, Markers
from broker.transactions.producer_ids import ProducerIds
from config.alter import read_setting
from config.layers import Layer, SettingSource
from config.names import broker_name
from config.store import ConfigStore
from protocol.api import Api
from protocol.apis import create_topics, incremental_alter_configs, produce
from protocol.codec import decode, encode, encode_bytes
from protocol.headers import RequestHeader
from protocol.records.builder import build_batch
from protocol.registry import api_of
from storage.directory.log_manager import LogManager
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.logs import make_durable

LOG_DIR = "/data"
SERVED = tuple(each.api for each in served())
NODE_ID = 1
BATCH_TIME = 1_700_000_000_000


class InlineLanes:
    """A lane whose work runs inside of `run`; while `held`, it waits for `release`."""

    log_dir = LOG_DIR

    def __init__(self) -> None:
        self.held = False
        self.waiting: list[Callable[[], None]] = []

    def run(self, work: Callable[..., Any], *args: object) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def do() -> None:
            settle: Callable[[Any], None] = future.set_result
            try:
                outcome = work(*args)
            except Exception as error:  # noqa: BLE001 - as an executor does
                settle, outcome = future.set_exception, error
            if not future.cancelled():
                settle(outcome)

        if self.held:
            self.waiting.append(do)
        else:
            do()
        return future

    def release(self) -> None:
        """One piece of work that waits is done."""
        self.waiting.pop(0)()


class FixedEndpoints:
    """One address for all clients, and the other nodes that a test names."""

    def __init__(self) -> None:
        self.others: dict[int, Endpoint] = {}
        self.gone: dict[int, Endpoint] = {}

    def of(self, _: Peer) -> Endpoint:
        return Endpoint("broker.test", 9092)

    def others_of(self, _: Peer) -> dict[int, Endpoint]:
        return self.others

    def known_to(self, _: Peer) -> dict[int, Endpoint]:
        return {**self.gone, **self.others}


class ManualCommit:
    """An fsync thread that syncs when the test says so."""

    def __init__(self) -> None:
        self.requested: list[tuple[Any, int, Callable[[BaseException | None], None]]] = []
        self.told: list[tuple[Any, int, bool]] = []
        self.on_durable: Callable[[Any], None] = lambda log: None

    def request(self, log: Any, offset: int, done: Callable[[BaseException | None], None]) -> None:
        self.requested.append((log, offset, done))

    def start_moved(self, _: Any, done: Any) -> None:
        done(None)

    def written(self, log: Any, size_bytes: int, *, interval: bool = True) -> bool:
        self.told.append((log, size_bytes, interval))
        return False

    def forget(self, log: Any) -> None:
        for _, _, done in [each for each in self.requested if each[0] is log]:
            done(None)
        self.requested = [each for each in self.requested if each[0] is not log]

    def sync(self) -> None:
        """One round: everything requested so far is durable and answered."""
        requested, self.requested = self.requested, []
        for log in {id(each[0]): each[0] for each in requested}.values():
            make_durable(log)
            self.on_durable(log)
        for _, _, done in requested:
            done(None)

    def fail(self) -> None:
        """The disk refuses."""
        requested, self.requested = self.requested, []
        for _, _, done in requested:
            done(OSError("fsync failed"))


class World:
    """The broker as handlers see it, and the verbs of a test."""

    rights: Rights | None = None
    """Rights of the client that asks; None: everything is allowed."""

    principal = ANONYMOUS
    listener_name = "PLAINTEXT"
    by_token = False

    commit_kind = ManualCommit
    away_kind: Callable[[], Any] | None = None
    """Makes the threads that ask the store of a tier; None: there is no tier."""

    def __init__(self, fs: SimFileSystem | None = None, seed: int = 0, **settings: str) -> None:
        self.clock = SimClock()
        self.fs = fs or SimFileSystem(clock=self.clock)
        self.seed = seed
        self.env = sim_env(seed, fs=self.fs, clock=self.clock)
        self.lanes = InlineLanes()
        self.commit = self.commit_kind()
        self.away: Any = None if self.away_kind is None else self.away_kind()
        self.broker = self._services(settings)
        self._load()

    def _services(self, settings: dict[str, str]) -> SimpleNamespace:
        """As `broker.daemon.services` makes them, without threads and network."""
        broker = SimpleNamespace(
            env=self.env,
            clock=self.clock,
            rng=self.env.rng,
            fs=self.fs,
            config=ConfigStore(
                [settings_layer({"auto_create_topics_enable": "false", **settings})]
            ),
            lane=self.lanes,
            waiters=FetchWaiters(asyncio.get_running_loop()),
            fetch_sessions=FetchSessions(self.clock, self.env.rng),
            probes=BrokerProbes(self.clock.monotonic),
            trail=AuditTrail(self.clock.monotonic, self.clock.now_ms, cast("Any", self.lanes)),
            memory=MemoryAccount(1 << 32),
            answers=Answers(self.clock.monotonic),
            served=SERVED,
            feature_levels=LevelsAlone(),
            node_id=NODE_ID,
            endpoints=FixedEndpoints(),
            audit=None,
            loop=asyncio.get_running_loop(),
            software=ClientSoftware(),
        )
        ledger = SimpleNamespace(met=lambda log, offset, what: None)
        broker.damage = DamageMet(broker.lane, broker.probes, ledger, self.away)
        self._make_guards(broker)
        self._make_topics(broker)
        self._make_coordinators(broker)
        broker.client_telemetry = made_telemetry(
            self.env,
            broker.config,
            cast("Any", SimpleNamespace(wide_lane=lambda *_: self.lanes)),
            SimpleNamespace(on_lost=[], software=broker.software),
        )
        return broker

    def _make_guards(self, broker: SimpleNamespace) -> None:
        config = broker.config
        broker.disk_space = DiskSpace(self.fs, LOG_DIR, lambda: config.broker_config)
        broker.clock_watch = self.clock_watch(broker)
        guard = CrashGuard(self.env, LOG_DIR, lambda: config.broker_config)
        broker.intake = Intake(broker.disk_space, guard)

    def clock_watch(self, broker: SimpleNamespace) -> Any:
        """Watches the clock of this world."""
        return ClockWatch(self.clock, lambda: broker.config.broker_config)

    def _make_topics(self, broker: SimpleNamespace) -> None:
        config, lane = broker.config, broker.lane
        broker.logs = LogManager(self.env, LOG_DIR, config.topic_config)
        broker.topics = TopicCatalog(self.env, config, broker.logs, lane)
        broker.rules = TopicRules(broker.topics, config, broker.disk_space, self.env.rng, NODE_ID)
        forecast = RemovalForecast(broker.topics, config, self.clock, lane)
        broker.resources = ConfigResources(broker.topics, config, forecast, NODE_ID)
        broker.dirty_clients = DirtyClients(self.clock, broker.probes)
        broker.quarantine = Quarantine(broker.topics, broker.rules, broker.probes)

    def _make_coordinators(self, broker: SimpleNamespace) -> None:
        state = StateServices(
            broker.topics, broker.rules, broker.config, self.clock, broker.lane, broker.probes
        )
        broker.share_states = ShareCoordinator(state, broker.loop)
        broker.share_pruning = ShareStatePruning(broker.share_states)
        persister = StatesPersister(broker.share_states)
        broker.share_progress = LocalProgress(persister)
        broker.groups = GroupCoordinator(
            state,
            broker.clock_watch,
            machine=self.clock,
            rng=self.env.rng,
            loop=broker.loop,
            memory=broker.memory,
            persister=persister,
        )
        broker.share_reads = ShareReads(
            ShareServices(
                broker.topics, broker.share_states, broker.config, self.clock, broker.waiters,
                broker.rules, broker.groups.deadlines, broker.damage, broker.clock_watch,
                broker.memory, broker.probes,
            )
        )  # fmt: skip
        self.muted: list[tuple[int, float]] = []
        broker.users = Users(self.fs, broker.lane, self.env.rng)
        broker.tokens = Tokens(self.env, broker.lane, broker.config, broker.lane)
        broker.quotas = Quotas(
            self.fs,
            broker.lane,
            broker.config,
            monotonic=self.clock.monotonic,
            mute=lambda number, seconds: self.muted.append((number, seconds)),
            on_enforced=lambda enforced: None,
        )
        broker.authority = Authority(self.fs, broker.lane, broker.config, broker.trail)
        broker.producer_ids = ProducerIds(self.env, broker.lane, broker.logs.producer_ids)
        broker.markers = Markers(broker.topics, broker.waiters, self.clock, broker.groups)
        broker.transactions = TransactionCoordinator(
            state, broker.clock_watch, broker.producer_ids, LocalParticipants(broker.markers)
        )
        broker.admission = LocalAdmission(broker.transactions)

    def _load(self) -> None:
        broker = self.broker
        self.refused_writes = RefusedWrites(broker.probes)
        self.fs.make_dir(LOG_DIR)
        self.fs.sync_dir("/")
        shared = PartitionServices(
            broker.lane,
            self.commit,
            broker.waiters,
            broker.quarantine,
            Unpacking(broker.lane, self.clock.monotonic),
            broker.memory,
            self.refused_writes,
            away=self.away,
        )
        broker.share_starts = nowhere_else
        broker.other_nodes = None
        broker.redrive = made_redrive(broker, shared.kept)
        broker.logs.open_directory("test-cluster", NODE_ID)
        broker.topics.restore_settings()
        broker.quotas.load()
        broker.authority.load()
        broker.tokens.load()
        broker.logs.load()
        broker.topics.load(lambda log: Partition(log, shared))
        broker.producer_ids.load()
        self.commit.on_durable = self._became_durable
        broker.share_states.begin_load()
        broker.groups.begin_load()
        broker.transactions.begin_load()

    def _became_durable(self, log: Any) -> None:
        self.partition(log.topic, log.partition).writer.became_durable()

    def begin(self, request: Any, version: int) -> Any:
        """Result of the handler: a response, a Deferred, an awaitable, or None."""
        api = api_of(type(request))
        handler = import_module(f"broker.handlers.{api.module}")
        sent = bytearray(encode_bytes(request, version))
        received = decode(api.request, version, memoryview(sent))
        return handler.handle(received, self.context(api, version, handler.Services))

    async def call(self, request: Any, version: int) -> Any:
        """The response as a client of this version reads it."""
        answer = self.begin(request, version)
        return self.read(request, version, await self.settled(answer))

    async def settled(self, answer: Any) -> Any:
        if isinstance(answer, Deferred):
            return await asyncio.wait_for(wait_for(answer), 10)
        return await answer if isinstance(answer, Awaitable) else answer

    def read(self, request: Any, version: int, response: Any) -> Any:
        """Encodes and decodes a response; file slices become their bytes."""
        parts = [
            part.read() if hasattr(part, "read") else bytes(part)
            for part in encode(response, version)
        ]
        return decode(api_of(type(request)).response, version, memoryview(b"".join(parts)))

    def context(self, api: Api, version: int, services: Any) -> RequestContext[Any]:
        """With those of the world's services that the handler names."""
        ends = (1, "10.0.0.9", 50000, self.listener_name, "127.0.0.1", 9092)
        peer = Peer(*ends, self.principal, self.rights, self.by_token)
        self.last: RequestContext[Any] = RequestContext(
            RequestHeader(api.key, version, 1, "test", 0), peer, bound(services, self.broker)
        )
        return self.last

    async def make_topic(self, name: str = "t", partitions: int = 1, **configs: str) -> Any:
        """A topic, by CreateTopics; settings with underscores for dots."""
        topic = create_topics.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                create_topics.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        response = await self.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)
        assert response.topics[0].error_code == 0, response
        return response.topics[0]

    async def produce(
        self, *values: bytes, topic: str = "t", partition: int = 0, **how: Any
    ) -> Any:
        """One batch with one record per value; the partition's answer."""
        acks = how.pop("acks", 1)
        request = produce_request(
            batch(*values, **how), topic=topic, partition=partition, acks=acks
        )
        response = await self.call(request, 12)
        return response.responses[0].partition_responses[0]

    def partition(self, topic: str = "t", index: int = 0) -> Partition:
        found = self.broker.topics.image.partition(topic, index)
        assert isinstance(found, Partition)
        return found

    def restarted(self, fs: SimFileSystem | None = None) -> "World":
        """A broker on what a killed one leaves."""
        return World(fs or self.fs.after_kill())


def batch(*values: bytes, at: int = BATCH_TIME, step: int = 1, **how: Any) -> bytearray:
    """A batch whose records are `step` ms apart."""
    key = how.pop("key", None)
    rows = [(at + step * index, key, value) for index, value in enumerate(values)]
    return build_batch(rows, **how)


def produce_request(
    records: Any, *, topic: str = "t", partition: int = 0, acks: int = 1, **fields: Any
) -> produce.ProduceRequest:
    """A request for one partition."""
    data = produce.PartitionProduceData(index=partition, records=records)
    topics = [produce.TopicProduceData(name=topic, partition_data=[data])]
    return produce.ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics, **fields)


def altered(
    kind: int, name: str, changes: Iterable[tuple[str, int, str | None]]
) -> incremental_alter_configs.AlterConfigsResource:
    """A resource of that kind, to be changed by key, operation and value."""
    return incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(
                name=key, config_operation=operation, value=value
            )
            for key, operation, value in changes
        ],
    )


def settings_layer(settings: dict[str, str]) -> Layer:
    """Settings of a file, with underscores for dots."""
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return Layer(
        SettingSource.STATIC_BROKER,
        {name: read_setting(name, text, broker_name) for name, text in named.items()},
    )
