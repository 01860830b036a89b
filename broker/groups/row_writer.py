"""Writes rows of groups that the broker assigns for, whatever their protocol.

A change is made in memory at once and is answered when it is durable. What could not be written is
owed, and goes with the next write of the group. Used from the event loop only.
"""

from collections.abc import Iterator
from typing import Protocol

from broker.groups.classic.rebalance import GroupLog
from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from broker.runtime.gathering import all_of
from broker.state.state_topic import Row

ROW_BYTES = 32  # of a record beside its key and value, at most


class RememberedGroup(Protocol):
    """A group as its rows are written."""

    group_id: str
    rows: list[Row]
    """Changes that are not written yet."""
    owed: dict[bytes, bytes | None]
    """Rows that could not be written."""


class RowWriter:
    """Writes what changed."""

    def __init__(self, log: GroupLog) -> None:
        """Nothing was written."""
        self._log = log

    @property
    def batch_bytes(self) -> int:
        """The most bytes that rows of one batch take."""
        return self._log.batch_bytes // 2

    def store(self, group: RememberedGroup) -> Deferred[None] | None:
        """Writes what changed; None when nothing did."""
        rows, group.rows = group.rows, []
        if not rows:
            return None
        owed, group.owed = group.owed, {}
        return self.write(group, [*owed.items(), *rows])

    def store_later(self, group: RememberedGroup) -> None:
        """Writes what changed; nobody waits for it."""
        written = self.store(group)
        if written is not None:
            written.listen(_heard)

    def write(self, group: RememberedGroup, rows: list[Row]) -> Deferred[None]:
        """Writes rows, in as many batches as they need; what cannot be written is owed.

        A start finds all batches, or the first ones: a group on its way, whose rest is owed.
        """
        answer: Deferred[None] = Deferred()

        def written(_: None, error: BaseException | None) -> None:
            if error is None:
                answer.resolve(None)
                return
            event("group_not_stored", "error", group=group.group_id, error=error)
            group.owed = {**dict(rows), **group.owed}
            answer.fail(error)

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
