"""Lines that are added up: the first of a kind is written at once, the others once a minute.

A kind is what was done by whom, from where, to what. Memory is bounded: a client with more kinds
than `MAX_OF_A_CLIENT` has one further for all others, and so have the clients beyond `MAX_KINDS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from broker.security.audit.lines import AuditLine, Who

SECONDS = 60.0
MAX_KINDS = 500
MAX_OF_A_CLIENT = 50
OTHERS = "(others)"


class Kind(NamedTuple):
    """Key of a sum."""

    event: str
    principal: str
    host: str
    operation: str
    resource: str
    outcome: str


@dataclass(slots=True)
class _Sum:
    line: AuditLine
    more: int = 0
    detail: str = ""
    """The last one."""


class AuditSums:
    """The sums of the running minute."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """`monotonic` gives seconds."""
        self._monotonic = monotonic
        self._ends = monotonic() + SECONDS
        self._sums: dict[Kind, _Sum] = {}
        self._of_client: dict[tuple[str, str], int] = {}

    def counted(self, kind: Kind, detail: str = "") -> bool:
        """Counts one more of a kind; False when it is the first, which has to be `begun`.

        No line is made for it, also beyond the bounds: some clients do this all day.
        """
        found = self._sums.get(self._place(kind))
        if found is None:
            return False
        self._count(found, detail)
        return True

    def begun(self, line: AuditLine, *, at_once: bool = True) -> AuditLine | None:
        """Counts the first of a kind; the line to tell at once, None when others have had theirs.

        Not `at_once`: there is no room for it now, so it comes with the end of the minute.
        """
        kind = _kind_of(line)
        place = self._place(kind)
        if place == kind:
            client = kind.principal, kind.host
            self._of_client[client] = self._of_client.get(client, 0) + 1
        elif place.host == kind.host:
            line = replace(line, resource=OTHERS, rule="")
        else:
            line = replace(line, who=Who(OTHERS, OTHERS, OTHERS, OTHERS), resource=OTHERS, rule="")
        is_new = place not in self._sums
        found = self._sums.setdefault(place, _Sum(line, -1 if at_once else 0))
        self._count(found, line.detail)
        return line if is_new and at_once else None

    def _place(self, kind: Kind) -> Kind:
        """The kind that its sum stands under: itself, or that of all others of its client, or of
        all clients.
        """
        sums = self._sums
        if kind in sums:
            return kind
        event, user, host, operation, _, outcome = kind
        if len(sums) >= MAX_KINDS:
            return Kind(event, OTHERS, OTHERS, operation, OTHERS, outcome)
        if self._of_client.get((user, host), 0) >= MAX_OF_A_CLIENT:
            return Kind(event, user, host, operation, OTHERS, outcome)
        return kind

    def due(self, *, at_once: bool = False) -> list[AuditLine]:
        """Lines of a minute that is over, or of the one so far, but for those written already."""
        if not (at_once or self._monotonic() >= self._ends):
            return []
        sums, self._sums, self._of_client = self._sums, {}, {}
        self._ends = self._monotonic() + SECONDS
        return [
            replace(each.line, count=each.more, detail=each.detail)
            for each in sums.values()
            if each.more
        ]

    def _count(self, found: _Sum, detail: str) -> None:
        found.more += 1
        if detail:
            found.detail = detail


def _kind_of(line: AuditLine) -> Kind:
    who = line.who
    return Kind(line.event, who.principal, who.address, line.operation, line.resource, line.outcome)
