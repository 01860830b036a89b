"""Facts about one request besides the message itself, for its handler.

`Peer` has the facts of a connection; `RequestContext` adds the request's header and gives
access to the services that its handler names. It is made once per request and must stay cheap: two
references and a header. It must not know how bytes arrive or leave.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from broker.runtime.principals import ANONYMOUS, Principal
from broker.runtime.probes import BrokerProbes
from broker.runtime.rights import MARKS, REFUSED, Rights
from broker.runtime.unpacking import RequestBudget
from protocol.acls import CLUSTER_NAME, SUPPORTED, AclOperation, ResourceType, bits_of
from protocol.errors import ErrorCode, KafkaError
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
    principal: Principal = ANONYMOUS
    """The user of the client; a connection that learns it later gets a new `Peer`."""
    rights: Rights | None = None
    """The user's rights; None where everything is allowed to everybody."""
    by_token: bool = False
    """True when a delegation token let the client in, which may then make no other."""

    def __str__(self) -> str:
        """For log lines."""
        return f"{self.client_host}:{self.client_port}"


class ContextServices(Protocol):
    """The least that an answer takes."""

    @property
    def probes(self) -> BrokerProbes:
        """The counters."""


S_co = TypeVar("S_co", bound=ContextServices, covariant=True)
T = TypeVar("T")

DENIED = MappingProxyType(
    {
        ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)
"""The error code of a missing right, by the type of resource."""


class RequestContext(Generic[S_co]):
    """The facts of one request, given to `handle(request, context)`, and the services `S_co`."""

    __slots__ = (
        "_budget",
        "api_version",
        "asked",
        "charge",
        "ends_with_client",
        "header",
        "peer",
        "services",
        "waited_seconds",
    )

    api_version: int
    """Version of the API that the client called; the response goes out in the same one."""

    charge: tuple[int, float]
    """Bytes of the request and seconds of work: set only while quotas are enforced."""

    def __init__(self, header: RequestHeader, peer: Peer, services: S_co) -> None:
        """Joins the three; nothing is copied."""
        self.header = header
        self.api_version = header.api_version
        self.peer = peer
        self.services = services
        self.asked = 0
        """Marks of the rights that were asked for, by `MARKS`; none without rights."""
        self._budget: RequestBudget | None = None
        self.ends_with_client = False
        """True while a coroutine that answers has changed nothing: it ends when the client goes."""
        self.waited_seconds = 0.0
        """For how long the answer waited for what its client asked to wait for: new records."""

    @property
    def api_key(self) -> int:
        """Key of the API that the client called."""
        return self.header.api_key

    @property
    def client_id(self) -> str:
        """The name the client gives itself; empty when it gives none. Never trusted."""
        return self.header.client_id or ""

    @property
    def client_host(self) -> str:
        """The address the client connects from."""
        return self.peer.client_host

    @property
    def principal(self) -> Principal:
        """The user of the client, as far as its listener makes it say so."""
        return self.peer.principal

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

    # --- rights ---

    def may(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """True when the client may do this to the resource of this name; the audit hears a no."""
        rights = self.peer.rights
        if rights is None:
            return True
        mark = MARKS[kind][operation]
        self.asked |= mark
        if rights.may(mark, name):
            return True
        rights.denied(mark, name, self)
        return False

    def sees(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """As `may`, where a no refuses nothing: a filter, or one of several ways to a right."""
        rights = self.peer.rights
        if rights is None:
            return True
        mark = MARKS[kind][operation]
        self.asked |= mark
        return rights.may(mark, name)

    def may_on_any(self, operation: AclOperation, kind: ResourceType) -> bool:
        """True when the client may do this to some resource of this type (KIP-679)."""
        rights = self.peer.rights
        if rights is None:
            return True
        mark = MARKS[kind][operation]
        self.asked |= mark
        return rights.may_on_any(mark)

    def asks(self, operation: AclOperation, kind: ResourceType) -> None:
        """Notes that this right decides over what the request names, even if it names nothing."""
        if self.peer.rights is not None:
            self.asked |= MARKS[kind][operation]

    def require(self, operation: AclOperation, kind: ResourceType, name: str) -> None:
        """KafkaError with Kafka's code for this type of resource, unless `may`."""
        if not self.may(operation, kind, name):
            raise KafkaError(DENIED[kind])

    def allowed(
        self,
        operation: AclOperation,
        kind: ResourceType,
        names: Iterable[T],
        name_of: Callable[[T], str],
    ) -> list[T]:
        """Those that the client may do this to, as a filter: see `sees`.

        Counts as asked also when there are none.
        """
        if self.peer.rights is None:
            return list(names)
        self.asked |= MARKS[kind][operation]
        return [each for each in names if self.sees(operation, kind, name_of(each))]

    def bits(self, kind: ResourceType, name: str) -> int:
        """Bits of the operations that are allowed on a resource (KIP-430)."""
        rights = self.peer.rights
        if rights is None:
            return bits_of(SUPPORTED[kind])
        return rights.bits(kind, name)

    def cluster_bits(self) -> int:
        """Bits of the operations that are allowed on the cluster; 0 for who may not describe it."""
        rights = self.peer.rights
        describe = MARKS[ResourceType.CLUSTER][AclOperation.DESCRIBE]
        if rights is None or rights.may(describe, CLUSTER_NAME):
            return self.bits(ResourceType.CLUSTER, CLUSTER_NAME)
        return 0

    # --- counting ---

    def count_error(self, code: int) -> None:
        """Counts an error code of this API's answer (nothing for NONE)."""
        if code:
            self.asked |= REFUSED
            self.services.probes.refused(self.header.api_key, code)

    def __repr__(self) -> str:
        """For log events and failing tests."""
        return f"RequestContext({self.header!r}, {self.peer!r})"
