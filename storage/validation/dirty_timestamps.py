"""Time rules of a topic, and the findings of a look at a dirty batch (time.md 2).

A good batch costs two comparisons: of its smallest and its largest time, which are known. Only then
are its records looked at again, by compiled walkers and in chunks, so that no batch takes more
memory than it has itself. Pure: no clock, no log.
"""

from array import array
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, overload

from protocol.records.faults import (
    COLUMNS,
    FaultTexts,
    collect_faults,
    text_of,
    texts_of,
)
from protocol.records.gaps import NO_EDGES, Edges, note_edges
from protocol.records.mistimed import (
    BAD_VERDICTS,
    GUESSES,
    KEYLESS,
    TALLY_COLUMNS,
    VERDICTS,
    Limits,
    Tally,
    demand_keys,
    judge_times,
)
from protocol.records.walk import outline_records
from storage.timestamps import HINTS, INT64_MAX, INT64_MIN, Direction, Suspicion, bounds
from storage.zones.gaps import gap_flags
from storage.zones.rows import DIRTY_FUTURE, DIRTY_PAST

if TYPE_CHECKING:
    from config.topic import TopicConfig

CHUNK_RECORDS = 1024  # so few that what they take is memory that was used just before
OUTLINE_NUMBERS = 8
FAR_FUTURE_MS = 3_600_000
"""A stored time further ahead is remembered, however wide the bounds: Kafka's default bound."""
MAX_LISTED_FAULTS = 100_000
"""So many bad records are named in one answer; that is 16 MB of text. All are counted."""

Buffer = bytes | bytearray | memoryview
_SIDES = (
    Direction.PAST,
    Direction.FUTURE,
    Direction.EXPIRED,
    Direction.FUTURE,
    Direction.NONE,
)
_GUESSES = tuple(Suspicion)


class Action(StrEnum):
    """Outcomes for a record with a bad time."""

    REJECTED = "rejected"
    ACCEPTED = "accepted"
    CLAMPED = "clamped"
    RESTAMPED = "restamped"
    QUARANTINED = "quarantined"
    STORED = "stored"
    """In bounds, so no policy applied: expired on arrival, far in the future, or without time."""


class DirtyFinding(NamedTuple):
    """Records of one batch that are off in the same way. Indexes count in the batch."""

    direction: Direction
    reason: Suspicion
    action: Action
    count: int  # type: ignore[assignment]  # hides tuple.count
    first: int
    last: int
    worst_ms: int
    worst_at: int


class DirtyTimes(NamedTuple):
    """Findings in a batch that arrived at `arrival_ms`."""

    arrival_ms: int
    findings: tuple[DirtyFinding, ...]

    @property
    def set_aside(self) -> int:
        """Records that went to the quarantine."""
        return sum(f.count for f in self.findings if f.action is Action.QUARANTINED)


class TimeRules:
    """Rules for record times from a topic's settings; replaced when they change."""

    __slots__ = (
        "_after_ms",
        "_before_instant",
        "_before_ms",
        "_expires_ms",
        "_limits",
        "action",
        "stamps",
    )

    def __init__(self, config: "TopicConfig") -> None:
        """Read the settings once."""
        self.action = _ACTIONS[config.horolog_timestamp_policy]
        """Action for records out of bounds."""
        self.stamps = config.message_timestamp_type == "LogAppendTime"
        self._before_ms = config.message_timestamp_before_max_ms
        self._after_ms = config.message_timestamp_after_max_ms
        expires = "delete" in config.cleanup_policy and (
            config.horolog_retention_clock in {"record", "earlier"}
        )
        keeps = config.retention_ms if expires else -1
        self._expires_ms = keeps if keeps >= 0 else INT64_MAX
        self._before_instant = config.horolog_retention_before_timestamp if expires else -1
        self._limits = self._limits_at(0)

    def limits(self, now_ms: int) -> Limits:
        """Limits of record times at `now_ms`; open where the broker stamps."""
        limits = self._limits
        if limits.now != now_ms:  # many batches come in a millisecond
            limits = self._limits = self._limits_at(now_ms)
        return limits

    def _limits_at(self, now_ms: int) -> Limits:
        if self.stamps:
            return Limits(now_ms, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX)
        low, high = bounds(now_ms, self._before_ms, self._after_ms)
        oldest = max(low, now_ms - self._expires_ms, self._before_instant)
        return Limits(now_ms, low, high, oldest, min(high, now_ms + FAR_FUTURE_MS))


class RecordFaults(Sequence[tuple[int, str]]):
    """The bad records of a refused batch, each with what is said of it (KIP-467).

    Texts are made when they are asked for, or all at once of `rows` and `texts` for the wire.
    """

    __slots__ = ("rows", "texts")

    def __init__(self, rows: "array[int]", texts: FaultTexts) -> None:
        """Three numbers a record: index, time, verdict."""
        self.rows: array[int] = rows
        self.texts: FaultTexts = texts

    def __len__(self) -> int:
        return len(self.rows) // COLUMNS

    @overload
    def __getitem__(self, place: int) -> tuple[int, str]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[int, str]]: ...
    def __getitem__(self, place: int | slice) -> tuple[int, str] | list[tuple[int, str]]:
        """Index in the batch, and the text."""
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        at = range(len(self))[place] * COLUMNS
        index, timestamp, verdict = self.rows[at : at + COLUMNS]
        return index, text_of(timestamp, verdict, self.texts)

    @property
    def mistimed(self) -> bool:
        """True when one of them is bad for its time."""
        return any(verdict < KEYLESS for verdict in self.rows[2::COLUMNS])


class Chunk(NamedTuple):
    """Some records of a batch that were judged: `first` is the index of the first of them."""

    first: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    outline: "array[int]"
    verdicts: bytearray


class TimeSurvey:
    """Goes over the records of a batch that was found sound, and judges each one's time."""

    __slots__ = ("_base_timestamp", "_count", "_edges", "_limits", "_payload", "_tally")

    def __init__(self, payload: Buffer, count: int, base_timestamp: int, limits: Limits) -> None:
        """Nothing is looked at yet."""
        self._payload = payload
        self._count = count
        self._base_timestamp = base_timestamp
        self._limits = limits
        self._tally = array("q", bytes(8 * TALLY_COLUMNS * VERDICTS))
        self._edges = array("q", NO_EDGES)

    def chunks(self) -> Iterator[Chunk]:
        """All records, once. A chunk is good until the next one."""
        size = min(CHUNK_RECORDS, self._count)
        outline = array("q", bytes(8 * OUTLINE_NUMBERS * size))
        verdicts = bytearray(size)
        at = 0
        for first in range(0, self._count, CHUNK_RECORDS):
            count = min(size, self._count - first)
            at = outline_records(self._payload, at, first, count, self._base_timestamp, outline)
            judge_times(outline, first, count, self._limits, verdicts, self._tally)
            note_edges(outline, count, self._limits.oldest, self._limits.latest, self._edges)
            yield Chunk(first, count, outline, verdicts)

    @property
    def edges(self) -> Edges:
        """The times nearest to the limits, of the records that were judged."""
        return Edges(*self._edges)

    def seen(self, action: Action, *, is_stored: bool = True) -> DirtyTimes:
        """The findings; `action` is the outcome for records out of bounds.

        Of a batch that is not stored, nothing is said about those within.
        """
        findings = tuple(
            _finding(verdict, action, self._tally)
            for verdict in range(1, VERDICTS if is_stored else BAD_VERDICTS)
            if self._tally[verdict * TALLY_COLUMNS]
        )
        return DirtyTimes(self._limits.now, findings)


def look_over(
    payload: Buffer, count: int, base_timestamp: int, limits: Limits, action: Action
) -> tuple[DirtyTimes, Edges]:
    """Findings in a batch that is stored as it was sent, and the edges of its times."""
    survey = TimeSurvey(payload, count, base_timestamp, limits)
    for _ in survey.chunks():
        pass
    return survey.seen(action), survey.edges


def list_faults(
    payload: Buffer,
    count: int,
    base_timestamp: int,
    limits: Limits,
    *,
    times_count: bool,
    keys_required: bool,
) -> tuple[RecordFaults, DirtyTimes]:
    """Every bad record of a batch that is refused: for its time, if `times_count`, or its key."""
    survey = TimeSurvey(payload, count, base_timestamp, limits)
    rows = array("q")
    for chunk in survey.chunks():
        if keys_required:
            demand_keys(chunk.outline, chunk.count, chunk.verdicts)
        if len(rows) < MAX_LISTED_FAULTS * COLUMNS:
            rows += collect_faults(
                chunk.outline, chunk.first, chunk.count, chunk.verdicts,
                BAD_VERDICTS if times_count else 1, KEYLESS,
            )  # fmt: skip
    del rows[MAX_LISTED_FAULTS * COLUMNS :]
    seen = survey.seen(Action.REJECTED, is_stored=False)
    return RecordFaults(rows, _texts(limits)), seen if times_count else seen._replace(findings=())


def faults_of_all(count: int, text: str) -> RecordFaults:
    """A list in which every record of a batch has the same fault, which is not its time."""
    listed = min(count, MAX_LISTED_FAULTS)
    rows = array("q", bytes(8 * COLUMNS * listed))
    rows[0::COLUMNS] = array("q", range(listed))
    rows[2::COLUMNS] = array("q", [KEYLESS]) * listed
    return RecordFaults(rows, texts_of("", (), text))


def zone_flags(
    min_timestamp: int, max_timestamp: int, limits: Limits, edges: Edges = NO_EDGES
) -> int:
    """Flags of the zone map for a batch with these times, whatever their source."""
    flags = DIRTY_FUTURE if max_timestamp > limits.latest else 0
    if min_timestamp < limits.oldest and not min_timestamp == max_timestamp == -1:
        flags |= DIRTY_PAST
    return flags | gap_flags(min_timestamp, max_timestamp, edges) if flags else flags


def _finding(verdict: int, action: Action, tally: "array[int]") -> DirtyFinding:
    side, guess = divmod(verdict - 1, GUESSES)
    row = Tally(*tally[verdict * TALLY_COLUMNS : (verdict + 1) * TALLY_COLUMNS])
    became = action if verdict < BAD_VERDICTS else Action.STORED
    return DirtyFinding(
        _SIDES[side], _GUESSES[guess], became, row.count, row.first, row.last, row.worst,
        row.worst_at,
    )  # fmt: skip


def reasons() -> list[str]:
    """Reasons of quarantined records, by verdict: `future: microseconds`."""
    return [""] + [
        f"{_SIDES[side]}: {guess}" for side in range(BAD_VERDICTS // GUESSES) for guess in _GUESSES
    ]


def _texts(limits: Limits) -> FaultTexts:
    """Short ones: there may be one for each of ten thousand records."""
    ends = (f" is before {limits.low}", f" is after {limits.high}")
    tails = ["", *(end + HINTS[guess] for end in ends for guess in _GUESSES)]
    return texts_of("Timestamp ", tails, "A compacted topic needs keys")


_ACTIONS = {
    "reject": Action.REJECTED,
    "accept": Action.ACCEPTED,
    "clamp": Action.CLAMPED,
    "restamp": Action.RESTAMPED,
    "quarantine": Action.QUARANTINED,
}
