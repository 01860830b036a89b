"""Facts about one request besides the message itself, for its handler.

`Peer` has the facts of a connection; `RequestContext` adds the request's header and gives
access to the services that its handler names. It is made once per request and must stay cheap: two
references and a header. It must not know how bytes arrive or leave.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from broker.runtime.probes import BrokerProbes
from broker.runtime.unpacking import RequestBudget
from protocol.headers import RequestHeader


@dataclass(frozen=True, slots=True)
class Peer:
    """Both ends of one connection, and the listener it came in by."""

    connection_id: int
    client_host: str
    client_port: int
    listener_name: str
    local_host: str
    local_port: int

    def __str__(self) -> str:
        """For log lines."""
        return f"{self.client_host}:{self.client_port}"


class ContextServices(Protocol):
    """The least that an answer takes."""

    @property
    def probes(self) -> BrokerProbes:
        """The counters."""


S_co = TypeVar("S_co", bound=ContextServices, covariant=True)


class RequestContext(Generic[S_co]):
    """The facts of one request, given to `handle(request, context)`, and the services `S_co`."""

    __slots__ = ("_budget", "charge", "header", "peer", "services", "waited_seconds")

    charge: tuple[int, float]
    """Bytes of the request and seconds of work: set only while quotas are enforced."""

    def __init__(self, header: RequestHeader, peer: Peer, services: S_co) -> None:
        """Joins the three; nothing is copied."""
        self.header = header
        self.peer = peer
        self.services = services
        self._budget: RequestBudget | None = None
        self.waited_seconds = 0.0
        """For how long the answer waited for what its client asked to wait for: new records."""

    @property
    def api_key(self) -> int:
        """Key of the API that the client called."""
        return self.header.api_key

    @property
    def api_version(self) -> int:
        """In which version; the response goes out in the same one."""
        return self.header.api_version

    @property
    def client_id(self) -> str:
        """The name the client gives itself; empty when it gives none. Never trusted."""
        return self.header.client_id or ""

    @property
    def client_host(self) -> str:
        """The address the client connects from."""
        return self.peer.client_host

    @property
    def listener_name(self) -> str:
        """The listener the client came in by."""
        return self.peer.listener_name

    @property
    def connection_id(self) -> int:
        """Number of the connection, unique in the life of this process."""
        return self.peer.connection_id

    @property
    def budget(self) -> RequestBudget:
        """Rest of what the request may unpack; made when first needed."""
        if self._budget is None:
            self._budget = RequestBudget(self.peer.connection_id)
        return self._budget

    def count_error(self, code: int) -> None:
        """Counts an error code of this API's answer (nothing for NONE)."""
        if code:
            self.services.probes.refused(self.header.api_key, code)

    def __repr__(self) -> str:
        """For log events and failing tests."""
        return f"RequestContext({self.header!r}, {self.peer!r})"
