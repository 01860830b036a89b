"""The traces of administration: who changed what, from where, and what came of it.

Each change is a line of the log, `admin_change`, at once. Of a burst only the first lines of a
second are written one by one; the others are summed by client, operation and outcome, and written a
second later with their count and some of their names. Nothing is dropped, and the memory for it is
bounded: clients beyond the bound count as `others`. Used on the event loop only.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.runtime.event_log import traced
from protocol.errors import ErrorCode

LINES_PER_SECOND = 8
MAX_SUMS = 100  # of one second
MAX_BURSTS = 1000  # likewise: who is counted without words
NAMES_SHOWN = 5
OTHERS = "(others)"
ANONYMOUS = "User:ANONYMOUS"  # everybody, as long as nobody says who he is


class Who(NamedTuple):
    """Client of a change, and the way it came."""

    client_id: str
    address: str
    by: str
    """The listener, or HTTP."""
    principal: str = ANONYMOUS


class AdminChange(NamedTuple):
    """One change, done or tried. `code` is 0 when it was done."""

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
    if code == ErrorCode.UNKNOWN_SERVER_ERROR:
        return "failed"
    return f"refused {code}" if code else "done"


@dataclass(slots=True)
class _Sum:
    count: int = 0
    names: list[str] = field(default_factory=list)


class AdminTrail:
    """Writes the lines."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """`monotonic` gives seconds."""
        self._monotonic = monotonic
        self._second = -1
        self._lines = 0
        self._sums: dict[tuple[Who, str, str], _Sum] = {}
        self._bursts: dict[tuple[Hashable, str, int], _Sum] = {}
        self.changes = 0
        """Since the start."""

    def noted(self, who: Who, change: AdminChange, asker: Hashable = None) -> None:
        """Records a change or a refusal; `asker` is a key under which `counted` finds it again."""
        self.changes += 1
        second = int(self._monotonic())
        if second != self._second:
            self.flush()
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines <= LINES_PER_SECOND:
            _tell(who, change.operation, change.outcome, resource=change.resource,
                  detail=change.detail, reason=change.reason)  # fmt: skip
        else:
            found = self._add(who, change)
            is_known = asker is not None and len(found.names) >= NAMES_SHOWN
            if is_known and len(self._bursts) < MAX_BURSTS:
                self._bursts[asker, change.operation, change.code] = found

    def counted(self, asker: Hashable, operation: str, code: int) -> bool:
        """Counts a change of a burst that has named itself; False: it has to be `noted` instead.

        For callers that do this many times a second, and have no time to format names.
        """
        found = self._bursts.get((asker, operation, code))
        if found is None or int(self._monotonic()) != self._second:
            return False
        self.changes += 1
        found.count += 1
        return True

    def flush(self) -> None:
        """Tells what was added up; called once a second, and at the end."""
        sums, self._sums, self._bursts = self._sums, {}, {}
        for (who, operation, outcome), each in sums.items():
            _tell(who, operation, outcome, count=each.count, resource=", ".join(each.names))

    def _add(self, who: Who, change: AdminChange) -> _Sum:
        key = (who, change.operation, change.outcome)
        found = self._sums.get(key)
        if found is None:
            if len(self._sums) >= MAX_SUMS:
                key = (Who(OTHERS, OTHERS, who.by), change.operation, change.outcome)
            found = self._sums.setdefault(key, _Sum())
        found.count += 1
        if len(found.names) < NAMES_SHOWN:
            found.names.append(change.resource)
        return found


def _tell(who: Who, operation: str, outcome: str, **fields: object) -> None:
    stated = {name: value for name, value in fields.items() if value not in ("", None)}
    traced(
        "admin_change",
        operation=operation,
        outcome=outcome,
        principal=who.principal,
        client_id=who.client_id,
        address=who.address,
        by=who.by,
        **stated,
    )
