"""Rows of one group that are not known to be durable: under way, or refused.

Of several writes of one key the last one counts, whichever fails: an older row is never written
after a newer one. Used from the event loop only.
"""

from collections.abc import Container, Sequence

from broker.groups.classic.members import Footprint
from broker.runtime.deferred import Deferred
from broker.runtime.memory_account import ENTRY_BYTES
from broker.state.state_topic import Row


class OwedRows:
    """Rows that the log has yet to take, and those who wait for that."""

    def __init__(self, footprint: Footprint) -> None:
        """Nothing is owed; what refused rows take is counted in `footprint`."""
        self._footprint = footprint
        self._is_over = False
        self._rows: dict[bytes, tuple[int, bytes | None]] = {}
        self._refused: dict[bytes, bytes | None] = {}
        self._waiting: dict[int, list[Deferred[None]]] = {}
        self._number = 0
        self._error: BaseException | None = None

    def __len__(self) -> int:
        """Number of keys whose last row is not known to be durable."""
        return len(self._rows)

    def all(self) -> list[Row]:
        """The last row of each such key."""
        return [(key, value) for key, (_, value) in self._rows.items()]

    def refused(self, but: Container[bytes] = ()) -> list[Row]:
        """Rows that have to be written again, `but` those of some keys."""
        return [(key, value) for key, value in self._refused.items() if key not in but]

    def begin(self, rows: Sequence[Row]) -> int:
        """A write of these rows begins; its number."""
        self._number += 1
        self._waiting[self._number] = []
        for key, value in rows:
            self._rows[key] = self._number, value
            self._forget_refused(key)
        return self._number

    def follow(self) -> Deferred[None] | None:
        """Settled as the last write under way; None when there is none."""
        last = next(reversed(self._waiting.values()), None)
        if last is None:
            return None
        answer: Deferred[None] = Deferred()
        last.append(answer)
        return answer

    def end(self, number: int, error: BaseException | None, rows: Sequence[Row]) -> "WriteOutcome":
        """A write ended; what those hear who wait for it, and for all that was before."""
        for key, value in dict(rows).items():
            if self._rows.get(key, (0,))[0] != number:
                continue
            if error is None:
                del self._rows[key]
            elif not self._is_over:
                self._refused[key] = value
                self._footprint.total_bytes += _size_of(key, value)
        if error is not None:
            self._error = error
        waiting = self._waiting.pop(number)
        return WriteOutcome(self._error if self._refused else error, waiting)

    def _forget_refused(self, key: bytes) -> None:
        if key in self._refused:
            self._footprint.total_bytes -= _size_of(key, self._refused.pop(key))

    def close(self) -> None:
        """The group is no more, here: nothing is written again."""
        self._is_over = True
        for key in list(self._refused):
            self._forget_refused(key)


def _size_of(key: bytes, value: bytes | None) -> int:
    return ENTRY_BYTES + len(key) + len(value or b"")


class WriteOutcome:
    """The end of a write."""

    def __init__(self, error: BaseException | None, waiting: Sequence[Deferred[None]]) -> None:
        """`error` is that of the write, or of an earlier one whose rows are still owed."""
        self._error = error
        self._waiting = waiting

    def say(self, answer: Deferred[None]) -> None:
        """Settles the answer of the write, and of who waits for it."""
        for each in (answer, *self._waiting):
            if self._error is None:
                each.resolve(None)
            else:
                each.fail(self._error)
