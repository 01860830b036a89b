"""Lines of the security audit: their fields, and the texts that they are written as (JSON)."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from broker.runtime.principals import ANONYMOUS
from config.quantities import iso
from protocol.errors import ErrorCode

VERSION = 1
MAX_NAME = 600  # characters of a resource
MAX_WHO = 200  # of each name of a client
MAX_DETAIL = 2000

ADMIN_CHANGE = "admin_change"
DENIED = "denied"
AUTHENTICATION_FAILED = "authentication_failed"
SESSION_EXPIRED = "session_expired"
AUDIT_GAP = "audit_gap"
EVENTS = (ADMIN_CHANGE, DENIED, AUTHENTICATION_FAILED, SESSION_EXPIRED, AUDIT_GAP)


class Who(NamedTuple):
    """A client, and the way it came."""

    client_id: str
    address: str
    by: str
    """The listener, HTTP, SIGHUP, or CLI."""
    principal: str = str(ANONYMOUS)


class AdminChange(NamedTuple):
    """One change, done or tried. `code` is 0 when it was done. Nothing in it may be a secret."""

    operation: str
    resource: str
    detail: str
    code: int = 0
    reason: str = ""

    @property
    def outcome(self) -> str:
        """In a word and a number."""
        return outcome_of(self.code)


def outcome_of(code: int) -> str:
    """Name of the outcome, by the error code; `failed`: perhaps a part of it was done."""
    if not code:
        return "done"
    return "failed" if code == ErrorCode.UNKNOWN_SERVER_ERROR else f"refused {code}"


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line. `count`: how many of the same it stands for."""

    event: str
    who: Who
    api: str
    operation: str
    resource: str
    outcome: str
    rule: str = ""
    """The reason, such as the ACL that denies."""
    detail: str = ""
    count: int = 1

    def text(self, now_ms: int) -> str:
        """As JSON, without the end of the line; texts of clients are cut."""
        fields = {
            "v": VERSION,
            "at": iso(now_ms) or str(now_ms),
            "event": self.event,
            "principal": _cut(self.who.principal, MAX_WHO),
            "host": self.who.address,
            "client_id": _cut(self.who.client_id, MAX_WHO),
            "listener": self.who.by,
            "api": self.api,
            "operation": self.operation,
            "resource": _cut(self.resource, MAX_NAME),
            "outcome": self.outcome,
            "rule": self.rule,
            "detail": _cut(self.detail, MAX_DETAIL),
            "count": self.count,
        }
        return json.dumps(fields, separators=(",", ":"))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "..."
