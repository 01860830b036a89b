"""Backoff of logs whose cleaning failed: each wait is twice as long as the last, up to a limit.

A store may be back at any time: for it the first wait and the limit are short.
"""

from typing import NamedTuple

from broker.runtime.growing_wait import growing_wait
from protocol.errors import KafkaError
from storage.errors import CorruptLog, DiskError, StorageError
from storage.tier.carrying import NotAsSent
from storage.tier.port import StoreError

DAMAGE, DISK, STORE, REFUSED, BUG = KINDS = "damage", "disk", "store", "refused", "bug"
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 60.0, 3600.0
STORE_RETRY_SECONDS, LONGEST_STORE_RETRY_SECONDS = 2.0, 60.0


class SetAside(NamedTuple):
    """A log that is left alone until a moment (monotonic seconds)."""

    reason: str
    kind: str
    """The reason in a word, one of `KINDS`."""
    until: float
    failures: int
    """Number of failures in a row."""

    @property
    def retry_seconds(self) -> float:
        """The wait before the next try, in seconds."""
        first, longest = RETRY_SECONDS, LONGEST_RETRY_SECONDS
        if self.kind == STORE:
            first, longest = STORE_RETRY_SECONDS, LONGEST_STORE_RETRY_SECONDS
        return growing_wait(first, longest, self.failures)


def set_aside(before: SetAside | None, error: Exception, now: float) -> SetAside:
    """After a run that ended in `error` at `now`; `before`: what became of the last one."""
    kind = _kind_of(error)
    reason = str(error) if kind != BUG else f"a bug: {error!r}"
    failures = before.failures + 1 if before is not None else 1
    found = SetAside(reason, kind, now, failures)
    return found._replace(until=now + found.retry_seconds)


def _kind_of(error: Exception) -> str:
    match error:
        case NotAsSent():  # spoilt on its way: the log itself is sound
            return STORE
        case CorruptLog():
            return DAMAGE
        case StoreError():
            return STORE
        case DiskError():
            return DISK
        case StorageError() | KafkaError():
            return REFUSED
        case _:
            return BUG
