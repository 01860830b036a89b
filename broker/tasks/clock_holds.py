"""Tasks that depend on the wall clock, and their behaviour while it is unverified (time.md 6).

One row for each periodic task, and one for each module that reads wall time: a new one gets a row
that says what a wrong clock would do. Tests keep both tables complete, and try every task that
waits.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Held(Enum):
    """Behaviours of a task while the clock guard suspends work by time."""

    WAITS = "does nothing"
    PARTLY = "leaves out what goes by time"
    GOES_ON = "goes on"


class HoldRow(NamedTuple):
    """Behaviour of a task in a hold, with the reason."""

    held: Held
    why: str


TASKS: Mapping[str, HoldRow] = {
    "connections": HoldRow(Held.GOES_ON, "idle and slow clients are judged by monotonic time"),
    "clock": HoldRow(Held.GOES_ON, "it is the watch"),
    "flush": HoldRow(Held.GOES_ON, "flush.ms is monotonic time; syncing removes nothing"),
    "rolling": HoldRow(Held.WAITS, "segments end by their age, and what has ended may go"),
    "retention": HoldRow(Held.PARTLY, "by size and start offset it goes on, by time it waits"),
    "tier": HoldRow(Held.PARTLY, "it copies; local segments go by size, by time they wait"),
    "orphans": HoldRow(Held.WAITS, "objects that nothing names go by their age"),
    "cleaner": HoldRow(Held.WAITS, "tombstones and markers go by their age; lags are ages"),
    "memory": HoldRow(Held.GOES_ON, "producers go by their number, not by their age"),
    "starts": HoldRow(Held.GOES_ON, "how long the broker has lived is monotonic time"),
    "deletion": HoldRow(Held.GOES_ON, "file.delete.delay.ms is monotonic; what goes was deleted"),
    "offsets": HoldRow(Held.WAITS, "committed offsets go by the age of their commit or group"),
    "telemetry": HoldRow(Held.GOES_ON, "how long a client is silent is monotonic time"),
    "transactions": HoldRow(
        Held.GOES_ON, "time-outs are monotonic; whole ones after an unverified start"
    ),
    "transactional_ids": HoldRow(Held.WAITS, "ids go by the age of their last use"),
    "share_snapshots": HoldRow(Held.GOES_ON, "which are old goes by offsets, not by their times"),
    "share_pruning": HoldRow(Held.GOES_ON, "records go that nothing is read from, whatever age"),
    "share_starts": HoldRow(Held.GOES_ON, "offsets are asked of other nodes"),
    "ends": HoldRow(Held.GOES_ON, "likewise"),
    "audit": HoldRow(Held.GOES_ON, "it writes rows, and removes none"),
    "security_audit": HoldRow(Held.GOES_ON, "likewise"),
    "waits": HoldRow(Held.GOES_ON, "fetches that wait follow a test clock's monotonic hand"),
    "groups": HoldRow(Held.GOES_ON, "sessions and rebalances are monotonic time"),
    "producers": HoldRow(Held.WAITS, "producers go by the age of their last batch"),
    "tokens": HoldRow(Held.WAITS, "delegation tokens go at the end of their time"),
    "checkpoints": HoldRow(Held.GOES_ON, "it writes offsets, which are no times"),
    "disk": HoldRow(Held.GOES_ON, "free space, by the machine's monotonic time"),
    "scrubber": HoldRow(Held.GOES_ON, "it reads; a wrong clock begins a pass early or late"),
}
"""By the name with which a task is registered."""

_SHOWN = "what it says of ages and times, to those who ask"
_STAMPS = "the time it writes down"
_REFERENCE = "what records' times are compared with; a policy may refuse them, nothing goes"
_SESSIONS = "for how long the proof of a client's name counts"

READERS: Mapping[str, str] = {
    "broker/record_times/audit_stream.py": _STAMPS,
    "broker/record_times/own_topic.py": _STAMPS,
    "broker/security/audit/trail.py": _STAMPS,
    "broker/security/audit/offline.py": _STAMPS,
    "broker/guards/clock_guard.py": "it is the watch",
    "broker/guards/crash_guard.py": "starts are counted by wall time; no data depends on it",
    "broker/record_times/offenders.py": "how often a warning is repeated",
    "broker/groups/consumer/groups.py": _STAMPS,
    "broker/groups/consumer/migration.py": _STAMPS,
    "broker/groups/consumer/topic_matching.py": "when expressions are looked up again",
    "broker/groups/redrive/progress.py": _STAMPS,
    "broker/groups/share/groups.py": "stamps, and how soon a group is assigned again",
    "broker/groups/streams/groups.py": "stamps, and how soon a group is assigned again",
    "broker/groups/coordinator.py": "stamps; `expire` waits in a hold",
    "broker/groups/classic/rebalance.py": _STAMPS,
    "broker/handlers/describe_quorum.py": _SHOWN,
    "broker/handlers/list_offsets.py": "the age of a file that is being written",
    "broker/handlers/list_transactions.py": _SHOWN,
    "broker/handlers/offset_commit.py": _STAMPS,
    "broker/handlers/txn_offset_commit.py": _STAMPS,
    "broker/runtime/test_clock.py": "it is the clock",
    "broker/runtime/event_log.py": _STAMPS,
    "broker/quotas/enforcement.py": "rates of clients",
    "broker/quotas/mutations.py": "rates of clients",
    "broker/daemon/refusals.py": "a clock before 2026 refuses the start",
    "broker/topics/removal_warning.py": _SHOWN,
    "broker/daemon/fleet.py": _SHOWN,
    "broker/daemon/oauth_listeners.py": "whether a token has begun, and has not ended",
    "broker/daemon/sasl_listeners.py": _SESSIONS,
    "broker/daemon/serve.py": "the clock of tests",
    "broker/daemon/services.py": _SESSIONS,
    "broker/daemon/tls_listeners.py": "an ended certificate refuses a start or its renewal",
    "broker/security/sasl/sessions.py": _SESSIONS,
    "broker/security/sasl/signed_tokens.py": "whether a token has begun, and has not ended",
    "broker/server/doors.py": _SESSIONS,
    "broker/share/letters/dead_letters.py": _STAMPS,
    "broker/share/locks.py": _SHOWN,
    "broker/share/served_partition.py": "where a group begins that wants the last hours",
    "broker/share/waits/intake.py": "when records are due; a jump of it makes none due early",
    "broker/share/state/coordinator.py": _STAMPS,
    "broker/state/state_topic.py": _STAMPS,
    "broker/tasks/cleaner.py": "its verdicts; it asks the watch before and after them",
    "broker/tasks/retention.py": "its plans, which know of the hold",
    "broker/tasks/rolling.py": "it asks the watch before each roll",
    "broker/daemon/periodic_tasks.py": "`expire_producers` waits in a hold",
    "broker/tasks/scrubber.py": "when a pass was begun and ended",
    "broker/transactions/coordinator.py": "stamps; `expire` waits in a hold",
    "broker/transactions/markers.py": _STAMPS,
    "broker/transactions/steps.py": "stamps; time-outs after a start are whole in a hold",
    "broker/security/delegation/tokens.py": "tokens let nobody in after their end; the sweep waits",
    "broker/fleet/exchange/export.py": _STAMPS,
    "broker/fleet/exchange/import_directory.py": _STAMPS,
    "broker/tier/tiering.py": "local retention knows of the hold",
    "broker/tier/segment_endings.py": "no segment ends early in one",
    "storage/backup/run.py": _STAMPS,
    "storage/backup/run_clock.py": "order of the manifests of one place; it never goes back",
    "storage/backup/still_log.py": "how long it waits for the mark of a log written just now",
    "storage/tier/cluster_picture.py": _STAMPS,
    "storage/tier/manifests/chain.py": _STAMPS,
    "storage/tier/orphans.py": "objects that nothing names go by their age; the sweep waits",
    "storage/tier/restore.py": _STAMPS,
    "storage/log/appender.py": _REFERENCE,
    "storage/cleaner/cleaner.py": "taken when the run is decided, after the watch was asked",
    "storage/directory/data_directory.py": _STAMPS,
    "storage/directory/log_manager.py": "restored producers are judged at a start without a hold",
    "storage/segment/segments.py": _STAMPS,
}
"""Modules that read wall time; commands, HTTP pages and metrics tell of it and do not act."""
