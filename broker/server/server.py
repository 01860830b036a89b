"""The listeners: admission, the shared parts of all connections, and their shutdown.

Ports are bound first and opened later (`bind`, then `accept`), so that a taken port is reported
before recovery begins and no client waits in a queue while it runs.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count
from threading import Lock

from broker.runtime.callbacks import failed
from broker.runtime.connection_limits import ConnectionLimits
from broker.runtime.endpoint import Endpoint
from broker.runtime.event_log import event
from broker.runtime.principals import ANONYMOUS, Principal
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import Peer
from broker.runtime.rights import Rights
from broker.server.buffer_pool import BufferPool
from broker.server.busy_poll import Lockstep
from broker.server.client_software import ClientSoftware
from broker.server.connection import Connection
from broker.server.connection_counts import ConnectionCounts, ConnectionSettings
from broker.server.dispatcher import Parts, Pending
from broker.server.doors import Door
from broker.server.endpoints import BoundListener
from broker.server.page_cache import PageCache
from broker.server.tls_connection import TlsConnection
from broker.server.tls_listener import TlsListener
from broker.server.turned_away import TurnedAway

SWEPT_AT_ONCE = 200  # connections looked at in one step of the loop
STOP_POLL_SECONDS = 0.01
MAPPED_V4 = "::ffff:"


class ListenError(Exception):
    """An address cannot be listened on; the text is for the operator. `errno` is 0 if unknown."""

    def __init__(self, message: str, errno: int = 0) -> None:
        super().__init__(message)
        self.errno = errno


class Server:
    """All connections of a broker. Used from the event loop only."""

    page_cache: PageCache

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: ConnectionLimits,
        probes: BrokerProbes,
        settings: Callable[[], ConnectionSettings],
        *,
        page_cache: PageCache,
        rights_of: Callable[[Principal, str], Rights | None],
    ) -> None:
        """Nothing is bound yet. `settings()` gives the snapshot in force.

        `rights_of(principal, host)` gives the rights of a user at an address.
        """
        self.rights_of = rights_of
        self.software = ClientSoftware()
        """Names that clients have given theirs."""
        self.on_lost: list[Callable[[int], None]] = [self.software.connection_lost]
        """All are called with the number of each connection that ends."""
        self.arrival_rest_seconds: Callable[[str], float] = _at_once
        """For how long no connection from an address may come in."""
        self.loop = loop
        self.limits = limits
        self.probes = probes
        self.pool: BufferPool = BufferPool(most_bytes=limits.all_received_bytes)
        self.page_cache = page_cache
        self.dispatch: Callable[[memoryview, Peer], Parts | Pending | None]
        self.lockstep = Lockstep(loop, probes.monotonic)
        self.http_address: Endpoint | None = None
        self.doors: Mapping[str, Door] = {}
        """Of listeners whose clients have to prove who they are."""
        self.connections: set[Connection] = set()
        self.listeners: dict[str, BoundListener] = {}
        self.tls: dict[str, TlsListener] = {}
        """By the names of listeners with TLS; complete before `accept`."""
        self._sockets: list[tuple[str, socket.socket]] = []
        self._servers: list[asyncio.Server] = []
        self._counts = ConnectionCounts(settings, probes.monotonic, limits.max_by_open_files)
        self._forgetting = Lock()  # the scrape adds up on a thread
        self._turned_away = TurnedAway(loop, limits.max_by_open_files)
        self._by_number: dict[int, Connection] = {}
        self._numbers = count(1)

    def bind(
        self,
        name: str,
        host: str,
        port: int,
        advertised: Endpoint | None,
        published: Endpoint | None = None,
    ) -> BoundListener:
        """Reserves an address; port 0 takes a free one. Raises ListenError."""
        bound = _bind(host, port)
        listener = BoundListener(name, host, bound.getsockname()[1], advertised, published)
        self._sockets.append((name, bound))
        self.listeners[name] = listener
        return listener

    def bind_http(self, host: str, port: int) -> tuple[socket.socket, Endpoint]:
        """A bound socket for health and metrics, and its address. Raises ListenError."""
        bound = _bind(host, port)
        self.http_address = BoundListener("HTTP", host, bound.getsockname()[1]).dialled
        return bound, self.http_address

    @property
    def bootstrap(self) -> Endpoint:
        """The address for a client on this machine."""
        return next(iter(self.listeners.values())).dialled

    async def accept(
        self, backlog: int, dispatch: Callable[[memoryview, Peer], Parts | Pending | None]
    ) -> None:
        """From now on clients may connect; `dispatch` handles each request."""
        self.dispatch = dispatch
        for name, bound in self._sockets:
            server = await self.loop.create_server(
                self._connections_of(name), sock=bound, backlog=backlog
            )
            self._servers.append(server)

    def _connections_of(self, name: str) -> Callable[[], Connection]:
        tls = self.tls.get(name)
        if tls is None:
            return partial(Connection, self, name)
        return partial(TlsConnection, self, tls)

    # -- what the scrape reads

    @property
    def received_bytes(self) -> int:
        """From all clients since the start; never less than before."""
        with self._forgetting:
            live, past = tuple(self.connections), self.probes.bytes_received
        return past + sum(connection.received_bytes for connection in live)

    @property
    def sent_bytes(self) -> int:
        """To all clients since the start; never less than before."""
        with self._forgetting:
            live, past = tuple(self.connections), self.probes.bytes_sent
        return past + sum(connection.sent_bytes for connection in live)

    @property
    def queued_bytes(self) -> int:
        """Memory that waits for slow readers."""
        return sum(connection.queued_bytes for connection in tuple(self.connections))

    # -- what connections ask

    def admit(
        self, connection: Connection, transport: asyncio.Transport, listener_name: str
    ) -> Peer | None:
        """The facts of a new connection, or None when there are too many."""
        client_host, client_port = _address(transport.get_extra_info("peername"))
        local_host, local_port = _address(transport.get_extra_info("sockname"))
        reason, rest_seconds = self._counts.refusal(listener_name, client_host), 0.0
        if reason is None and not self._counts.is_kept(listener_name):
            rest_seconds = self.arrival_rest_seconds(client_host)
            reason = "connection_creation_rate" if rest_seconds else None
        if reason is not None:
            self.probes.connection_refused(reason)
            event("connection_not_admitted", "warning", reason=reason, client_host=client_host)
            self._turned_away.add(transport, rest_seconds)
            return None
        self.connections.add(connection)
        self._counts.came(listener_name, client_host)
        self.probes.connections_accepted += 1
        number = next(self._numbers)
        self._by_number[number] = connection
        return Peer(
            number,
            client_host,
            client_port,
            listener_name,
            local_host,
            local_port,
            ANONYMOUS,
            self.rights_of(ANONYMOUS, client_host),
        )

    def forget(self, connection: Connection) -> None:
        """The connection is over."""
        with self._forgetting:
            self.connections.discard(connection)
            self.probes.bytes_received += connection.received_bytes
            self.probes.bytes_sent += connection.sent_bytes
        self._by_number.pop(connection.peer.connection_id, None)
        for lost in self.on_lost:
            lost(connection.peer.connection_id)
        peer = connection.peer
        self._counts.went(peer.listener_name, peer.client_host)

    def why_full(self) -> str | None:
        """The reason why clients can no longer connect, in words; None when they can."""
        return self._counts.why_full()

    def mute(self, connection_id: int, seconds: float) -> None:
        """Stops reading from a client for so long; nothing when it is gone already."""
        connection = self._by_number.get(connection_id)
        if connection is not None:
            connection.mute(seconds)

    def foreign_answer(self, kind: str) -> bytes:
        """The answer for a client that speaks another protocol; empty where it cannot read one."""
        if kind != "http":
            return b""
        at = f"health and metrics are at http://{self.http_address}/" if self.http_address else ""
        text = f"This port speaks the Kafka protocol, not HTTP; {at or 'no HTTP is served'}\n"
        head = (
            f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        )
        return (head + text).encode("ascii")

    # -- time, and the end

    async def sweep(self, now: float) -> None:
        """Drops who is idle, slow or stalled; called about once a second."""
        connections = list(self.connections)
        for start in range(0, len(connections), SWEPT_AT_ONCE):
            for connection in connections[start : start + SWEPT_AT_ONCE]:
                try:
                    connection.sweep(now)
                except Exception as error:  # noqa: BLE001 - the others are looked at
                    failed("connection", error)
            await asyncio.sleep(0)
        self.pool.trim()
        self._counts.forget(now)
        self._bound_memory()

    def _bound_memory(self) -> None:
        """The longest queues go while all together hold too much."""
        queued = self.queued_bytes
        if queued <= self.limits.all_queued_bytes:
            return
        by_length = sorted(self.connections, key=lambda each: each.queued_bytes, reverse=True)
        for connection in by_length:
            queued -= connection.queued_bytes
            event("connection_dropped", "warning", reason="memory", peer=connection.peer)
            connection.abort("memory")
            if queued <= self.limits.all_queued_bytes:
                return

    def stop_accepting(self) -> None:
        """New clients are refused by the system from now on."""
        self._turned_away.close()
        for server in self._servers:
            server.close()
        for _, bound in self._sockets:
            bound.close()

    async def drain(self, seconds: float) -> bool:
        """Ends each connection once it is answered; aborts what is left after `seconds`.

        True when nobody had to be cut off.
        """
        deadline = self.loop.time() + seconds
        waiting: Iterable[Connection] = list(self.connections)
        while waiting := [connection for connection in waiting if not connection.stop()]:
            if self.loop.time() > deadline:
                for connection in waiting:
                    connection.abort("stopping")
                break
            await asyncio.sleep(STOP_POLL_SECONDS)
        await asyncio.sleep(0)
        return not waiting


def _at_once(_: str) -> float:
    """No address has to wait."""
    return 0.0


def _bind(host: str, port: int) -> socket.socket:
    bound = None
    try:
        if not host:
            return _bind_everywhere(port)
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, proto)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        if bound is not None:
            bound.close()
        raise ListenError(
            f"cannot listen on {host or '*'}:{port}: {error.strerror}", error.errno or 0
        ) from error
    return bound


def _bind_everywhere(port: int) -> socket.socket:
    """IPv6 and IPv4 by one socket where the system can, else IPv4."""
    try:
        bound = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    except OSError:
        return _bind("0.0.0.0", port)  # noqa: S104 - what the setting asked for
    try:
        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("::", port))
    except OSError:
        bound.close()
        return _bind("0.0.0.0", port)  # noqa: S104
    return bound


def _address(name: tuple[str, int] | None) -> tuple[str, int]:
    """Host and port; an IPv4 client of a dual socket has its IPv4 address."""
    if not name:
        return "", 0
    host = name[0]
    return (host.removeprefix(MAPPED_V4)), name[1]
