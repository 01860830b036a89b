"""Zone map of a segment: both times, both bounds, for every 64 KiB of its `.log` (time.md 3).

A zone closes once it holds `zone_bytes`; or, when 4 KiB are in it and `zone_ms` of arrival time
have passed, before the next batch; the last one at roll or close. It closes also where batches that
the broker stamps begin or end, so that a zone's times are all of one kind. `zone_rows` has the
format.

Record times are what producers claim, and can be rebuilt from the log. Arrival cannot: rebuilt
rows carry estimates and say so. Arrival never runs backwards in a log, so an earlier one is
lifted to the last one seen. Kafka ignores the file.

One writer; readers of any thread see closed zones whole and the open one as of one moment.
"""

from collections.abc import Iterator

from protocol.records.batch import NO_TIMESTAMP
from storage import locks
from storage.env import FileSystem
from storage.errors import FileMissing
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.zones.columns import ZoneColumns
from storage.zones.gaps import JOINED_WITH_CARE, GapTimes, joined_flags
from storage.zones.rows import (
    ARRIVAL_ESTIMATED,
    DIRTY_FUTURE,
    DIRTY_PAST,
    LIFTED,
    LOG_APPEND_TIME,
    ROW_BYTES,
    UNREAD,
    UNTIMED,
    Zone,
    sound_rows,
)
from storage.zones.view import ZoneView

__all__ = [
    "ARRIVAL_ESTIMATED",
    "DIRTY_FUTURE",
    "DIRTY_PAST",
    "LOG_APPEND_TIME",
    "ROW_BYTES",
    "UNREAD",
    "UNTIMED",
    "Zone",
    "ZoneMap",
    "ZoneView",
    "estimate_arrival",
]

MIN_TIMED_ZONE_BYTES = 4096
MAX_ROWS = 1 << 31

_FLAGS, _SIZE, _MIN, _FIRST_ARRIVAL = 3, 4, 5, 7  # fields of the open zone
_ABSENT = -1


# The zone that is being filled: first offset, position, record count, flags, size in bytes,
# minimum and maximum time, first and last arrival. Replaced by one assignment at every batch.
_OpenZone = tuple[int, int, int, int, int, int, int, int, int]


def estimate_arrival(max_timestamp: int, not_before_ms: int, not_after_ms: int) -> int:
    """The likeliest arrival of a batch whose arrival is lost: its time, kept between two bounds.

    The bounds are the last arrival before it and the modification time of the file. Without a time
    it is the latter.
    """
    if max_timestamp < 0:
        return max(not_before_ms, not_after_ms)
    return max(not_before_ms, min(max_timestamp, not_after_ms))


class ZoneMap:
    """The zones of one segment. Nothing is read before the first use."""

    __slots__ = (
        "_arrival_floor",
        "_columns",
        "_fs",
        "_last_arrival",
        "_open",
        "_written",
        "_zone_bytes",
        "_zone_ms",
        "base_offset",
        "damage",
        "path",
    )

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        base_offset: int,
        *,
        zone_bytes: int = 65536,
        zone_ms: int = 1000,
        arrival_floor_ms: int = 0,
    ) -> None:
        """Name the file. `arrival_floor_ms`: the last arrival in the segments before this one."""
        self.path = path
        self.base_offset = base_offset
        self.damage: str | None = None
        self._fs = fs
        self._zone_bytes = zone_bytes
        self._zone_ms = zone_ms
        self._arrival_floor = self._last_arrival = arrival_floor_ms
        self._columns: ZoneColumns | None = None
        self._open: _OpenZone | None = None
        self._written = _ABSENT  # rows that are in the file; _ABSENT: no file, or not ours

    def add(  # noqa: PLR0917 - once a batch on the hot path, where names would cost
        self,
        offset: int,
        position: int,
        size_bytes: int,
        record_count: int,
        min_timestamp: int,
        max_timestamp: int,
        arrival_ms: int,
        flags: int = 0,
    ) -> None:
        """Take in the batch that begins at `position` with `offset`; batches come in log order.

        A batch without any time gives -1 for both times and leaves the zone's bounds alone.
        """
        if self._columns is None:
            self._load()
        if arrival_ms >= self._last_arrival:
            self._last_arrival = arrival_ms
        else:
            arrival_ms = self._last_arrival
            flags |= LIFTED
        zone = self._open
        if zone is not None and (
            (
                zone[_SIZE] >= MIN_TIMED_ZONE_BYTES
                and arrival_ms - zone[_FIRST_ARRIVAL] >= self._zone_ms
            )
            or (zone[_FLAGS] ^ flags) & LOG_APPEND_TIME
        ):
            self.close_zone()
            zone = None
        if zone is None:
            first_arrival = arrival_ms
        else:
            offset, position, count, old_flags, size, low, high, first_arrival, _ = zone
            size_bytes += size
            record_count += count
            if (flags | old_flags) & JOINED_WITH_CARE:
                old = GapTimes(low, high, old_flags)
                flags = joined_flags(old, GapTimes(min_timestamp, max_timestamp, flags))
            else:
                flags |= old_flags
            is_untimed = max_timestamp == NO_TIMESTAMP == min_timestamp
            if is_untimed or (low < min_timestamp and not high == NO_TIMESTAMP == low):
                min_timestamp = low
            max_timestamp = max(max_timestamp, high)
        self._open = (
            offset, position, record_count, flags, size_bytes,
            min_timestamp, max_timestamp, first_arrival, arrival_ms,
        )  # fmt: skip
        if size_bytes >= self._zone_bytes:
            self.close_zone()

    def close_zone(self) -> None:
        """End the zone that is being filled, if any: at roll and at a clean close."""
        zone = self._open
        if zone is None:
            return
        self._load().append((zone[0] - self.base_offset, *zone[1:_SIZE], *zone[_MIN:]))
        self._open = None  # last: a reader may see the zone twice, never not at all

    def add_unread(self, offset: int, position: int, end_offset: int, arrival_ms: int) -> None:
        """Account for batches that nobody looked into, from `position` on: they may hold any time.

        `arrival_ms` is when the last of them had come for certain.
        """
        self.close_zone()
        arrival_ms = self._last_arrival = max(self._last_arrival, arrival_ms)
        first, count = offset - self.base_offset, min(end_offset - offset, 2**31 - 1)
        flags = UNREAD | ARRIVAL_ESTIMATED | UNTIMED
        self._load().append(
            (first, position, count, flags, INT64_MIN, INT64_MAX, arrival_ms, arrival_ms)
        )

    @property
    def row_count(self) -> int:
        """Number of closed zones."""
        return len(self._load())

    @property
    def last_arrival_ms(self) -> int:
        """The latest arrival here, or the floor that was given: the next segment's floor."""
        self._load()
        return self._last_arrival

    @property
    def is_loaded(self) -> bool:
        """True when the closed zones are in memory."""
        return self._columns is not None

    @property
    def open_zone(self) -> Zone | None:
        """The zone that is being filled, as of now."""
        zone = self._open
        if zone is None:
            return None
        return Zone(*zone[:_SIZE], *zone[_MIN:])

    def zone(self, index: int) -> Zone:
        """The closed zone number `index`, from 0; IndexError if there is none."""
        columns = self._load()
        if not 0 <= index < len(columns):
            raise IndexError(index)
        offset, *rest = columns.row(index)
        return Zone(offset + self.base_offset, *rest)

    def zones(self, first: int = 0) -> Iterator[Zone]:
        """The zones from number `first` on, the open one last, as of now."""
        view = self.view()
        return (view.zone(index) for index in range(first, view.total))

    def view(self) -> ZoneView:
        """All zones as of one moment, for a search."""
        open_zone = self.open_zone  # first: once it is closed, it is a row
        columns = self._load()
        count = len(columns)
        if open_zone is not None and count and columns.positions[count - 1] >= open_zone.position:
            open_zone = None
        return ZoneView(self.base_offset, columns, count, open_zone)

    def resume_point(self) -> tuple[int, int]:
        """Position of the last closed zone and its record count: what follows is not mapped yet.

        After a crash the caller walks that many records from the position and adds the rest.
        """
        count = self.row_count
        if not count:
            return 0, 0
        last = self.zone(count - 1)
        return last.position, last.record_count

    def truncate_to(self, offset: int) -> None:
        """Keep the closed zones whose records are all below `offset`; the open one is dropped.

        The batches from `resume_point` up to `offset` have to be added again.
        """
        columns = self._load()
        keep = columns.holding_offset(offset - 1 - self.base_offset, len(columns)) + 1
        if keep and self._end_offset(keep - 1) > offset:
            keep -= 1
        self._open = None
        if len(columns) > keep:
            self._columns = kept = columns.kept(keep)
            self._last_arrival = max([self._arrival_floor, *kept.last_arrivals[-1:]])
            if self._written > keep:
                self._cut_file(keep)

    def raise_floor(self, arrival_ms: int) -> None:
        """Estimates of what is added from here on are not before this."""
        self._arrival_floor = max(self._arrival_floor, arrival_ms)
        self._last_arrival = max(self._last_arrival, arrival_ms)

    def reset(self) -> None:
        """Start again without zones, unread: for a new segment, or to rebuild."""
        self._columns = ZoneColumns()
        self._open = None
        self._written = _ABSENT
        self.damage = None

    def check(self) -> str | None:
        """Read the file if that has not happened; what is wrong with it, or None.

        Rows from the first bad one on are dropped. A missing file is a map without zones.
        """
        self._load()
        return self.damage

    def flush(self, at_most: int = MAX_ROWS) -> None:
        """Write the first so many closed zones, all that are not in the file yet; makes the file in
        any case.
        """
        self._write(durable=False, at_most=at_most)

    def sync(self) -> None:
        """As `flush`, and the file's bytes are durable afterwards (its name: the caller's)."""
        self._write(durable=True)

    def distrust_file(self) -> None:
        """Marks the whole file unverified: it may be in the page cache alone, so it is written
        again.
        """
        self._written = min(self._written, 0)

    def unload(self) -> None:
        """Drop the memory of closed zones, written first; keeps it while a zone is open."""
        if self._columns is not None and self._open is None:
            self.flush()
            self._columns = None

    def _end_offset(self, index: int) -> int:
        if index + 1 < self.row_count:
            return self.zone(index + 1).first_offset
        last = self.zone(index)
        return last.first_offset + last.record_count

    def _load(self) -> ZoneColumns:
        columns = self._columns
        if columns is None:
            columns = self._read()
        return columns

    def _read(self) -> ZoneColumns:
        try:
            data = self._fs.read_bytes(self.path)
            good, damage = sound_rows(data)
        except FileMissing:
            data, good, damage = b"", _ABSENT, None
        columns = ZoneColumns.of_rows(data[: good * ROW_BYTES])
        with locks.ONCE:  # else the writer's newest could be lost to a slow reader
            if self._columns is not None:
                return self._columns
            if len(columns):
                self._last_arrival = max(self._last_arrival, columns.last_arrivals[-1])
            self.damage = damage
            # What follows the good rows has to go at the next write.
            self._written = good if damage is None else _ABSENT
            self._columns = columns
        return columns

    def _cut_file(self, rows: int) -> None:
        file = self._fs.open(self.path)
        try:
            file.truncate(rows * ROW_BYTES)
        finally:
            file.close()
        self._written = rows

    def _write(self, *, durable: bool, at_most: int = MAX_ROWS) -> None:
        columns = self._columns
        if columns is None:
            return
        count, written = min(len(columns), at_most), max(self._written, 0)
        if self._written >= count and not durable:
            return
        file = self._fs.open(self.path, create=True)
        try:
            if self._written == _ABSENT:
                file.truncate(0)
            if count > written:
                file.write_at(written * ROW_BYTES, columns.bytes_of(written, count))
            # A failed sync loses all that was not synced.
            self._written = 0 if durable else max(written, count)
            if durable:
                file.sync()
                self._written = count
        finally:
            file.close()
