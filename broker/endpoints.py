"""Which address a client is told to come back to.

A listener has a name, a bind address and possibly an advertised one. When none is advertised, each
client is told the address it itself connected to: it is known to work for that client.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Endpoint(NamedTuple):
    """A host and a port as a client dials them."""

    host: str
    port: int

    def __str__(self) -> str:
        """`host:port`, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BoundListener:
    """A listener that accepts clients; its port is the real one, never 0."""

    name: str
    host: str
    port: int
    advertised: Endpoint | None = None

    def endpoint_for(self, local_host: str, local_port: int) -> Endpoint:
        """The address that a client, connected to this local address, can reach again.

        An advertised port 0 stands for the port that was bound.
        """
        if self.advertised is None:
            return Endpoint(local_host, local_port)
        return Endpoint(self.advertised.host, self.advertised.port or self.port)

    @property
    def dialled(self) -> Endpoint:
        """What somebody on this machine types to reach it."""
        if self.advertised is not None:
            return self.endpoint_for(self.host, self.port)
        local = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
        return Endpoint(local.get(self.host, self.host), self.port)
