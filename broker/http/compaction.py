"""What the cleaner found of a log at its last look, and why it leaves it alone if it does."""

from typing import TYPE_CHECKING

from broker.instants import instant_or_none

if TYPE_CHECKING:
    from broker.app import Broker
    from storage.log import Log


def compaction_state(broker: "Broker", log: "Log") -> dict[str, object] | None:
    """None when the topic is not compacted, or before the first look at it."""
    verdict = broker.cleaner.verdicts.get(log)
    if verdict is None:
        return None
    aside = broker.cleaner.set_aside.get(log)
    return {
        "first_dirty_offset": verdict.first_dirty,
        "first_uncleanable_offset": verdict.first_uncleanable,
        "clean_bytes": verdict.clean_bytes,
        "cleanable_bytes": verdict.cleanable_bytes,
        "dirty_ratio": round(verdict.dirty_ratio, 6),
        "is_eligible": verdict.is_eligible,
        "because": str(verdict.because),
        "overdue_ms": verdict.delay_ms,
        "deadline": instant_or_none(verdict.deadline_ms),
        "set_aside_because": None if aside is None else aside.reason,
    }
