"""The facts of a log that compaction is chosen by, and where each log's clean part ends.

Gathering facts reads no file once `learn_ages` has looked; without bounds on the lag no time is
needed, and nothing is looked up. First dirty offsets are kept in Kafka's file (semantics.md 8.6,
9.1), the delete horizons that are due next in one of ours beside it, of the same form.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from config.topic import TopicConfig
from protocol.records.batch import NO_TIMESTAMP
from storage.env import FileSystem
from storage.errors import DiskError
from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import CLEANER_HORIZONS_FILE, CLEANER_OFFSETS_FILE
from storage.log.compaction_state import CleanPart, Judged
from storage.log.log import Log
from storage.retention.cleanability import (
    UNLIMITED_MS,
    CleaningFacts,
    SegmentAge,
    Verdict,
    age_of,
    began_ms,
    judge,
)
from storage.retention.limits import cleaning_limits_of
from storage.retention.plan import SegmentFacts
from storage.segment.segment import UNKNOWN, Segment
from storage.segment.times import learn_first_times, learn_times

Name = tuple[str, int]


class CleanerOffsets:
    """Ends of the clean part of each log, durable. One thread at a time changes it."""

    def __init__(self, fs: FileSystem, log_dir: str) -> None:
        """Nothing is read."""
        self.first_dirty: Mapping[Name, int] = {}
        """Replaced, never changed: any thread may read."""
        self.horizons: Mapping[Name, int] = {}
        """Times when the first tombstone that stayed in a log may go (ms), likewise."""
        self._fs = fs
        self._is_known = False
        self._offsets_file = OffsetCheckpoint(fs, f"{log_dir}/{CLEANER_OFFSETS_FILE}")
        self._horizons_file = OffsetCheckpoint(fs, f"{log_dir}/{CLEANER_HORIZONS_FILE}")

    def load(self) -> list[str]:
        """Read the files; what is wrong with them. DiskError."""
        offsets, horizons = self._offsets_file.load(), self._horizons_file.load()
        self.first_dirty = {(at.topic, at.partition): end for at, end in offsets.offsets.items()}
        self.horizons = {(at.topic, at.partition): ms for at, ms in horizons.offsets.items()}
        self._is_known = offsets.damage is None and self._fs.exists(self._offsets_file.path)
        return [each for each in (offsets.damage, horizons.damage) if each is not None]

    def gaps_below(self, name: Name) -> int | None:
        """Up to where compaction has been in a log; None when no file says so."""
        return self.first_dirty.get(name, 0) if self._is_known else None

    def clean_part(self, name: Name) -> CleanPart:
        """The part of a log in which compaction has been. From any thread."""
        end_offset = self.first_dirty.get(name, 0)  # a run tells of its horizon first
        return CleanPart(end_offset, self.horizons.get(name, NO_TIMESTAMP))

    def settle(self, ends: Mapping[Name, int]) -> None:
        """`ends`: the logs that exist, and where they end. From now on a file says what is clean.

        A log that ends before its clean part does was cut: it is dirty from its start, also for the
        next start, when it may end behind that part.
        """
        found = self.first_dirty
        self.first_dirty = {
            name: offset for name, offset in found.items() if offset <= ends.get(name, -1)
        }
        self.horizons = {name: at for name, at in self.horizons.items() if name in self.first_dirty}
        if not self._is_known or self.first_dirty != found:
            with suppress(DiskError):  # a full disk: the next start knows no more than this one
                self._save()

    def cleaned(self, log: Log, first_dirty: int, horizon_ms: int) -> None:
        """A run has ended. DiskError: known here, forgotten by the next start, and done again."""
        name = log.topic, log.partition
        horizons = {key: value for key, value in self.horizons.items() if key != name}
        self.horizons = horizons if horizon_ms == NO_TIMESTAMP else {**horizons, name: horizon_ms}
        self.first_dirty = {**self.first_dirty, name: first_dirty}
        self._save()

    def forget(self, name: Name) -> None:
        """The log is gone, or begins again: durable when it returns. DiskError: ask again."""
        if not (self._offsets_file.may_hold(name) or self._horizons_file.may_hold(name)):
            return
        self.first_dirty = {key: at for key, at in self.first_dirty.items() if key != name}
        self.horizons = {key: at for key, at in self.horizons.items() if key != name}
        self._save()

    def _save(self) -> None:
        """Horizons first: who reads the offsets first has none of a later run than horizons."""
        self._horizons_file.save(self.horizons)
        self._offsets_file.save(self.first_dirty)


def is_compacted(config: TopicConfig) -> bool:
    """True when the topic's policy asks for compaction."""
    return "compact" in config.cleanup_policy


def learn_ages(log: Log, at_most: int) -> bool:
    """Look up the times of so many segments that are needed; whether all are known now.

    DiskError, CorruptLog.
    """
    segments = log.snapshot.segments
    if not _needs_ages(log.config):
        log.compaction.ages = None
        return True
    if _ages_of(log, segments) is not None:
        return True
    for segment in segments[:-1]:
        if not segment.size_bytes or _is_known(segment):
            continue
        if not at_most:
            return False
        at_most -= 1
        learn_times(segment, segment.size_bytes, *log.search.lookup)
        learn_first_times(segment, segment.size_bytes, *log.search.lookup)
    log.compaction.ages = segments, [_age_of(segment) for segment in segments[:-1]]
    return True


def facts_of(log: Log, offsets: CleanerOffsets) -> CleaningFacts:
    """Facts for the choice of a log, after `learn_ages`. Reads no file."""
    snapshot = log.snapshot
    closed = snapshot.segments[:-1]
    name = log.topic, log.partition
    ages = _ages_of(log, snapshot.segments)
    if ages is None:
        age_of = _age_of if _needs_ages(log.config) else _ageless
        ages = [age_of(segment) for segment in closed]
    bound = end_in_store(log, snapshot.last_stable_offset)
    unsynced = next((each.base_offset for each in closed if not each.synced), bound)
    return CleaningFacts(
        snapshot.log_start_offset,
        snapshot.log_end_offset,
        offsets.first_dirty.get(name, -1),
        min(bound, unsynced),
        ages,
        snapshot.active.base_offset,
        offsets.horizons.get(name, NO_TIMESTAMP),
    )


def end_in_store(log: Log, offset: int) -> int:
    """The offset, at most that up to which the tier's store has a log of which it has a part alone.

    There a segment never lacks a key whose later value the store has not got.
    """
    return min(offset, log.tiers.uploaded_end) if log.snapshot.first_local else offset


def kept_verdict(log: Log, offsets: CleanerOffsets, now_ms: int) -> Verdict | None:
    """The last verdict if nothing has changed since, which is so of most logs; or None."""
    known, snapshot = log.compaction.judged, log.snapshot
    if (
        known is None
        or now_ms > known.until_ms
        or known.segments is not snapshot.segments
        or known.config is not log.config
        or known.start_offset != snapshot.log_start_offset
    ):
        return None
    name = log.topic, log.partition
    is_same = known.first_dirty == offsets.first_dirty.get(name) and name not in offsets.horizons
    return known.verdict if is_same else None


def verdict_on(log: Log, offsets: CleanerOffsets, now_ms: int) -> Verdict:
    """Cleanability of the log at `now_ms`; after `learn_ages`."""
    kept = kept_verdict(log, offsets, now_ms)
    if kept is not None:
        return kept
    snapshot, name = log.snapshot, (log.topic, log.partition)
    verdict = judge(facts_of(log, offsets), cleaning_limits_of(log.config), now_ms)
    is_blocked = verdict.first_uncleanable < snapshot.active.base_offset
    stays = not is_blocked and not verdict.delay_ms and name not in offsets.horizons
    until_ms = verdict.deadline_ms if verdict.deadline_ms != NO_TIMESTAMP else UNLIMITED_MS
    log.compaction.judged = (
        Judged(
            snapshot.segments,
            log.config,
            snapshot.log_start_offset,
            offsets.first_dirty.get(name),
            until_ms,
            verdict,
        )
        if stays
        else None
    )
    return verdict


def began_of(segment: Segment) -> int:
    """The begin of a segment whose times are known, in ms."""
    return began_ms(segment.first_timestamp, segment.first_arrival_ms)


def _needs_ages(config: TopicConfig) -> bool:
    return config.min_compaction_lag_ms > 0 or config.max_compaction_lag_ms != UNLIMITED_MS


def _ages_of(log: Log, segments: Sequence[Segment]) -> Sequence[SegmentAge] | None:
    """As learned before, if these are the log's segments still; closed ones do not change."""
    known = log.compaction.ages
    return known[1] if known is not None and known[0] is segments else None


def _is_known(segment: Segment) -> bool:
    return UNKNOWN not in {
        segment.max_timestamp,
        segment.first_timestamp,
        segment.first_arrival_ms,
        segment.last_arrival_ms,
    }


def _ageless(segment: Segment) -> SegmentAge:
    return SegmentAge(segment.base_offset, segment.size_bytes, NO_TIMESTAMP, NO_TIMESTAMP)


def _age_of(segment: Segment) -> SegmentAge:
    facts = SegmentFacts(
        segment.base_offset,
        segment.size_bytes,
        segment.max_timestamp,
        segment.last_arrival_ms,
        segment.mtime_ms,
    )
    return age_of(facts, began_of(segment))
