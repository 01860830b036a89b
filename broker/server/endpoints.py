"""Addresses that clients receive to connect to.

A listener has a name, a bind address and possibly an advertised one. When none is advertised, each
client receives the address it connected to, which is known to work for it. In a container that
applies to clients in the container's networks; those from outside receive the published port.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from broker.runtime.endpoint import Endpoint, Nodes
from broker.runtime.request_context import Peer
from broker.server.client_software import ClientSoftware
from broker.server.networks import is_outside
from storage.env import FileSystem

NOBODY: Mapping[int, Endpoint] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BoundListener:
    """A listener that accepts clients; its port is the real one, never 0."""

    name: str
    host: str
    port: int
    advertised: Endpoint | None = None
    published: Endpoint | None = None

    def endpoint_for(self, local_host: str, local_port: int, *, outside: bool = False) -> Endpoint:
        """The address that a client, connected to this local address, can reach again.

        `outside`: the client is in none of this machine's networks. An advertised port 0 stands
        for the port that was bound.
        """
        stated = self.advertised or (self.published if outside else None)
        if stated is None:
            return Endpoint(local_host, local_port)
        return Endpoint(stated.host, stated.port or self.port)

    @property
    def dialled(self) -> Endpoint:
        """The address for clients on this machine; of a container, on its host."""
        if self.advertised is not None or self.published is not None:
            return self.endpoint_for(self.host, self.port, outside=True)
        local = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
        return Endpoint(local.get(self.host, self.host), self.port)


class AdvertisedEndpoints:
    """By listener, and by where the client is. Used on the event loop."""

    def __init__(
        self, listeners: Mapping[str, BoundListener], fs: FileSystem, software: ClientSoftware
    ) -> None:
        """`listeners` by name, filled while ports are bound; `fs` shows the machine's networks."""
        self.others: Mapping[str, Mapping[int, Endpoint]] = {}
        """In a fleet: the other nodes that live, by listener and by their ids."""
        self.gone: Mapping[str, Mapping[int, Endpoint]] = {}
        """Those that lived lately, and may come back."""
        self._listeners = listeners
        self._fs = fs
        self._software = software

    def advertised(self) -> Mapping[str, Endpoint]:
        """Addresses for other nodes' clients, by listener."""
        return {name: each.dialled for name, each in self._listeners.items()}

    def others_are(self, living: Nodes, gone: Nodes, *, besides: int) -> None:
        """The nodes of the fleet, by their ids, are these from now on. `besides`: this one's id."""
        self.others, self.gone = _by_listener(living, besides), _by_listener(gone, besides)

    def others_of(self, peer: Peer) -> Mapping[int, Endpoint]:
        """Other nodes that the client at the other end of `peer` can reach, by their ids."""
        return self.others.get(peer.listener_name, NOBODY)

    def known_to(self, peer: Peer) -> Mapping[int, Endpoint]:
        """As `others_of`; for librdkafka, which must not forget them, with those in `gone`.

        Other clients ask again for what they had there, and some ask every node that they know.
        """
        gone = self.gone.get(peer.listener_name)
        if gone and self._software.is_librdkafka(peer.connection_id):
            return {**gone, **self.others_of(peer)}
        return self.others_of(peer)

    def of(self, peer: Peer) -> Endpoint:
        """The address for the client at the other end of `peer`."""
        listener = self._listeners[peer.listener_name]
        outside = listener.published is not None and is_outside(self._fs, peer.client_host)
        return listener.endpoint_for(peer.local_host, peer.local_port, outside=outside)


def _by_listener(nodes: Nodes, besides: int) -> Mapping[str, Mapping[int, Endpoint]]:
    found: dict[str, dict[int, Endpoint]] = {}
    for node_id, listeners in nodes.items():
        for name, each in listeners.items() if node_id != besides else ():
            found.setdefault(name, {})[node_id] = each
    return found
