"""Advice beside a decision: what retains a segment, its sender, and ways to free it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.http.resources.offenders import offender_entry
from config.quantities import instant, instant_or_none
from storage.errors import StorageError
from storage.retention.plan import (
    JudgedBy,
    LogFacts,
    Reason,
    RetentionClock,
    RetentionLimits,
    SegmentDecision,
    SegmentFacts,
    plan,
)
from storage.search.search_clock import SearchClock
from storage.segment.log_snapshot import LogSnapshot

if TYPE_CHECKING:
    from storage.log.log import Log

MAX_CLIENTS = 10
Way = dict[str, object]


@dataclass(frozen=True, slots=True)
class Freeing:
    """Advice on the segments of one log, as of one moment."""

    log: "Log"
    who: Callable[[str, int, int, int], list[dict[str, object]]]
    """Finds the clients that sent bad times to offsets of a partition."""
    limits: RetentionLimits
    now_ms: int

    def blocker(
        self, snapshot: LogSnapshot, oldest: SegmentDecision | None
    ) -> dict[str, object] | None:
        """The oldest segment that stays, with the record that keeps it; None when nothing stays."""
        if oldest is None:
            return None
        return {
            "base_offset": oldest.base_offset,
            "reason": oldest.reason.name.lower(),
            "because": str(oldest.reason),
            "offset": self._offset_of(snapshot, oldest),
            "clients": self._clients(snapshot, oldest),
            "judged_by": str(oldest.judged_by),
            "time": instant_or_none(oldest.time_ms),
            "until": None if oldest.deadline_ms is None else instant(oldest.deadline_ms),
        }

    def ways(self, decision: SegmentDecision, facts: SegmentFacts, end_offset: int) -> list[Way]:
        """Ways to free a segment that stays; none for one that goes."""
        if decision.goes:
            return []
        match decision.reason:
            case Reason.EMPTY:
                return []
            case Reason.UNCOMMITTED:
                return [{"how": "wait", "for": "its records to be durable"}]
            case Reason.BEHIND:
                first: Way = {"how": "free-first", "base_offset": decision.blocked_by}
                return [first, _delete_records(end_offset)]
            case Reason.HELD:
                return [{"how": "confirm-clock", "post": "/api/clock/confirm"}]
            case _:
                pass
        ways: list[Way] = []
        if decision.reason is Reason.UNDELIVERED:
            ways.append({"how": "wait", "for": "the share groups that have not finished it"})
        if decision.deadline_ms is not None:
            ways.append({"how": "wait", "until": instant(decision.deadline_ms)})
        if decision.reason is Reason.IN_THE_FUTURE:
            ways += self._other_clocks(decision, facts, end_offset)
        if decision.reason is Reason.NO_LIMIT:
            ways += self._limits()
        return [*ways, _delete_records(end_offset)]

    def _limits(self) -> list[Way]:
        if not self.limits.deletes:
            return [{"how": "set", "key": "cleanup.policy", "value": "delete"}]
        return [{"how": "set", "key": "retention.ms", "value": None}]

    def _other_clocks(
        self, decision: SegmentDecision, facts: SegmentFacts, end_offset: int
    ) -> list[Way]:
        """Clocks by which the segment would be due sooner."""
        ways: list[Way] = []
        alone = LogFacts(facts.base_offset, end_offset, end_offset)
        for clock in RetentionClock:
            limits = self.limits._replace(clock=clock)
            (other,) = plan([facts], alone, limits, self.now_ms).decisions
            due, now_due = other.deadline_ms, decision.deadline_ms
            if due is not None and now_due is not None and due < now_due:
                ways.append(
                    {
                        "how": "set",
                        "key": "horolog.retention.clock",
                        "value": str(clock),
                        "until": instant(due),
                    }
                )
        return ways

    def _clients(self, snapshot: LogSnapshot, decision: SegmentDecision) -> list[dict[str, object]]:
        """Clients that sent records with bad times into the segment, as far as known."""
        bases = [each.base_offset for each in snapshot.segments]
        behind = [base for base in bases if base > decision.base_offset]
        end = behind[0] if behind else snapshot.log_end_offset
        found = self.who(self.log.topic, self.log.partition, decision.base_offset, end - 1)
        return [offender_entry(each) for each in found[:MAX_CLIENTS]]

    def _offset_of(self, snapshot: LogSnapshot, decision: SegmentDecision) -> int | None:
        """The first record with the time that keeps the segment, when it is a record's."""
        if decision.judged_by is not JudgedBy.RECORD:
            return None
        try:
            found = self.log.search.first_at_or_after(
                decision.time_ms, below=snapshot.log_end_offset, clock=SearchClock.RECORD
            )
        except StorageError:
            return None
        return None if found is None else found.offset


def _delete_records(end_offset: int) -> Way:
    return {"how": "delete-records", "before_offset": end_offset}
