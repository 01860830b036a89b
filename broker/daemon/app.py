"""The broker: in which order its services start and stop.

Start: ports are bound, health answers, the directory is locked and recovered on a lane, clients are
let in. Stop: no new clients, what is in flight is answered, everything is forced to the disk, the
clean mark is written. Who fails to start leaves nothing running.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from broker.daemon.health_checks import live_checks, ready_checks
from broker.daemon.loading import let_go, load_directory
from broker.daemon.oauth_listeners import check_library, judges_of, read_first_keys
from broker.daemon.periodic_tasks import schedule
from broker.daemon.sasl_listeners import check_somebody_may_enter, open_doors
from broker.daemon.services import Services
from broker.daemon.shutdown import close_logs
from broker.daemon.telemetry import check_telemetry_library
from broker.http.port.listener import HttpListener
from broker.http.port.open_pages import Pages
from broker.runtime.callbacks import failed
from broker.runtime.endpoint import Endpoint
from broker.runtime.test_clock import HeldClock
from broker.security.audit.offline import forget, left
from broker.transactions.producer_ids import BLOCK_SIZE
from config.endpoints import Listener
from config.errors import ConfigError
from config.security.protocols import HTTP
from config.store import ConfigStore
from storage.env import Env
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.http.router import Router

DRAIN_SECONDS = 5.0
T = TypeVar("T")


class StartGivenUp(Exception):  # noqa: N818 - what was asked for
    """A stop was asked for while the start waited for the fleet."""


class Broker:
    """One broker in this process."""

    def __init__(
        self,
        env: Env,
        config: ConfigStore,
        loop: asyncio.AbstractEventLoop,
        *,
        held_clock: HeldClock | None = None,
    ) -> None:
        """Touches neither the directory nor the network.

        With `held_clock` (`serve --test-clock`) that is the broker's clock in place of `env`'s.
        """
        self.services = Services(env, config, loop, held_clock=held_clock)
        self._http: HttpListener | None = None
        self._asking: asyncio.Future[Any] | None = None

    @property
    def bootstrap(self) -> Endpoint:
        """The address for a client on this machine."""
        return self.services.server.bootstrap

    @property
    def http(self) -> Endpoint | None:
        """The address of health and metrics."""
        return self.services.server.http_address

    # -- start and stop

    async def start(self) -> None:
        """Returns when clients are served.

        Raises ListenError, StorageError when the data directory cannot be used, ConfigError for
        settings that cannot be served, StartGivenUp.
        """
        services = self.services
        try:
            self._bind()
            cluster_id = services.config.broker_config.cluster_id
            if services.fleet is not None:
                services.readiness.lost("joining the fleet")
                cluster_id = await self._answered(services.fleet.join())
            services.readiness.lost("recovering the logs")
            await services.lane.run(load_directory, services, cluster_id)
            await self._take_offline_audit()
            self._trust_the_clock()
            if services.fleet is None:
                services.share_states.begin_load()
                services.groups.begin_load()
                services.transactions.begin_load()
            backlog = services.config.broker_config.socket_listen_backlog_size
            if services.fleet is not None:
                services.readiness.lost("learning what its fleet has")
                authority = services.fleet.decides()
                services.producer_ids.reserve = lambda _: authority.producer_ids(BLOCK_SIZE)
                await self._answered(services.fleet.learn())
                # Users of the fleet are in no new directory: until here nobody could enter.
                await services.lane.run(check_somebody_may_enter, services)
            open_doors(services)
            await read_first_keys(services)
            await services.server.accept(backlog, services.dispatcher.dispatch)
            if services.fleet is not None:
                services.fleet.begin(services.endpoints.advertised())
        except BaseException as error:
            if isinstance(error, StorageError | ConfigError | StartGivenUp):
                await services.lane.run(let_go, services)
            await self._stop_network()
            await self._stop_threads()
            raise
        schedule(services)
        services.tasks.start()
        services.disk_watch.start()
        services.scrubber.start()
        services.readiness.reached()
        self._loading = services.loop.create_task(self._load_coordinators())

    def give_up(self) -> None:
        """Ends a start that waits for its fleet, once the process is to stop; any other comes to
        its end.
        """
        if self._asking is not None:
            self._asking.cancel()

    async def _answered(self, ask: Coroutine[Any, Any, T]) -> T:
        """The fleet's answer, which may be long in coming. StartGivenUp."""
        asking = asyncio.ensure_future(ask)
        self._asking = asking
        if self.services.stopping.is_set():
            asking.cancel()
        try:
            return await asking
        except asyncio.CancelledError:
            if self.services.stopping.is_set():
                raise StartGivenUp from None
            raise
        finally:
            self._asking = None

    async def _take_offline_audit(self) -> None:
        """Lines of commands that were run meanwhile; they are kept until the audit has them."""
        services = self.services
        lines = await services.lane.run(left, services.fs, services.log_dir)
        if lines:
            services.trail.take(lines)
            await services.trail.queue.drain()
            if not services.trail.is_lost:
                await services.lane.run(forget, services.fs, services.log_dir)

    def _trust_the_clock(self) -> None:
        """Removes producers that expired while the broker was stopped, unless the clock is
        unverified.
        """
        services = self.services
        services.clock_watch.started(services.logs.last_write_ms)
        if not services.clock_watch.is_held:
            expiration_ms = services.config.broker_config.producer_id_expiration_ms
            services.logs.expire_restored_producers(expiration_ms)

    async def stop(self) -> bool:
        """A graceful stop; True when everything is on the disk and the directory marked clean."""
        services = self.services
        services.readiness.lost("stopping")
        if services.fleet is not None:
            await services.fleet.hand_over()
        services.server.stop_accepting()
        services.waiters.complete_all()
        self._loading.cancel()
        services.groups.stop()
        await services.server.drain(DRAIN_SECONDS)
        await self._stop_tasks()
        await services.transactions.stop()
        if services.fleet is not None:
            await services.fleet.end()
        await services.commit.close()
        await close_logs(services.loop, services.logs)
        clean = await services.lane.run(self._close_logs)
        await self._stop_network()
        await self._stop_threads()
        return clean

    async def _stop_tasks(self) -> None:
        services = self.services
        services.cleaner.stop()
        if services.tier is not None:
            services.tier.stop()
        if services.tiering is not None:
            services.tiering.stop()
        await services.disk_watch.stop()
        await services.scrubber.stop()
        has_ended = await services.tasks.stop()
        if services.tier is not None and not has_ended:
            await services.lane.run(services.tier.remote.retire_all)
        if services.audit is not None:
            await services.audit.flush()
        await services.trail.close()
        if services.security_mirror is not None:
            await services.security_mirror.flush()

    async def _stop_network(self) -> None:
        self.services.server.stop_accepting()
        if self._http is not None:
            await self._http.close()

    async def _stop_threads(self) -> None:
        await self.services.commit.close()
        await self.services.lanes.close()
        if self.services.tier is not None:
            self.services.tier.close()

    def _bind(self) -> None:
        server, settings = self.services.server, self.services.config.broker_config
        advertised = _by_name(settings.advertised_listeners)
        published = _by_name(settings.horolog_published_listeners)
        check_library(self.services)
        check_telemetry_library(self.services.config)
        self.services.judges = judges_of(self.services)
        if settings.listener_tls:
            from broker.daemon.tls_listeners import add_tls_listeners

            add_tls_listeners(self.services)
        for each in settings.client_listeners:
            name = each.name
            server.bind(name, each.host, each.port, advertised.get(name), published.get(name))
        http, tokens = settings.horolog_http_listener, self.services.http_tokens
        if http is not None:
            tokens.value = tokens.read()
            if self.services.authority.is_on:
                from broker.daemon.http_callers import check_http_routes

                check_http_routes()
            listening, server.http_address = server.bind_http(http.host, http.port)
            self._http = HttpListener(
                self.services.loop,
                listening,
                partial(self._router, http.host),
                server.tls.get(HTTP),
                self.services.probes,
            )
            self._http.open()

    def _router(self, host: str) -> "Router":
        """On a thread, with the first connection."""
        from broker.daemon.http_callers import gate_of, identities_of
        from broker.http.router import Router

        services = self.services
        pages = Pages(live_checks(), ready_checks(services))
        gate, identities = gate_of(services, host), identities_of(services, host)
        return Router(
            services, services.probes, pages, self._scraped, gate=gate, identities=identities
        )

    async def _load_coordinators(self) -> None:
        """Groups first: offsets that wait for their transaction's end are known when it ends."""
        services = self.services
        if services.fleet is not None:
            return  # each partition when it is led here
        loads = (
            ("share_states", services.share_states.load),
            ("groups", services.groups.load),
            ("transactions", services.transactions.load),
        )
        for name, load in loads:
            try:
                await load()
            except Exception as error:  # noqa: BLE001 - the other coordinator is served
                failed(f"load_{name}", error)

    def _close_logs(self) -> bool:
        self.services.crash_guard.stopped()
        return self.services.logs.close()

    def _scraped(self, path: str) -> tuple[str, bytes]:
        """On a thread; loads the library of metrics with the first scrape."""
        from broker.metrics.scrape import Scrape

        return Scrape(self.services).text(path)


def _by_name(listeners: Iterable[Listener]) -> dict[str, Endpoint]:
    return {each.name: Endpoint(each.host, each.port) for each in listeners}
