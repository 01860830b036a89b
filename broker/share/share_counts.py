"""Counts of what share groups were given, and of what became of it, for metrics."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

LATE_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 3600.0)
"""Bounds of the histogram of lateness."""


@dataclass(slots=True)
class ShareCounts:
    """Since the start of the broker. Written from the event loop, read from any thread."""

    acknowledged: Counter[int] = field(default_factory=Counter)
    """Records by the type of their acknowledgement, renewals among them."""
    delivered: int = 0
    """Records that members acquired, holes and control records among them."""
    locks_ended: int = 0
    """Acquisitions that ended because their time was over."""
    sessions_lost: int = 0
    """Sessions that ended with their connection."""
    waiting: int = 0
    """Records that are not due yet; no sum, but as of now."""
    lost_waiting: int = 0
    """Records that the log lost before they were due."""
    delays_bounded: int = 0
    """Records that asked for a later time than they may wait for."""
    delays_unusable: int = 0
    """Headers `horolog-deliver-at` that say no time."""
    late: list[int] = field(default_factory=lambda: [0] * (len(LATE_SECONDS) + 1))
    """Acquisitions by how late the record was that had been due for longest, by bound."""

    def was_late(self, late_ms: int) -> None:
        """Counts an acquisition of a group with a delay."""
        self.late[bisect_left(LATE_SECONDS, late_ms / 1000)] += 1
