"""Counts of what share groups were given, and of what became of it, for metrics."""

from collections import Counter
from dataclasses import dataclass, field


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
