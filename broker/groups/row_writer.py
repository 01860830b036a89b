"""Writes rows of groups, whatever their protocol.

A change is made in memory at once and is answered when it is durable. What could not be written is
owed, and goes with the next write of the group. Used from the event loop only.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from broker.groups.owed_rows import OwedRows
from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from broker.runtime.gathering import all_of
from broker.state.state_topic import Row

ROW_BYTES = 32  # of a record beside its key and value, at most


class GroupLog(Protocol):
    """Log of the groups' records."""

    @property
    def batch_bytes(self) -> int:
        """The most bytes that what is written at once may take."""

    def write(self, group_id: str, rows: Sequence[Row]) -> Deferred[None]:
        """Writes rows of one group, all or nothing; settled when they are durable."""


class OwingGroup(Protocol):
    """A group of which rows may be owed."""

    group_id: str
    owed: OwedRows


class RememberedGroup(OwingGroup, Protocol):
    """A group as its rows are written."""

    rows: list[Row]
    """Changes that are not written yet."""


class RowWriter:
    """Writes what changed."""

    def __init__(self, log: GroupLog) -> None:
        """Nothing was written."""
        self._log = log

    def store(self, group: RememberedGroup) -> Deferred[None] | None:
        """Writes what changed, and what is owed; None when all is durable.

        Who changed nothing waits for what is under way: its answer speaks of that, too.
        """
        rows, group.rows = group.rows, []
        if rows or group.owed.refused():
            return self.write(group, rows)
        return group.owed.follow()

    def store_later(self, group: RememberedGroup) -> None:
        """Writes what changed; nobody waits for it."""
        written = self.store(group)
        if written is not None:
            written.listen(_heard)

    def write(self, group: OwingGroup, changed: list[Row]) -> Deferred[None]:
        """Writes what is owed and then these rows, in as many batches as they need.

        What cannot be written is owed. A start finds all batches, or the first ones: a group on its
        way, whose rest is owed. Fails, too, while rows of an earlier write are owed.
        """
        answer: Deferred[None] = Deferred()
        owed = group.owed
        rows = [*owed.refused(but=dict(changed)), *changed]
        number = owed.begin(rows)

        def written(_: None, error: BaseException | None) -> None:
            if error is not None:
                event("group_not_stored", "error", group=group.group_id, error=error)
            owed.end(number, error, rows).say(answer)

        write_all(self._log, group.group_id, rows).listen(written)
        return answer


def write_all(log: GroupLog, group_id: str, rows: list[Row]) -> Deferred[None]:
    """Writes rows in as many batches as they need; settled when all are durable."""
    batches = list(in_batches(rows, log.batch_bytes // 2))
    return all_of([log.write(group_id, some) for some in batches])


def in_batches(rows: list[Row], most_bytes: int) -> Iterator[list[Row]]:
    """The rows in their order, in lists that take about so many bytes at most."""
    some: list[Row] = []
    size = 0
    for row in rows:
        row_bytes = len(row[0]) + len(row[1] or b"") + ROW_BYTES
        if some and size + row_bytes > most_bytes:
            yield some
            some, size = [], 0
        some.append(row)
        size += row_bytes
    yield some


def _heard(_: None, __: BaseException | None) -> None:
    """Ignores the result: rows not written stay owed, and the log of events has the error."""
