"""Addresses that clients dial."""

from collections.abc import Mapping
from typing import NamedTuple


class Endpoint(NamedTuple):
    """A host and a port as a client dials them."""

    host: str
    port: int

    def __str__(self) -> str:
        """`host:port`, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


Nodes = Mapping[int, Mapping[str, Endpoint]]
"""Addresses of nodes by their ids, of each by listener."""
