"""Back-off between two deliveries of a record to a share group (`horolog.share.retry.backoff.ms`).

After a release or the end of a lock a record is to be had again only when its wait is over: twice
as long after each delivery. The end of a session begins none, for the member did not judge the
record. Nothing of it is stored: a restart of the broker forgets it.
"""

from typing import Final

from broker.share.states import LockTimer, RetryWait, ShareRules

MAX_DOUBLINGS: Final = 31
"""By then the longest back-off that can be set is reached."""


class Backoff:
    """The waits that one event begins: one for each number of deliveries among its records."""

    __slots__ = ("_rules", "_waits")

    def __init__(self, rules: ShareRules) -> None:
        """No wait, and none ever where the group's back-off is 0."""
        self._rules = rules
        self._waits: dict[int, RetryWait] = {}

    def of(self, first: int, last: int, deliveries: int) -> RetryWait | None:
        """The wait of offsets, both included, after so many deliveries; None without one."""
        if not self._rules.retry_backoff_ms:
            return None
        wait = self._waits.get(deliveries)
        if wait is None:
            wait = self._waits[deliveries] = RetryWait(first, last)
        wait.first, wait.last = min(wait.first, first), max(wait.last, last)
        return wait

    def begin(self, timer: LockTimer) -> list[RetryWait]:
        """Starts them all."""
        for deliveries, wait in self._waits.items():
            timer.start_wait(wait, retry_after_ms(self._rules, deliveries))
        return list(self._waits.values())


def retry_after_ms(rules: ShareRules, deliveries: int) -> int:
    """Time from the end of so many deliveries to the next one: doubled each time, bounded."""
    doubled = rules.retry_backoff_ms << min(max(deliveries - 1, 0), MAX_DOUBLINGS)
    return min(doubled, rules.retry_backoff_max_ms)
