"""The services of a running broker, made in the order in which they need each other.

Each gets those that it uses by its constructor; nothing but the daemon sees them all. Nothing here
touches the directory or the network before `Broker.start`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from resource import RLIMIT_NOFILE, getrlimit
from typing import TYPE_CHECKING
from uuid import UUID

from broker.daemon.queues import made_other_nodes, made_redrive
from broker.daemon.routes import routes, served
from broker.daemon.share import made_share_reads, made_share_standing
from broker.daemon.telemetry import made_telemetry, serves
from broker.daemon.transactions import TransactionParts, made_transactions
from broker.fetching.damage import DamageMet
from broker.fetching.sessions import FetchSessions
from broker.groups.coordinator import GroupCoordinator
from broker.guards.admission import Intake
from broker.guards.clock_guard import ClockWatch
from broker.guards.crash_guard import CrashGuard
from broker.guards.disk_space import DiskSpace
from broker.http.port.token import HttpTokens
from broker.partitions.fetch_waiters import FetchWaiters
from broker.partitions.group_commit import GroupCommit, flush_bytes_of_this_machine
from broker.partitions.partition import Partition
from broker.partitions.partition_services import PartitionServices
from broker.partitions.refused_writes import RefusedWrites
from broker.partitions.sync_thread import Durable
from broker.quotas.disk_brake import DiskBrake
from broker.quotas.enforcement import Enforcement
from broker.quotas.service import DOCUMENT as QUOTAS
from broker.quotas.service import Quotas
from broker.record_times.audit_stream import AuditStream
from broker.record_times.offenders import DirtyClients
from broker.record_times.own_topic import OwnTopic
from broker.record_times.quarantine import Quarantine
from broker.record_times.security_mirror import SecurityMirror
from broker.runtime.answers import MOST_BYTES, Answers
from broker.runtime.connection_limits import (
    ALL_QUEUED_BYTES,
    ConnectionLimits,
    connections_within,
    or_unlimited,
)
from broker.runtime.endpoint import Nodes
from broker.runtime.event_log import event
from broker.runtime.lanes import DiskLanes
from broker.runtime.memory_account import MemoryAccount, MemoryClass
from broker.runtime.memory_limit import usable_memory
from broker.runtime.principals import ANONYMOUS, USER, Principal
from broker.runtime.probes import BrokerProbes
from broker.runtime.readiness import Readiness
from broker.runtime.request_context import Peer
from broker.runtime.test_clock import HeldClock
from broker.runtime.unpacking import Unpacking
from broker.security.audit.lines import Who
from broker.security.audit.trail import AuditTrail
from broker.security.authority import DOCUMENT as ACLS
from broker.security.authority import Authority
from broker.security.credentials import BY_SASL_NAME, CredentialKey
from broker.security.delegation.tokens import DOCUMENT as TOKENS
from broker.security.delegation.tokens import Tokens
from broker.security.sasl.failures import FailureDelays
from broker.security.sasl.key_source import KeySource
from broker.security.sasl.oauthbearer import Judge
from broker.security.sasl.plain import Passwords
from broker.security.users import DOCUMENT as USERS
from broker.security.users import Users
from broker.server.admin_actions import watched
from broker.server.dispatcher import Dispatcher
from broker.server.doors import Lobby
from broker.server.endpoints import AdvertisedEndpoints
from broker.server.features import LevelsAlone
from broker.server.page_cache import PageCache
from broker.server.server import Server
from broker.share.share_reads import ShareServices
from broker.state.services import StateServices
from broker.tasks.cleaner import Cleaner
from broker.tasks.disk_watch import DiskWatch
from broker.tasks.retention import Retention
from broker.tasks.rolling import Rolling
from broker.tasks.runner import TaskRunner
from broker.tasks.scrubber import Scrubber
from broker.tasks.test_clock_control import HeldTime
from broker.topics.config_resources import ConfigResources
from broker.topics.creation import TopicRules
from broker.topics.removal_warning import RemovalForecast
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.markers import Markers
from broker.transactions.producer_ids import ProducerIds
from config.store import ConfigStore
from storage.directory.log_manager import LogManager
from storage.env import Env

if TYPE_CHECKING:
    from broker.daemon.fleet import Fleet
    from broker.daemon.tier import TierTasks
    from broker.tier.standing import TierStanding
    from broker.tier.sweep import Sweep
    from broker.tier.tier import Tier
    from broker.tier.tiering import Tiering
    from storage.log.log import Log


class Services:
    """Attributes are set once, here. Used from the event loop."""

    held_time: HeldTime | None
    """Moves the clock, with `--test-clock`."""
    audit: AuditStream | None
    """None unless `horolog.audit.topic` asks for it."""
    security_mirror: SecurityMirror | None
    """None unless `horolog.security.audit.topic` asks for it."""
    fleet: "Fleet | None"
    """None unless `horolog.fleet.url` asks for it."""
    tier: "Tier | None"
    """None unless `remote.log.storage.system.enable` asks for it."""
    tiering: "Tiering | None"
    sweep: "Sweep | None"
    tier_standing: "TierStanding | None"
    key_sources: dict[str, KeySource]
    """Keys of OAUTHBEARER, by the first listener that has them."""
    judges: Mapping[str, Judge]
    """The judge of tokens of each listener with OAUTHBEARER; made when the ports are bound."""

    def __init__(
        self,
        env: Env,
        config: ConfigStore,
        loop: asyncio.AbstractEventLoop,
        *,
        held_clock: HeldClock | None = None,
    ) -> None:
        """With `held_clock` (`serve --test-clock`) that is the broker's clock, not `env`'s."""
        self._machine = env.clock
        if held_clock is not None:
            env = replace(env, clock=held_clock)
        self.env, self.clock, self.rng, self.fs = env, env.clock, env.rng, env.fs
        self.loop = loop
        self.config = config
        self.node_id = config.broker_config.node_id
        self.log_dir = config.broker_config.log_dir
        self.readiness = Readiness()
        self.stopping = asyncio.Event()
        """Set when the process shall stop."""
        self._make_runtime()
        self._make_guards()
        self._make_topics()
        self._make_partitions()
        self._make_server()
        self._make_coordinators()
        self._make_tasks(held_clock)
        self._make_share_reads()
        self._make_routes()

    def _make_runtime(self) -> None:
        settings, monotonic = self.config.broker_config, self._machine.monotonic
        self.memory = MemoryAccount(usable_memory(self.fs, settings.horolog_memory_max_bytes))
        self.probes = BrokerProbes(monotonic)
        self.answers = Answers(monotonic, min(MOST_BYTES, self.memory.share(MemoryClass.ANSWERS)))
        self.memory.watch(MemoryClass.ANSWERS, lambda: self.answers.under_way_bytes)
        self.lanes = DiskLanes(self.loop)
        audit_lane, self.lane = map(self.lanes.lane, ("security-audit", self.log_dir))
        self.trail = AuditTrail(monotonic, self._machine.now_ms, audit_lane)
        self.waiters = FetchWaiters(self.loop)
        self.http_tokens = HttpTokens(self.fs, settings.horolog_http_token_file)

    def _make_guards(self) -> None:
        config = self.config
        self.clock_watch = ClockWatch(self.clock, lambda: config.broker_config)
        self.disk_space = DiskSpace(self.fs, self.log_dir, lambda: config.broker_config)
        self.authority = Authority(self.fs, self.lane, config, self.trail)
        self.crash_guard = CrashGuard(self.env, self.log_dir, lambda: config.broker_config)
        self.intake = Intake(self.disk_space, self.crash_guard)

    def _make_topics(self) -> None:
        config = self.config
        self.tier = None
        if config.broker_config.remote_log_storage_system_enable:
            from broker.tier.tier import make_tier

            self.tier = make_tier(self.env, config, self.lanes)
        remote = None if self.tier is None else self.tier.remote
        self.logs = LogManager(self.env, self.log_dir, config.topic_config, remote)
        self.memory.watch(MemoryClass.PRODUCERS, lambda: self.logs.producers_bytes)
        self.topics = TopicCatalog(self.env, config, self.logs, self.lane)
        self.rules = TopicRules(self.topics, config, self.disk_space, self.rng, self.node_id)
        self.forecast = RemovalForecast(self.topics, config, self.clock, self.lane)
        self.resources = ConfigResources(self.topics, config, self.forecast, self.node_id)

    def _make_partitions(self) -> None:
        topics, rules, probes = self.topics, self.rules, self.probes
        settings = self.config.broker_config
        audit, security = (
            OwnTopic(name, topics, rules, self.clock, probes) if name else None
            for name in (settings.horolog_audit_topic, settings.horolog_security_audit_topic)
        )
        self.audit = None if audit is None else AuditStream(audit, self.clock)
        self.security_mirror = None if security is None else SecurityMirror(security)
        if self.security_mirror is not None:
            self.trail.mirror = self.security_mirror.take
        self.dirty_clients = DirtyClients(self.clock, probes)
        self.quarantine = Quarantine(topics, rules, probes)
        self.commit = self._made_commit()
        self.refused_writes = RefusedWrites(probes)
        self.fleet = None
        if settings.horolog_fleet_url is not None:
            self.fleet = self._made_fleet()
        unpacking = Unpacking(self.lane, self._machine.monotonic)
        self.memory.watch(MemoryClass.LANES, lambda: unpacking.under_way_bytes)
        self._shared = PartitionServices(
            self.lane,
            self.commit if self.fleet is None else self.fleet.commit,
            self.waiters,
            self.quarantine,
            unpacking,
            self.memory,
            self.refused_writes,
            away=None if self.tier is None else self.tier.reads,
        )

    def _made_commit(self) -> GroupCommit:
        settings = self.config.broker_config
        return GroupCommit(
            self.loop,
            self._machine.monotonic,
            self.probes,
            interval_seconds=settings.horolog_flush_interval_ms / 1000,
            interval_bytes=settings.horolog_flush_interval_bytes,
            flush_bytes=flush_bytes_of_this_machine(),
            on_durable=self._log_durable,
            on_failed=self._log_failed,
        )

    def _made_fleet(self) -> "Fleet":
        from broker.daemon.fleet import OBJECT_THREADS, OBJECTS, PEER_THREADS, PEERS, Fleet
        from broker.daemon.fleet_parts import FleetParts

        return Fleet(
            FleetParts(
                self.config, self.topics, self.logs, self.lane,
                self.lanes.wide_lane(OBJECTS, OBJECT_THREADS), self.commit, self.rng,
                self._machine.monotonic, self._nodes_changed, self._topics_deleted, self.env,
                self.tier, self.lanes.wide_lane(PEERS, PEER_THREADS), self.stopping.set,
            ),
            self.loop,
        )  # fmt: skip

    def _make_server(self) -> None:
        settings, memory = self.config.broker_config, self.memory
        limits = ConnectionLimits(
            max_by_open_files=connections_within(getrlimit(RLIMIT_NOFILE)[0]),
            max_frame_bytes=settings.socket_request_max_bytes,
            max_queued_bytes=settings.horolog_queued_max_response_bytes,
            all_queued_bytes=min(ALL_QUEUED_BYTES, memory.share(MemoryClass.ANSWERS)),
            all_received_bytes=min(
                or_unlimited(settings.queued_max_request_bytes),
                memory.share(MemoryClass.REQUESTS),
            ),
            idle_seconds=settings.connections_max_idle_ms / 1000,
        )
        server = self.server = Server(
            self.loop,
            limits,
            self.probes,
            lambda: self.config.broker_config,
            page_cache=PageCache(self.lane),
            rights_of=self.authority.rights_of,
        )
        memory.watch(MemoryClass.REQUESTS, lambda: server.pool.used_bytes)
        memory.watch(MemoryClass.ANSWERS, lambda: server.queued_bytes)
        self.software = server.software
        self.endpoints = AdvertisedEndpoints(server.listeners, self.fs, self.software)
        delay_ms = settings.connection_failed_authentication_delay_ms
        self.lobby = Lobby(
            FailureDelays(self.probes.monotonic, delay_ms / 1000),
            self.probes,
            self.loop.call_later,
            lambda: self.config.broker_config.max_connections,
            self.clock.now_ms,
        )
        self.key_sources, self.judges = {}, {}
        self.users = Users(self.fs, self.lane, self.rng)
        self.users.on_removed = self.lobby.removed
        lane = self.lanes.patient_lane("passwords")
        self.passwords = Passwords(self.users, lane, self.rng, self.probes.monotonic)
        self.lobby.on_failed = self._login_failed
        self.lobby.on_expired = self._session_expired
        self.tokens = Tokens(self.env, self.lane, self.config, lane)
        self.tokens.on_removed, self.tokens.on_ending = self.lobby.removed, self.lobby.ends
        self.quotas = Quotas(
            self.fs,
            self.lane,
            self.config,
            monotonic=self.probes.monotonic,
            mute=server.mute,
            on_enforced=self._measure,
        )
        server.arrival_rest_seconds = self.quotas.arrival_rest_seconds
        self.disk_brake = DiskBrake(
            lambda: self.disk_space.bytes_per_second,
            monotonic=self.probes.monotonic,
            mute=server.mute,
            throttled=self.quotas.throttled,
        )

    def _make_coordinators(self) -> None:
        state = StateServices(
            self.topics, self.rules, self.config, self.clock, self.lane, self.probes
        )
        share = made_share_standing(state, self.fleet, self.loop, self._machine.monotonic)
        self.share_states, self.share_progress = share.coordinator, share.progress
        self.share_standing, self.share_starts = share, share.starts_of
        self.groups = GroupCoordinator(
            state,
            self.clock_watch,
            machine=self._machine,
            rng=self.rng,
            loop=self.loop,
            memory=self.memory,
            persister=share.persister,
        )
        if self.fleet is not None:
            self.fleet.shares(QUOTAS, self.quotas)
            self.fleet.shares(USERS, self.users)
            self.fleet.shares(ACLS, self.authority)
            self.fleet.shares(TOKENS, self.tokens)
        self.producer_ids = ProducerIds(self.env, self.lane, self.logs.producer_ids)
        self.markers = Markers(self.topics, self.waiters, self.clock, self.groups)
        parts = TransactionParts(
            state, self.clock_watch, self.producer_ids, self.groups, self.markers
        )
        self.transactions, self.admission = made_transactions(parts, self.fleet)
        settings, memory = self.config.broker_config, self.memory
        sessions = self.fetch_sessions = FetchSessions(
            self.clock,
            self.rng,
            settings.max_incremental_fetch_session_cache_slots,
            max_bytes=memory.share(MemoryClass.SESSIONS),
        )
        memory.watch(MemoryClass.SESSIONS, lambda: sessions.size_bytes)
        memory.watch_refusals(MemoryClass.SESSIONS, lambda: sessions.refusals)

    def _make_share_reads(self) -> None:
        services = ShareServices(
            self.topics, self.share_standing.states, self.config, self.clock, self.waiters,
            self.rules, self.groups.deadlines, self.damage, self.clock_watch, self.memory,
            self.probes,
        )  # fmt: skip
        self.share_reads = made_share_reads(services, self.server, self.fleet)
        self.other_nodes = made_other_nodes(self.fleet, self.lanes, self.loop)
        self.redrive = made_redrive(self, self._shared.kept)
        self.client_telemetry = made_telemetry(self.env, self.config, self.lanes, self.server)

    def _make_tasks(self, held_clock: HeldClock | None) -> None:
        topics, logs, lane = self.topics, self.logs, self.lane
        self.tasks = TaskRunner(self.loop, self.clock, self.probes)
        self.held_time = None
        if held_clock is not None:
            self.held_time = HeldTime(held_clock, self.tasks, self.waiters)
        self.retention = Retention(topics, logs, self.clock, self.clock_watch, lane)
        self.rolling = Rolling(topics, self.clock, self.clock_watch, lane, self._sync_soon)
        tier = self._make_tier_tasks()
        self.cleaner = Cleaner(
            topics,
            logs,
            self.env,
            self.config,
            self.loop,
            has_to_wait=lambda: self.clock_watch.look() or self.crash_guard.is_holding,
            memory_bytes=lambda: self.memory.share(MemoryClass.CLEANER),
            sync=self._sync_soon,
            remote=self.tier_standing,
        )
        self.memory.watch(MemoryClass.CLEANER, lambda: self.cleaner.memory_bytes)
        self.disk_watch = DiskWatch(
            self.loop,
            lane,
            disk_space=self.disk_space,
            intake=self.intake,
            tasks=self.tasks,
            probes=self.probes,
            looked=None if tier is None else tier.room.looked,
        )
        self.scrubber = Scrubber(
            logs, self.env, self.config, lane=lane, loop=self.loop, probes=self.probes
        )
        away = None if self.tier is None else self.tier.reads
        self.damage = DamageMet(lane, self.probes, self.scrubber, away)

    def _make_tier_tasks(self) -> "TierTasks | None":
        self.tier_standing = self.tiering = self.sweep = None
        if self.tier is None:
            return None
        from broker.daemon.tier import TierCalls, made_tier_tasks

        calls = TierCalls(self._machine.monotonic, self._sync_soon, self._slow_producers)
        made = made_tier_tasks(self, calls)
        self.tier_standing, self.tiering, self.sweep = made.standing, made.tiering, made.sweep
        return made

    def _make_routes(self) -> None:
        found = served(serves(self.config, self.fleet))
        self.served = tuple(each.api for each in found)
        self.feature_levels = LevelsAlone() if self.fleet is None else self.fleet.levels
        administered = watched(routes(found, self), self.trail)
        dispatcher = self.dispatcher = Dispatcher(administered, self.probes, self.loop)
        dispatcher.most_waiting_bytes = self.memory.share(MemoryClass.REQUESTS)
        self.memory.watch(MemoryClass.REQUESTS, lambda: dispatcher.waiting_bytes)

    # -- calls between services

    def make_partition(self, log: "Log") -> Partition:
        """Puts a log in service; in a fleet it is led by nobody yet."""
        partition = Partition(log, self._shared)
        return partition if self.fleet is None else self.fleet.stranger(partition)

    def _nodes_changed(self, nodes: Nodes, gone: Nodes) -> None:
        self.endpoints.others_are(nodes, gone, besides=self.node_id)
        self.rules.living_nodes = lambda: len(nodes)

    def _topics_deleted(self, names: Sequence[str], ids: frozenset[UUID]) -> None:
        """Topics of the fleet went, on whatever node that was asked for."""
        for name in names:
            self.probes.topic_deleted(name)
            self.dirty_clients.topic_deleted(name)
        self.groups.topics_deleted(names)
        self.share_states.topics_deleted(ids)
        self.share_reads.topics_deleted(ids)

    def _login_failed(self, peer: Peer, way: str, claimed: str, detail: str) -> None:
        """For the audit: the name of a user that exists, since others may be typed passwords."""
        rows = self.users.rows
        is_user = any(CredentialKey(claimed, each) in rows for each in BY_SASL_NAME.values())
        user = str(Principal(USER, claimed)) if is_user else str(ANONYMOUS)
        who = Who("", peer.client_host, peer.listener_name, user)
        self.trail.authentication_failed(who, way, detail)

    def _session_expired(self, peer: Peer) -> None:
        who = Who("", peer.client_host, peer.listener_name, str(peer.principal))
        self.trail.session_expired(who)

    def _sync_soon(self, log: "Log") -> None:
        self.commit.written(log, 0)

    def _measure(self, enforced: Enforcement | None) -> None:
        """Requests are measured against quotas from now on, or no longer."""
        self.disk_brake.quotas = enforced
        if self.dispatcher.quotas is not self.disk_brake:
            self.dispatcher.quotas = enforced

    def _slow_producers(self, is_tight: bool) -> None:
        """While space is tight, producers get the rate that the disk has room for."""
        brake = self.disk_brake
        self.dispatcher.quotas = brake if is_tight else brake.quotas

    def _log_durable(self, log: Durable) -> None:
        """An fsync advanced this log: its partition wakes the fetches that can now see more."""
        partition = self._partition_of(log)
        if partition is not None:
            partition.writer.became_durable()

    def _log_failed(self, log: Durable, error: BaseException) -> None:
        """An fsync of this log failed: its partition takes no more writes."""
        event("fsync_failed", "error", log=log, error=error)
        partition = self._partition_of(log)
        if partition is not None:
            partition.writer.went_offline()

    def _partition_of(self, durable: Durable) -> Partition | None:
        log: Log = durable  # type: ignore[assignment]
        return self.topics.image.partition(log.topic, log.partition)
