"""Counters of the cleaner, for the scrape.

Changed on the event loop only, each number by one assignment; any thread may read.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from storage.cleaner.batch_cleaner import CleaningStats
from storage.log.log import Log
from storage.retention.cleanability import CleanReason, Verdict


class LastChoice(NamedTuple):
    """Facts of the last choice of a log by one cleaner (KIP-354; semantics.md 8.2)."""

    max_delay_ms: int
    """Time for which the latest of all logs had been overdue then."""
    due_by_lag: int
    """Logs that were due for nothing but `max.compaction.lag.ms`."""


class LastRun(NamedTuple):
    """The last run of one cleaner that ended well."""

    ended_ms: int
    seconds: float
    map_utilisation: float
    """Share of the map's usable slots that keys were in."""


class EndedRun(NamedTuple):
    """Plain numbers of a run over one log: the run itself would keep segments that are gone."""

    stats: CleaningStats
    map_utilisation: float


class CleanerTally:
    """Counts since the start, and the last choice and run of each cleaner, by its number."""

    def __init__(self) -> None:
        """Nothing was done."""
        self.choices: Mapping[int, LastChoice] = {}
        """Replaced, never changed."""
        self.runs: Mapping[int, LastRun] = {}
        """Likewise."""
        self.ended_runs = 0
        self.failures: Mapping[str, int] = {}
        """Runs that ended otherwise, by the kind of reason; likewise."""
        self.read_bytes = 0
        self.written_bytes = 0
        self.removed_records = 0
        self.dead_threads = 0
        """Cleaners whose last round ended in an error; the next round starts them again."""

    def chose(self, worker: int, seen: Iterable[tuple[Log, Verdict]]) -> None:
        """A cleaner has found a log to clean, among these."""
        delay_ms = due_by_lag = 0
        for log, verdict in seen:
            delay_ms = max(delay_ms, verdict.delay_ms)
            due_by_lag += (
                verdict.because is CleanReason.OVERDUE
                and verdict.dirty_ratio <= log.config.min_cleanable_dirty_ratio
            )
        self.choices = {**self.choices, worker: LastChoice(delay_ms, due_by_lag)}

    def moved(self, read_bytes: int, written_bytes: int) -> None:
        """A piece of a run is done."""
        self.read_bytes += read_bytes
        self.written_bytes += written_bytes

    def ended(self, worker: int, run: LastRun, stats: CleaningStats) -> None:
        """A run ended well."""
        self.runs = {**self.runs, worker: run}
        self.ended_runs += 1
        self.removed_records += stats.records_read - stats.records_kept

    def failed(self, kind: str) -> None:
        """A run ended otherwise."""
        self.failures = {**self.failures, kind: self.failures.get(kind, 0) + 1}

    def has_workers(self, count: int) -> None:
        """Sets the number of cleaners; facts of the others are dropped."""
        self.choices = {each: last for each, last in self.choices.items() if each < count}
        self.runs = {each: last for each, last in self.runs.items() if each < count}
