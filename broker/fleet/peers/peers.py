"""Other nodes of a fleet, asked with Kafka's own requests over the listener for brokers.

One connection to each, made when it is first asked; a node that is silent, or has gone, loses it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from broker.access.asked_broker import AskedBroker, Blocking, NotAnswered
from broker.access.errors import AccessError
from broker.access.settings import ClientSecurity
from broker.runtime.endpoint import Endpoint, Nodes
from protocol.errors import DecodeError

CLIENT_ID = "horolog-fleet"
CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 5.0
SESSION_SHARE_SECONDS = 5.0
"""Before its session ends a connection is left for another one."""


class PeerUnreached(Exception):  # noqa: N818 - what is known
    """The request was not sent: it does nothing there."""


class PeerSilent(Exception):  # noqa: N818 - what is known
    """The request was sent, and no answer came: it was carried out, or will be, or never."""


class PeerAccess(NamedTuple):
    """The way to other nodes."""

    listener: str
    security: ClientSecurity
    blocking: Blocking[Any]
    monotonic: Callable[[], float]


class Peers:
    """The other nodes. Used from the event loop."""

    def __init__(self, access: PeerAccess) -> None:
        """Nobody is known."""
        self._access = access
        self._addresses: dict[int, Endpoint] = {}
        self._connections: dict[int, AskedBroker] = {}
        self._opening: dict[int, asyncio.Lock] = {}

    def nodes_are(self, nodes: Nodes) -> None:
        """The nodes that live. Who waits for an answer of another one hears that none comes."""
        listener = self._access.listener
        self._addresses = {
            node_id: listeners[listener]
            for node_id, listeners in nodes.items()
            if listener in listeners
        }
        for node_id in self._connections.keys() - self._addresses.keys():
            self._connections.pop(node_id).close()

    async def ask(self, node_id: int, request: Any) -> Any:
        """The answer of a node. PeerUnreached, PeerSilent."""
        connection = await self._connected(node_id)
        try:
            asked = connection.ask(request)
        except AccessError as error:
            raise PeerUnreached(f"node {node_id}: {error}") from error
        return await self._answered(node_id, connection, asked)

    def close(self) -> None:
        """Nobody is asked any more."""
        self.nodes_are({})

    async def _answered(self, node_id: int, connection: AskedBroker, asked: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asked
        except TimeoutError as error:
            self._drop(node_id, connection)
            raise PeerSilent(f"node {node_id} does not answer") from error
        except NotAnswered as error:
            self._drop(node_id, connection)
            raise PeerSilent(f"node {node_id}: {error}") from error

    def _drop(self, node_id: int, connection: AskedBroker) -> None:
        connection.close()
        if self._connections.get(node_id) is connection:
            del self._connections[node_id]

    async def _connected(self, node_id: int) -> AskedBroker:
        """One at a time tries; the others have what it made."""
        async with self._opening.setdefault(node_id, asyncio.Lock()):
            connection = self._connections.get(node_id)
            if connection is not None and connection.is_open and not self._is_over(connection):
                return connection
            address = self._addresses.get(node_id)
            if address is None:
                raise PeerUnreached(f"node {node_id} is gone, or has no such listener")
            made = await self._opened(node_id, address)
            if connection is not None:
                _left(connection)
            self._connections[node_id] = made
            return made

    def _is_over(self, connection: AskedBroker) -> bool:
        ends_at = connection.ends_at
        return ends_at is not None and (self._access.monotonic() > ends_at - SESSION_SHARE_SECONDS)

    async def _opened(self, node_id: int, address: Endpoint) -> AskedBroker:
        access = self._access
        made = AskedBroker(CLIENT_ID, access.security, access.monotonic)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await made.open(address.host, address.port, access.blocking)
        except (OSError, TimeoutError, AccessError, DecodeError, NotAnswered) as error:
            made.close()
            raise PeerUnreached(f"node {node_id} at {address}: {error!r}") from error
        return made


def _left(connection: AskedBroker) -> None:
    """Closed when its last answer has come, or is late."""
    asyncio.get_running_loop().call_later(ANSWER_SECONDS, connection.close)
