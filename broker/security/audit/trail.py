"""The security audit: its own lines, apart from the log of events.

A change that was made, or may have been, is one line. What was refused, denied, or failed to log in
is added up: the first at once, the others of a minute as one line with their count. Who changes
something waits while the queue is full, before and after, so that nobody drowns what was done.
Used on the event loop only.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from broker.security.audit.lines import (
    ADMIN_CHANGE,
    AUDIT_GAP,
    AUTHENTICATION_FAILED,
    DENIED,
    MAX_DETAIL,
    SESSION_EXPIRED,
    AdminChange,
    AuditLine,
    Who,
)
from broker.security.audit.queue import AuditQueue
from broker.security.audit.sums import AuditSums, Kind
from protocol.acls import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.registry import apis

if TYPE_CHECKING:
    from broker.runtime.lanes import DiskLane
    from broker.runtime.principals import Principal
    from broker.runtime.rights import Asker
    from broker.security.audit.sinks import AuditSink

OF_RIGHTS = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)
"""Refusals that have a line of their own already: `denied`."""
BROKER = Who("", "", "", "")


class Denial(NamedTuple):
    """A right that a user at an address does not have."""

    principal: "Principal"
    host: str
    operation: AclOperation
    kind: ResourceType
    name: str


Mirror = Callable[[Sequence[str]], None]


class AuditTrail:
    """Takes events, and has their lines written."""

    def __init__(
        self, monotonic: Callable[[], float], now_ms: Callable[[], int], lane: "DiskLane"
    ) -> None:
        """`lane` has the threads that write; `monotonic` gives seconds."""
        self._now_ms = now_ms
        self._sums = AuditSums(monotonic)
        self.queue = AuditQueue(lane, self._written)
        self.mirror: Mirror | None = None
        """Gets every line, too."""
        self.changes = 0
        """Since the start, those refused with them."""
        self.denials: Counter[tuple[str, str]] = Counter()
        """By operation and type of resource, in small letters."""
        self.failures: Counter[str] = Counter()
        """Failed authentications, by the way."""
        self.missing = 0
        """Lines that went to standard error because the file does not take them at the moment."""

    @property
    def is_lost(self) -> bool:
        """True while nothing takes the lines: no change may be made then."""
        return self.queue.is_lost

    def use(self, sink: "AuditSink") -> None:
        """From now on lines go there; until then to standard error."""
        self.queue.use(sink)

    # -- events

    def noted(self, who: Who, change: AdminChange, api: str = "") -> None:
        """An administrative change, or a refusal of one; `room` says whether to wait then."""
        self.changes += 1
        if change.code in OF_RIGHTS:
            return
        detail = " ".join(filter(None, (change.detail, change.reason)))
        line = AuditLine(
            ADMIN_CHANGE,
            who,
            api,
            change.operation,
            change.resource,
            change.outcome,
            detail=detail[:MAX_DETAIL],
        )
        if change.code in (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR):
            self._put([line])
        else:
            self._add(line)

    def added(self, who: Who, change: AdminChange, api: str = "") -> None:
        """As `noted`, for what some clients do all day: even what is done is added up."""
        self.changes += 1
        operation, resource, outcome = change.operation, change.resource, change.outcome
        kind = Kind(ADMIN_CHANGE, who.principal, who.address, operation, resource, outcome)
        if change.code not in OF_RIGHTS and not self._sums.counted(kind, change.detail):
            self._add(
                AuditLine(
                    ADMIN_CHANGE, who, api, change.operation, change.resource, change.outcome,
                    detail=change.detail,
                )
            )  # fmt: skip

    def denied(self, denial: Denial, asker: "Asker", rule: Callable[[], str]) -> None:
        """A right was asked for that is not given; `rule()` says what decides so."""
        operation, kind = denial.operation.name, denial.kind.name.lower()
        self.denials[operation.lower(), kind] += 1
        resource = f"{kind} {denial.name}"
        user, host = str(denial.principal), denial.host
        if not self._sums.counted(Kind(DENIED, user, host, operation, resource, DENIED)):
            who = Who(asker.client_id, host, asker.listener_name, user)
            api = _api_name(asker.api_key)
            self._add(AuditLine(DENIED, who, api, operation, resource, DENIED, rule()))

    def refused(self, who: Who, operation: str, resource: str, rule: str) -> None:
        """As `denied`, of a request by HTTP, whose path is the resource."""
        self.denials["http", "path"] += 1
        self._add(AuditLine(DENIED, who, "HTTP", operation, resource, DENIED, rule))

    def authentication_failed(self, who: Who, way: str, detail: str) -> None:
        """A client did not prove to be who it says; `way` is a mechanism, TLS or HTTP."""
        self.failures[way] += 1
        self._add(
            AuditLine(AUTHENTICATION_FAILED, who, "", "log in", way, "refused", detail=detail)
        )

    def session_expired(self, who: Who) -> None:
        """A connection was ended because its client did not authenticate again in time."""
        self._add(AuditLine(SESSION_EXPIRED, who, "", "stay", "session", "closed"))

    def take(self, lines: Sequence[str]) -> None:
        """Lines that were made while no broker ran, see `offline`."""
        self.queue.put(lines)
        if self.mirror is not None:
            self.mirror(lines)

    # -- its way

    def room(self) -> Deferred[None] | None:
        """None when there is room, else a promise: a change waits for that before and after."""
        return self.queue.room()

    def flush(self) -> None:
        """Once a second: tells what was added up when its minute is over, writes what waits."""
        self._put(self._sums.due())
        self.queue.write()

    async def close(self) -> None:
        """Tells and writes everything there is."""
        self._put(self._sums.due(at_once=True))
        await self.queue.drain()

    def _add(self, line: AuditLine) -> None:
        who = line.who
        kind = Kind(
            line.event, who.principal, who.address, line.operation, line.resource, line.outcome
        )
        if not self._sums.counted(kind, line.detail):
            first = self._sums.begun(line, at_once=not self.queue.is_full)
            if first is not None:
                self._put([first])

    def _put(self, lines: Sequence[AuditLine]) -> None:
        if not lines:
            return
        now_ms = self._now_ms()
        texts = [each.text(now_ms) for each in lines]
        self.queue.put(texts)
        if self.mirror is not None:
            self.mirror(texts)

    def _written(self, spilled: int) -> None:
        """Tells the file, as soon as it works again, how many lines it lacks."""
        if spilled and not self.missing:
            event("security_audit_failed", "error", lines=spilled)
        self.missing += spilled
        if self.missing and not spilled:
            gap, self.missing = self.missing, 0
            self._put(
                [AuditLine(AUDIT_GAP, BROKER, "", "write", "lines", "in standard error", count=gap)]
            )


@cache
def _api_name(key: int) -> str:
    api = apis().get(key)
    return api.name if api is not None else str(key)
