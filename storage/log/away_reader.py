"""Reads of a segment that is in the tier's store: from what is here, or not at once.

Nothing is asked of the store on the way to an answer: where bytes, an index or a list of aborted
transactions are missing here, the answer names what has to be brought (`AwayRange`). That runs on
one of the tier's lanes; the fetch is then read again. What is served was checked since it came:
its slices are of the very file that the check read.
"""

from typing import NamedTuple

from storage.errors import CorruptLog, StorageError
from storage.files.file_slice import NOTHING, FetchData, FileSlice
from storage.log.unverified_range import UnverifiedRange
from storage.scan.batch_walk import BatchPlace, find_offset
from storage.search.segment_access import NotInMemory
from storage.segment.log_snapshot import LogSnapshot
from storage.segment.segment import Away, IndexRules, Segment
from storage.segment.trusted_indexes import TrustedIndexes

AHEAD_BYTES = 4 * 1024 * 1024
"""Brought beyond what was asked for, since most readers go on."""
AT_ONCE_BYTES = 4 * 1024 * 1024
"""Most that one fetch takes of a segment, but for a larger batch: with what is brought ahead it has
to find room here, also on a small disk."""


class AwayRead(NamedTuple):
    """One fetch, as far as it is about one segment in the store."""

    snapshot: LogSnapshot
    number: int
    """Of the segment."""
    up_to: int
    """Only batches before this offset are given, a batch boundary; perhaps of a later segment."""
    below: int
    """All its offsets are lower than this one."""
    offset: int
    max_bytes: int
    min_one_batch: bool

    @property
    def segment(self) -> Segment:
        """The segment."""
        return self.snapshot.segments[self.number]


class AwayRange(NamedTuple):
    """Bytes that have to be brought here and checked before the fetch is read again."""

    read: AwayRead
    indexes: TrustedIndexes
    rules: IndexRules
    is_away: bool = True
    """It asks the store: see `storage.files.file_slice.Unverified`."""

    @property
    def segment(self) -> Segment:
        """The segment of the bytes."""
        return self.read.segment

    @property
    def place(self) -> tuple[Segment, int]:
        """The segment, and the offset that is read from."""
        return self.read.segment, self.read.offset

    def settle(self) -> None:
        """Bring and check it. Blocks for as long as the store does. DiskError; CorruptLog when some
        of it is lost or changed: its first batch is here, and checked, unless that is.

        Of a segment whose place another one has taken nothing is brought: the fetch finds that.
        """
        try:
            self._bring()
        except StorageError:
            if not self.segment.is_removed:
                raise

    def _bring(self) -> None:
        read, segment = self.read, self.read.segment
        away = away_of(segment)
        limit = self._limit()
        place = self.indexes.find_offset(segment, limit, self.rules, read.offset)
        _bring_aborts(read)
        if place is None:
            return
        begin = place.position
        end = min(limit, begin + max(place.size_bytes, read.max_bytes))
        looked_from = self._looked_from(begin)
        try:
            away.fetch(looked_from, min(limit, end + AHEAD_BYTES) - looked_from)
        except CorruptLog:
            self._bring_first(place, looked_from)
            raise
        UnverifiedRange(segment, begin, end, limit, read.below).settle()

    def _bring_first(self, place: BatchPlace, looked_from: int) -> None:
        """The batch at a place alone: what is behind it is lost. CorruptLog when it is, too."""
        segment, end = self.segment, place.end_position
        away_of(segment).fetch(looked_from, end - looked_from)
        UnverifiedRange(segment, place.position, end, end, self.read.below).settle()

    def _limit(self) -> int:
        """End of what may be read of the segment, in bytes. It is kept: bytes that are far from
        those that are read would make these go from a small cache, again and again.
        """
        read, segment = self.read, self.read.segment
        known = _known_limit(read)
        if known is not None:
            return known
        place = self.indexes.find_offset(segment, segment.size_bytes, self.rules, read.up_to)
        limit = segment.size_bytes if place is None else place.position
        segment.end_below = read.up_to, limit
        return limit

    def _looked_from(self, begin: int) -> int:
        """Position at which the next read begins to search the batch at `begin`. Bytes from there
        must be here together with the batch, or in a small cache each would make the other go.
        """
        loaded = self.segment.indexes
        if loaded is None or not loaded.offsets.is_loaded:
            return begin
        return min(begin, loaded.offsets.lookup(self.read.offset).position)


def away_of(segment: Segment) -> Away:
    """Its bytes in the store."""
    assert segment.away is not None
    return segment.away


def read_away(read: AwayRead, indexes: TrustedIndexes, rules: IndexRules) -> FetchData | None:
    """Data from what is here, or what has to be brought first; None when the segment has none.

    CorruptLog when it begins with damage.
    """
    try:
        return _read_here(read, indexes)
    except NotInMemory:
        return NOTHING._replace(unverified=AwayRange(read, indexes, rules))


def _known_limit(read: AwayRead) -> int | None:
    """End of what may be read of the segment, in bytes; None before that was looked for."""
    segment = read.segment
    if read.up_to >= read.below:
        return segment.size_bytes
    known = segment.end_below
    return None if known is None or known[0] != read.up_to else known[1]


def _read_here(read: AwayRead, indexes: TrustedIndexes) -> FetchData | None:
    segment, away = read.segment, away_of(read.segment)
    limit = _known_limit(read)
    if limit is None:
        raise NotInMemory
    place = _place_here(read, indexes, limit)
    if place is None:
        _check_aborts(read)  # the answer comes from a later segment, and has those of this one
        return None
    begin, size = place.position, min(read.max_bytes, limit - place.position)
    if place.size_bytes > size:
        if not read.min_one_batch:
            return NOTHING
        size = place.size_bytes
    _check_aborts(read)
    file = away.here(begin, size)
    sound_to = min(segment.sound.end_from(begin), begin + size)
    if sound_to < begin + size:
        if sound_to not in segment.sound.damaged:
            raise NotInMemory
        if sound_to <= begin:
            raise CorruptLog(away.path, f"the batch at {sound_to} is damaged: it is not served")
    if file is None or away.here(begin, size) is not file:
        raise NotInMemory  # another file has come meanwhile, and the check was of that one or this
    piece = FileSlice(file, begin, sound_to - begin)
    return FetchData((piece,), piece.size, segment=segment)


def _place_here(read: AwayRead, indexes: TrustedIndexes, limit: int) -> BatchPlace | None:
    segment = read.segment
    loaded = segment.indexes
    if loaded is None or not segment.verified or not loaded.offsets.is_loaded:
        raise NotInMemory
    indexes.used(segment)
    position = loaded.offsets.lookup(read.offset).position
    return find_offset(_Here(away_of(segment)), position, limit, read.offset)


class _Here:
    """The bytes of a segment that are here."""

    def __init__(self, away: Away) -> None:
        self.path = away.path
        self._away = away

    def read_at(self, position: int, size: int) -> memoryview:
        buffer = memoryview(bytearray(size))
        count = self._away.read_into_if_cached(position, buffer)
        if count is None:
            raise NotInMemory
        return buffer[:count]


def _bring_aborts(read: AwayRead) -> None:
    """Loads what `_check_aborts` asks for."""
    for segment in read.snapshot.segments[read.number : read.snapshot.first_local]:
        if segment.aborted.search(read.offset, read.below).is_complete:
            break


def _check_aborts(read: AwayRead) -> None:
    """NotInMemory unless the aborted transactions of the answer are known without the store."""
    for segment in read.snapshot.segments[read.number : read.snapshot.first_local]:
        if not segment.knows_aborted:
            raise NotInMemory
        if segment.aborted.search(read.offset, read.below).is_complete:
            break
