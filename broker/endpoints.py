"""Addresses: where the broker listens and which address a client is told to come back to.

A listener has a name, a bind address and possibly an advertised one. When none is advertised, each
client is told the address it itself connected to: it is known to work for that client.
"""

from dataclasses import dataclass
from typing import NamedTuple

WILDCARDS = frozenset({"", "0.0.0.0", "::", "[::]", "*"})  # noqa: S104 - names, not a bind


class Endpoint(NamedTuple):
    """A host and a port as a client dials them."""

    host: str
    port: int

    def __str__(self) -> str:
        """`host:port`, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Listener:
    """One place where the broker accepts clients. Port 0 lets the system choose."""

    name: str
    host: str
    port: int
    advertised: Endpoint | None = None

    @property
    def is_wildcard(self) -> bool:
        """True when it accepts on every address of the machine."""
        return self.host in WILDCARDS

    def endpoint_for(self, local_host: str, local_port: int) -> Endpoint:
        """The address that a client, connected to this local address, can reach again."""
        return self.advertised or Endpoint(local_host, local_port)


def parse_host_port(text: str) -> Endpoint:
    """Reads `HOST:PORT`, `[V6]:PORT` or `:PORT`; ValueError says what is wrong with it."""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT with a port from 0 to 65535")
    return Endpoint(host.strip("[]"), int(port))
