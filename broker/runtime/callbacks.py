"""Callbacks of others: an error in one must not take along the mechanism that calls them.

Whoever calls what others registered (timers, waiters, commits, turns, listeners) catches what comes
out of each, reports it here, and goes on with the next. Used from the event loop only.
"""

import traceback
from collections import Counter

from broker.runtime.event_log import event

failures: Counter[str] = Counter()
"""Callbacks of this process that ended in an error nobody expected, by who called them."""


def failed(caller: str, error: BaseException) -> None:
    """A callback ended in an error; `caller` is one of a closed set of words (a metric label)."""
    failures[caller] += 1
    trace = "".join(traceback.format_exception(error))
    event("callback_failed", "error", caller=caller, error=repr(error), trace=trace)
