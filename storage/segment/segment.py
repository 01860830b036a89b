"""One segment: the files of one base offset, and what is known of them without opening them.

Rules: a segment costs next to nothing until it is read or written; index and zone objects are made
on first use, and those of closed segments are dropped again by `IndexCache`. Everything but the
lazy parts is changed by the log's single writer only; readers of the active segment take its end
from their snapshot, never from `size_bytes`.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from config.topic import TopicConfig
from storage import locks
from storage.env import File
from storage.errors import FileMissing
from storage.files.layout import DELETED, LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, ZONES
from storage.files.partition_files import PartitionFiles
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from storage.index.txn_index import TxnIndex
from storage.segment.verified_ranges import VerifiedRanges
from storage.zones.rows import latest_arrival
from storage.zones.zone_map import ZoneMap

CACHED_SEGMENTS = 512
UNKNOWN = -2  # not looked for yet; -1 means that there is none


class Indexes(NamedTuple):
    """Indexes of a segment's `.log`: by offset, by record time, by zone."""

    offsets: OffsetIndex
    times: TimeIndex
    zones: ZoneMap


@dataclass(frozen=True, slots=True)
class IndexRules:
    """The settings that indexes are made with; new ones hold for segments that are opened later."""

    index_bytes: int
    interval_bytes: int
    zone_bytes: int
    zone_ms: int
    times_next: bool
    """A time index entry holds the next offset, as KIP-33 writes it (time.md 8)."""

    @classmethod
    def of(cls, config: TopicConfig) -> "IndexRules":
        """Rules from a topic's settings."""
        return cls(
            config.segment_index_bytes,
            config.index_interval_bytes,
            config.horolog_zone_bytes,
            config.horolog_zone_ms,
            config.horolog_time_index_entry == "next",
        )


class Away(File, Protocol):
    """The `.log` of a segment that is in the tier's store; reads ask the store, and block."""

    def here(self, position: int, size: int) -> File | None:
        """A local file that has these bytes, and keeps them; None when some are not here."""

    def fetch(self, position: int, size: int) -> File:
        """The same, asking the store for what is not here. Blocks. CorruptLog, DiskError."""


class Segment:
    """Files `<base>.log`, `.index`, `.timeindex`, `.zones` of one partition."""

    __slots__ = (
        "__weakref__",
        "_aborted",
        "arrival_floor_ms",
        "away",
        "base_offset",
        "before",
        "end_below",
        "files",
        "first_arrival_ms",
        "first_timestamp",
        "generation",
        "held",
        "indexes",
        "is_removed",
        "jitter_ms",
        "largest",
        "last_arrival_ms",
        "least_timestamp",
        "max_timestamp",
        "max_timestamp_offset",
        "mtime_ms",
        "name_is_durable",
        "opened_at",
        "pinned",
        "since_indexed",
        "size_bytes",
        "sound",
        "swap_suffix",
        "synced",
        "untimed",
        "verified",
    )

    def __init__(
        self, files: PartitionFiles, base_offset: int, size_bytes: int, mtime_ms: int
    ) -> None:
        """A segment that exists; nothing is opened."""
        self.files, self.base_offset = files, base_offset
        self.size_bytes, self.mtime_ms = size_bytes, mtime_ms
        self.opened_at = 0.0
        """Time when this process made it or found it (monotonic seconds); set where that
        happens.
        """
        self.jitter_ms = 0
        self.arrival_floor_ms = 0
        """No record of it came before this, as far as it is known; see `arrival_floor`, too."""
        self.before: Segment | None = None  # in the directory, of those that a start has found
        self.max_timestamp = UNKNOWN
        """Largest record time in ms, -1 if no record has one."""
        self.max_timestamp_offset = -1
        """Last offset of the earliest batch that holds it."""
        self.largest: tuple[int, int, int] | None = None
        """Time, offset and epoch of the closed segment's first record with the largest time, once
        that was looked for.
        """
        self.first_timestamp = UNKNOWN
        """Largest record time of the first batch: rolling by time counts from it."""
        self.first_arrival_ms = UNKNOWN
        """Arrival of the first batch, by the broker's clock (ms)."""
        self.last_arrival_ms = UNKNOWN
        """Arrival of the last batch (ms); of a segment that takes appends, its zone map has it."""
        self.since_indexed = 0
        """Bytes appended since the batch that the last index entry speaks of."""
        self.untimed: tuple[bool, int] | None = None
        """True when some of its records have no time, and how many bytes were looked at for that;
        None: not looked for yet. Records that follow may be without one.
        """
        self.least_timestamp: int | None = None
        """Least record time in ms of the closed segment, once that was looked for; see
        `storage.search.oldest_time`.
        """
        self.indexes: Indexes | None = None
        self.held: File | None = None
        """The open `.log` while the segment is active and was used."""
        self.pinned: File | None = None
        """The open `.log` while another file has, or is about to take, its name."""
        self.away: Away | None = None
        """Set when the segment is in the tier's store, and not in the directory."""
        self.end_below: tuple[int, int] | None = None
        """Of a segment in the store: an offset, and the position up to which all is before it."""
        self.generation = 0
        """Number of earlier segments with this base offset: compaction replaces them."""
        self.swap_suffix = ""
        """Suffix of its names until it has taken the place of those it was made from."""
        self.name_is_durable = True
        self.synced = True
        """False from creation until the closed segment's files were synced."""
        self.sound = VerifiedRanges(size_bytes)
        """Ranges that need no check before they are served: verified in this process."""
        self.is_removed = False
        """True when its files have, or are about to have, the suffix `.deleted`."""
        self.verified = False
        """True when the indexes were compared with the log in this process."""
        self._aborted: TxnIndex | None = None

    def __repr__(self) -> str:
        """Directory and base offset."""
        return f"Segment({self.files.path}, {self.base_offset})"

    def file(self) -> File:
        """The `.log`, opened if need be, also by readers of a segment that was just removed."""
        file = (
            self.held or self.pinned or self.away
        )  # each looked at once: a roll takes the first away
        if file is not None:
            return file
        try:
            return self.files.get(self.base_offset, LOG, self.generation)
        except FileMissing:
            return self.files.get(self.base_offset, LOG + DELETED, self.generation)

    def path_of(self, suffix: str) -> str:
        """Path of one of its files."""
        ending = DELETED if self.is_removed else self.swap_suffix
        return self.files.name_of(self.base_offset, suffix + ending)

    def make_indexes(self, rules: IndexRules) -> Indexes:
        """Index objects over this segment's files; nothing is read before their first use."""
        fs, base = self.files.fs, self.base_offset
        return Indexes(
            OffsetIndex(fs, self.path_of(OFFSET_INDEX), base, rules.index_bytes),
            TimeIndex(fs, self.path_of(TIME_INDEX), base, rules.index_bytes),
            ZoneMap(
                fs,
                self.path_of(ZONES),
                base,
                zone_bytes=rules.zone_bytes,
                zone_ms=rules.zone_ms,
                arrival_floor_ms=self.arrival_floor_ms,
            ),
        )

    @property
    def aborted(self) -> TxnIndex:
        """Its aborted transactions, kept in memory once asked for: every fetch asks, few exist."""
        aborted = self._aborted
        if aborted is None:
            made = TxnIndex(self.files.fs, self.path_of(TXN_INDEX), self.base_offset)
            with locks.ONCE:
                aborted = self._aborted = self._aborted or made
        return aborted

    @property
    def knows_aborted(self) -> bool:
        """True when `aborted` reads no file."""
        return self._aborted is not None and self._aborted.is_loaded

    @property
    def has_aborted(self) -> bool:
        """True when an aborted transaction ended in it, as far as was noted or read; any thread."""
        aborted = self._aborted
        return aborted is not None and aborted.count > 0

    def sync_aborted(self) -> None:
        """Make the index of aborted transactions durable, its name aside. DiskError."""
        self.aborted.sync()

    @property
    def arrival_by_zones(self) -> int:
        """The last arrival that the zone map in memory knows of, -1 if it has no zone."""
        assert self.indexes is not None
        return self.arrival_by(self.indexes.zones)

    def arrival_by(self, zones: ZoneMap) -> int:
        """The same by a zone map of it."""
        last = zones.open_zone
        if last is None and zones.row_count:
            last = zones.zone(zones.row_count - 1)
        if last is None:
            return -1
        return latest_arrival(zones.last_arrival_ms, last.flags, self.latest_arrival_ms)

    @property
    def latest_arrival_ms(self) -> int:
        """The latest possible arrival of its records: of a copy as its row has it, else that of
        the last write.
        """
        is_known = self.away is not None and self.last_arrival_ms >= 0
        return self.last_arrival_ms if is_known else self.mtime_ms

    @property
    def largest_timestamp(self) -> int:
        """The largest record time, or when there is none the `.log`'s modification time (1.8)."""
        assert self.max_timestamp != UNKNOWN, "the largest time was not looked for"
        return self.max_timestamp if self.max_timestamp >= 0 else self.mtime_ms


class IndexCache:
    """The closed segments whose indexes are in memory; the one used longest ago is to go."""

    __slots__ = ("_limit", "_segments")

    def __init__(self, limit: int = CACHED_SEGMENTS) -> None:
        """Nothing is in memory."""
        self._limit = limit
        self._segments: dict[Segment, None] = {}

    def used(self, segment: Segment) -> Segment | None:
        """The closed segment's indexes were just used; whose may be dropped for that, if any."""
        segments = self._segments
        segments.pop(segment, None)
        segments[segment] = None
        if len(segments) <= self._limit:
            return None
        try:
            oldest = next(iter(segments))
        except (StopIteration, RuntimeError):
            return None  # another thread is at it
        segments.pop(oldest, None)
        return oldest

    def forget(self, segment: Segment) -> None:
        """The segment is gone."""
        self._segments.pop(segment, None)
