"""Effect of the next round of retention, with the present settings or assumed ones.

Decides on snapshots, reads no file and changes nothing; the times of all segments must be known
(`storage.log.lifecycle.learn_times`). A hold of the clock is not
considered: it only delays the removals.
"""

from typing import NamedTuple

from config.topic import TopicConfig
from storage.log.lifecycle import log_limits
from storage.log.log import Log
from storage.retention.plan import SegmentDecision, SegmentFacts, plan
from storage.segment.times import facts_of


class Leaving(NamedTuple):
    """Removals from one log. Times in ms, None when nothing leaves or has a time.

    `reasons`: number of segments by reason.
    """

    segments: int
    size_bytes: int
    first_offset: int
    start_offset: int
    """The log start offset after it: offsets from `first_offset` to before it go."""
    oldest_ms: int | None
    newest_ms: int | None
    reasons: dict[str, int]

    @property
    def offsets(self) -> int:
        """Number of offsets that go."""
        return self.start_offset - self.first_offset


def preview(log: Log, config: TopicConfig, now_ms: int) -> Leaving:
    """The removals that `config` would cause in `log` at `now_ms`."""
    facts, offsets = facts_of(log.snapshot)
    decided = plan(facts, offsets, log_limits(log, config), now_ms)
    leaving = decided.leaving
    times = [ms for ms in map(_time_of, facts, leaving) if ms >= 0]
    reasons: dict[str, int] = {}
    for each in leaving:
        reasons[str(each.reason)] = reasons.get(str(each.reason), 0) + 1
    return Leaving(
        len(leaving),
        sum(each.size_bytes for each in leaving),
        offsets.start_offset,
        decided.start_offset,
        min(times, default=None),
        max(times, default=None),
        reasons,
    )


def _time_of(facts: SegmentFacts, decision: SegmentDecision) -> int:
    """The time by which a segment that leaves is judged: its newest by the topic's clock."""
    assert facts.base_offset == decision.base_offset
    return decision.time_ms
