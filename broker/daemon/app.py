"""Composition root: what exists in a running broker, and in which order it starts and stops.

`Broker` is the bag of services that handlers reach through their `RequestContext`. It decides
nothing; each service has its own module.

Start: ports are bound, health answers, the directory is locked and recovered on a lane, clients are
let in. Stop: no new clients, what is in flight is answered, everything is forced to the disk, the
clean mark is written. Who fails to start leaves nothing running.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from resource import RLIMIT_NOFILE, getrlimit
from typing import TYPE_CHECKING, Any

from broker.daemon.periodic_tasks import schedule
from broker.daemon.routes import routes
from broker.daemon.shutdown import close_logs
from broker.fetching.damage import DamageMet
from broker.fetching.sessions import FetchSessions
from broker.groups.coordinator import GroupCoordinator
from broker.guards.admission import Intake
from broker.guards.clock_guard import ClockWatch
from broker.guards.crash_guard import CrashGuard
from broker.guards.disk_space import DiskSpace
from broker.http.port.health import Check
from broker.http.port.listener import HttpListener
from broker.http.port.open_pages import Pages
from broker.http.port.token import HttpToken
from broker.partitions.fetch_waiters import FetchWaiters
from broker.partitions.group_commit import GroupCommit, flush_bytes_of_this_machine
from broker.partitions.partition_services import PartitionServices
from broker.partitions.sync_thread import Durable
from broker.quotas.enforcement import Enforcement
from broker.quotas.service import Quotas
from broker.record_times.audit_stream import AuditStream
from broker.record_times.offenders import DirtyClients
from broker.record_times.quarantine import Quarantine
from broker.runtime.admin_trail import AdminTrail
from broker.runtime.answers import MOST_BYTES, Answers
from broker.runtime.callbacks import failed
from broker.runtime.connection_limits import (
    ALL_QUEUED_BYTES,
    ConnectionLimits,
    connections_within,
    or_unlimited,
)
from broker.runtime.endpoint import Endpoint
from broker.runtime.event_log import event
from broker.runtime.lanes import DiskLanes
from broker.runtime.memory_account import MemoryAccount, MemoryClass
from broker.runtime.memory_limit import usable_memory
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.test_clock import HeldClock
from broker.runtime.unpacking import Unpacking
from broker.server.admin_actions import watched
from broker.server.dispatcher import Dispatcher
from broker.server.networks import is_outside
from broker.server.page_cache import PageCache
from broker.server.server import Server
from broker.state.loading import StateLoading
from broker.tasks.cleaner import Cleaner
from broker.tasks.disk_watch import DiskWatch
from broker.tasks.retention import Retention
from broker.tasks.rolling import Rolling
from broker.tasks.runner import TaskRunner
from broker.tasks.scrubber import Scrubber
from broker.tasks.test_clock_control import HeldTime
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.producer_ids import ProducerIds
from config.endpoints import Listener
from config.errors import ConfigError
from config.store import ConfigStore
from protocol.api import Api
from storage.directory.log_manager import LogManager
from storage.env import Clock, Env
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.http.router import Router
    from broker.partitions.partition import Partition
    from storage.log.log import Log

DRAIN_SECONDS = 5.0


class Broker:
    """The services of one broker. Attributes are set once, at start."""

    env: Env
    clock: Clock
    clock_watch: ClockWatch
    config: ConfigStore
    node_id: int
    cluster_id: str
    log_dir: str
    catalog: TopicCatalog
    log_manager: LogManager
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    waiters: FetchWaiters
    lanes: DiskLanes
    commit: GroupCommit
    memory: MemoryAccount
    answers: Answers
    probes: BrokerProbes
    dirty_clients: DirtyClients
    trail: AdminTrail
    audit: AuditStream | None
    """None unless `horolog.audit.topic` asks for it."""
    quarantine: Quarantine
    quotas: Quotas
    disk_space: DiskSpace
    crash_guard: CrashGuard
    intake: Intake
    server: Server
    retention: Retention
    rolling: Rolling
    cleaner: Cleaner
    scrubber: Scrubber
    damage: DamageMet
    held_time: HeldTime | None
    """What moves the clock, with `--test-clock`."""
    served: tuple[Api, ...]
    ready: bool

    def __init__(
        self,
        env: Env,
        config: ConfigStore,
        loop: asyncio.AbstractEventLoop,
        *,
        held_clock: HeldClock | None = None,
    ) -> None:
        """Makes everything that needs neither the directory nor the network.

        With `held_clock` (`serve --test-clock`) that is the broker's clock in place of `env`'s.
        """
        settings = config.broker_config
        machine = env.clock
        if held_clock is not None:
            machine, env = held_clock.machine, replace(env, clock=held_clock)
        self.env = env
        self.clock = env.clock
        self.clock_watch = ClockWatch(env.clock, lambda: config.broker_config)
        self.loop = loop
        self.config = config
        self.log_dir = settings.log_dir
        self.node_id = settings.node_id
        self.cluster_id = settings.cluster_id
        self.ready = False
        self.not_ready_because = "starting"
        self.memory = MemoryAccount(usable_memory(env.fs, settings.horolog_memory_max_bytes))
        self.probes = BrokerProbes(machine.monotonic)
        room = min(MOST_BYTES, self.memory.share(MemoryClass.ANSWERS))
        self.answers = Answers(machine.monotonic, room)
        self.dirty_clients = DirtyClients(env.clock, self.probes)
        audit = settings.horolog_audit_topic
        self.audit = AuditStream(self, audit) if audit else None
        self.quarantine = Quarantine(self)
        self.disk_space = DiskSpace(env.fs, self.log_dir, lambda: config.broker_config)
        self.crash_guard = CrashGuard(env, self.log_dir, lambda: config.broker_config)
        self.intake = Intake(self.disk_space, self.crash_guard)
        self.lanes = DiskLanes(loop)
        self.waiters = FetchWaiters(loop)
        self.fetch_sessions = FetchSessions(
            env.clock,
            env.rng,
            settings.max_incremental_fetch_session_cache_slots,
            max_bytes=self.memory.share(MemoryClass.SESSIONS),
        )
        self.commit = self._make_commit(machine.monotonic)
        served = routes()
        self.served = tuple(route.api for route in served.values())
        self.trail = AdminTrail(self.probes.monotonic)
        self._dispatcher = Dispatcher(watched(served, self.trail), self, self.probes, loop)
        self.server = self._make_server()
        self.quotas = Quotas(self, self.server.mute, self._measure)
        self.tasks = TaskRunner(loop, env.clock, self.probes)
        self.held_time = None
        if held_clock is not None:
            self.held_time = HeldTime(held_clock, self.tasks, self.waiters)
        self.groups = GroupCoordinator(self, machine)
        self.transactions = TransactionCoordinator(self)
        self.retention, self.rolling = Retention(self), Rolling(self)
        self.cleaner = Cleaner(self)
        self.disk_watch = DiskWatch(self)
        self.scrubber = Scrubber(self)
        self.damage = DamageMet(self)
        self.http_token = HttpToken(env.fs, settings.horolog_http_token_file)
        self._door: HttpListener | None = None
        self._watch_memory()

    def _watch_memory(self) -> None:
        """What is counted where it is held; the rest is charged."""
        memory, sessions = self.memory, self.fetch_sessions
        memory.watch(MemoryClass.ANSWERS, lambda: self.answers.under_way_bytes)
        memory.watch(MemoryClass.SESSIONS, lambda: sessions.size_bytes)
        memory.watch_refusals(MemoryClass.SESSIONS, lambda: sessions.refusals)
        memory.watch(MemoryClass.CLEANER, lambda: self.cleaner.memory_bytes)

    def _make_commit(self, monotonic: Callable[[], float]) -> GroupCommit:
        settings = self.config.broker_config
        return GroupCommit(
            self.loop,
            monotonic,
            self.probes,
            interval_seconds=settings.horolog_flush_interval_ms / 1000,
            interval_bytes=settings.horolog_flush_interval_bytes,
            flush_bytes=flush_bytes_of_this_machine(),
            on_durable=self._log_durable,
            on_failed=self._log_failed,
        )

    def _make_server(self) -> Server:
        settings = self.config.broker_config
        server = Server(
            self.loop,
            ConnectionLimits(
                max_by_open_files=connections_within(getrlimit(RLIMIT_NOFILE)[0]),
                max_frame_bytes=settings.socket_request_max_bytes,
                max_queued_bytes=settings.horolog_queued_max_response_bytes,
                all_queued_bytes=min(ALL_QUEUED_BYTES, self.memory.share(MemoryClass.ANSWERS)),
                all_received_bytes=min(
                    or_unlimited(settings.queued_max_request_bytes),
                    self.memory.share(MemoryClass.REQUESTS),
                ),
                idle_seconds=settings.connections_max_idle_ms / 1000,
            ),
            self.probes,
            lambda: self.config.broker_config,
            self._dispatcher.dispatch,
            page_cache=PageCache(self.lanes, self.log_dir),
        )
        self.memory.watch(MemoryClass.REQUESTS, lambda: server.pool.used_bytes)
        self.memory.watch(MemoryClass.ANSWERS, lambda: server.queued_bytes)
        return server

    # -- what handlers ask

    def advertised(self, context: RequestContext[Any]) -> Endpoint:
        """The address of this broker that the client of `context` can reach."""
        peer = context.peer
        listener = self.server.listeners[peer.listener_name]
        outside = listener.published is not None and is_outside(self.env.fs, peer.client_host)
        return listener.endpoint_for(peer.local_host, peer.local_port, outside=outside)

    @property
    def bootstrap(self) -> Endpoint:
        """What a client on this machine types."""
        return next(iter(self.server.listeners.values())).dialled

    @property
    def http(self) -> Endpoint | None:
        """Where health and metrics are."""
        return self.server.http_address

    # -- start and stop

    async def start(self) -> None:
        """Returns when clients are served.

        Raises ListenError, or StorageError when the data directory cannot be used.
        """
        try:
            self._bind()
            self.not_ready_because = "recovering the logs"
            await self.lanes.run(self.log_dir, self._load)
            self.clock_watch.started(self.log_manager.last_write_ms)
            if not self.clock_watch.is_held:
                expiration_ms = self.config.broker_config.producer_id_expiration_ms
                self.log_manager.expire_restored_producers(expiration_ms)
            self.groups.begin_load()
            self.transactions.begin_load()
            await self.server.accept(self.config.broker_config.socket_listen_backlog_size)
        except BaseException:
            await self._stop_network()
            await self._stop_threads()
            raise
        schedule(self)
        self.tasks.start()
        self.disk_watch.start()
        self.scrubber.start()
        self.ready = True
        self._loading = self.loop.create_task(self._load_coordinators())

    async def stop(self) -> bool:
        """A graceful stop; True when everything is on the disk and the directory marked clean."""
        self.ready = False
        self.not_ready_because = "stopping"
        self.server.stop_accepting()
        self.waiters.complete_all()
        self._loading.cancel()
        self.groups.stop()
        await self.server.drain(DRAIN_SECONDS)
        self.cleaner.stop()
        await self.disk_watch.stop()
        await self.scrubber.stop()
        await self.tasks.stop()
        if self.audit is not None:
            await self.audit.flush()
        self.trail.flush()
        await self.transactions.stop()
        await self.commit.close()
        await close_logs(self.loop, self.log_manager)
        clean = await self.lanes.run(self.log_dir, self._close_logs)
        await self._stop_network()
        await self._stop_threads()
        return clean

    async def _stop_network(self) -> None:
        self.server.stop_accepting()
        if self._door is not None:
            await self._door.close()

    async def _stop_threads(self) -> None:
        await self.commit.close()
        await self.lanes.close()

    def _bind(self) -> None:
        settings = self.config.broker_config
        advertised = _by_name(settings.advertised_listeners)
        published = _by_name(settings.horolog_published_listeners)
        for each in settings.client_listeners:
            name = each.name
            self.server.bind(name, each.host, each.port, advertised.get(name), published.get(name))
        http = settings.horolog_http_listener
        if http is not None:
            self.http_token.value = self.http_token.read()
            listening, self.server.http_address = self.server.bind_http(http.host, http.port)
            self._door = HttpListener(self.loop, listening, partial(self._front, http.host))
            self._door.open()

    def _front(self, host: str) -> "Router":
        """On a thread, when the first one knocks."""
        from broker.http.port.access import AccessControl
        from broker.http.router import Router

        names = self.config.broker_config.horolog_http_hosts.replace(",", " ").split()
        is_test = self.held_time is not None
        gate = AccessControl(host, names, lambda: self.http_token.value, is_test=is_test)
        pages = Pages(self._live_checks(), self._ready_checks())
        return Router(self, pages, self._scraped, gate)

    def _load(self) -> None:
        """On a lane: everything that reads the data directory before clients may come."""
        manager = self.log_manager = LogManager(self.env, self.log_dir, self.config.topic_config)
        unpacking = Unpacking(self.lanes, self.log_dir, self.probes.monotonic)
        self.memory.watch(MemoryClass.LANES, lambda: unpacking.under_way_bytes)
        self.memory.watch(MemoryClass.PRODUCERS, lambda: manager.producers_bytes)
        serving = PartitionServices(
            self.log_dir,
            self.lanes,
            self.commit,
            self.waiters,
            self.quarantine,
            unpacking,
            self.memory,
        )
        self.catalog = TopicCatalog(self.env, self.config, manager, serving)
        manager.open_directory(self.cluster_id, self.node_id)
        self.disk_space.ballast = manager.ballast
        self.disk_space.look()
        self.crash_guard.started(was_clean=manager.was_clean)
        self.intake.look()
        self.cluster_id = manager.cluster_id
        try:
            self._load_logs(manager)
        except (StorageError, ConfigError):
            self.crash_guard.refused()
            manager.release()
            raise

    def _load_logs(self, manager: LogManager) -> None:
        self.catalog.restore_settings()
        self.quotas.load()
        manager.load()
        if manager.upgraded_segments:
            event("old_segments_written_anew", segments=manager.upgraded_segments, format=2)
        self.catalog.load()
        self.producer_ids = ProducerIds(self.env, self.log_dir, self.lanes, manager.producer_ids)
        self.producer_ids.load()

    async def _load_coordinators(self) -> None:
        """Groups first: offsets that wait for their transaction's end are known when it ends."""
        for name, load in (("groups", self.groups.load), ("transactions", self.transactions.load)):
            try:
                await load()
            except Exception as error:  # noqa: BLE001 - the other coordinator is served
                failed(f"load_{name}", error)

    def _measure(self, enforced: Enforcement | None) -> None:
        """From now on requests are measured against quotas, or no longer."""
        self._dispatcher.quotas = enforced

    def _close_logs(self) -> bool:
        self.crash_guard.stopped()
        return self.log_manager.close()

    # -- what goes on meanwhile

    def _log_durable(self, log: Durable) -> None:
        """An fsync advanced this log: its partition wakes the fetches that can now see more."""
        partition = self._partition_of(log)
        if partition is not None:
            partition.became_durable()

    def _log_failed(self, log: Durable, error: BaseException) -> None:
        """An fsync of this log failed: its partition takes no more writes."""
        event("fsync_failed", "error", log=log, error=error)
        partition = self._partition_of(log)
        if partition is not None:
            partition.went_offline()

    def _partition_of(self, durable: Durable) -> "Partition | None":
        log: Log = durable  # type: ignore[assignment]
        return self.catalog.image.partition(log.topic, log.partition)

    def _live_checks(self) -> list[Check]:
        return [Check("ping", lambda: None)]

    def _ready_checks(self) -> list[Check]:
        return [
            Check("serving", lambda: None if self.ready else self.not_ready_because),
            Check("storage", self._storage_fault),
            Check("disk", lambda: self.disk_space.shortage),
            Check("starts", lambda: self.crash_guard.fault),
            Check("connections", self.server.why_full),
            _loading_check("groups", self.groups.loading),
            _loading_check("transactions", self.transactions.loading),
        ]

    def _storage_fault(self) -> str | None:
        if self.probes.fsync_errors:
            return f"{self.probes.fsync_errors} fsync failed; see the log for which partition"
        return None

    def _scraped(self, path: str) -> tuple[str, bytes]:
        """On a thread."""
        from broker.metrics.scrape import Scrape

        return Scrape(self).text(path)


def _loading_check(name: str, loading: StateLoading[Any]) -> Check:
    """What a coordinator could not read back."""
    return Check(name, lambda: loading.fault, lambda: loading.note)


def _by_name(listeners: Iterable[Listener]) -> dict[str, Endpoint]:
    return {each.name: Endpoint(each.host, each.port) for each in listeners}
