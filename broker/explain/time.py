"""Pages of the clock, retention, rolling and compaction."""

from collections.abc import Mapping

from broker.explain.page import Page

_CLOCK = (
    "Look at the machine's clock. If it is right: horolog clock confirm. Else set it right; the "
    "hold ends by itself after horolog.clock.hold.ms."
)

PAGES: Mapping[str, Page] = {
    "clock_stepped": Page(
        "The wall clock jumped against the monotonic one. Until the hold is over nothing is "
        "removed, rolled or compacted by time; writing and reading go on.",
        _CLOCK,
    ),
    "start_far_from_last_write": Page(
        "The broker was started at a time far from the last write in its data directory: it was "
        "down for long, or the clock is wrong. Until the hold is over nothing is removed, rolled "
        "or compacted by time.",
        _CLOCK,
    ),
    "clock_hold_over": Page("The clock has run without a step for long enough: the hold is over."),
    "clock_confirmed": Page("An operator has confirmed the clock: the hold is over."),
    "segments_removed": Page(
        "Retention removed the oldest segments of a partition. because names the limit, judged_by "
        "the clock, time_ms the time that was judged.",
    ),
    "retention_blocked": Page(
        "Segments are past their deadline but cannot go, because an older one stays: oldest first "
        "is the rule. The line names the one that retains them, and until when.",
        "horolog segments TOPIC shows what would free it. A record from the future is the usual "
        "cause where horolog.retention.clock is record; earlier or arrival end that.",
    ),
    "retention_failed": Page(
        "Segments that should go could not be removed. They are tried again with the next round.",
        "Look at the disk and the rights of the data directory.",
    ),
    "segment_rolled": Page(
        "The timer ended a segment, as segment.ms or max.compaction.lag.ms say."
    ),
    "roll_failed": Page(
        "A segment that was due could not be ended. It is tried again in a moment.",
        "Look at the disk: a new segment needs a few blocks.",
    ),
    "log_cleaned": Page(
        "A run of compaction over a log ended; the line says what it read, wrote and removed."
    ),
    "log_not_cleaned": Page(
        "A log could not be compacted and is backed off: it is tried again after retry_seconds, "
        "each time twice as long (up to a minute where the tier's store is away, else up to an "
        "hour), and at once when its settings change. Records that a tombstone should have erased "
        "may still be there.",
        "reason says what to do: damage (horolog verify), no space, a batch too large to unpack "
        "(max.decompressed.message.bytes), the tier's store (tier_failed, tier_unreachable, "
        "tier_refused). horolog compaction TOPIC shows the state.",
    ),
}
