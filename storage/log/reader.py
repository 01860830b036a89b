"""Reads of a log on a snapshot: from an offset to whole batches as stored on disk (semantics 2).

No batch is decoded. A fetch begins with the batch that holds the wanted offset and ends at a batch
boundary when it reaches the bound or the end of a segment, else wherever the byte limit falls, as
in Kafka. Bytes from before this process began are verified once before they are served
(`storage.log.unverified_range`): until then they come with an `UnverifiedRange`, and damage ends
the data.
"""

from protocol.errors import ErrorCode, KafkaError
from storage.errors import CorruptLog
from storage.files.file_slice import NOTHING, FetchData, FileSlice
from storage.log.away_reader import AT_ONCE_BYTES, AwayRead, read_away
from storage.log.unverified_range import UnverifiedRange
from storage.segment.log_snapshot import LogSnapshot, Tail
from storage.segment.segment import IndexRules, Segment
from storage.segment.segments import index_of
from storage.segment.trusted_indexes import TrustedIndexes


def read(
    snapshot: LogSnapshot,
    indexes: TrustedIndexes,
    rules: IndexRules,
    offset: int,
    max_bytes: int,
    *,
    up_to: int,
    min_one_batch: bool,
) -> FetchData:
    """Batches from the one that holds `offset` to before the offset `up_to`, a batch boundary.
    Raises KafkaError.

    With `min_one_batch` the first batch comes whole even when larger than `max_bytes` (KIP-74),
    without it nothing comes then. OFFSET_OUT_OF_RANGE outside of the log. DiskError, CorruptLog.
    """
    if not snapshot.log_start_offset <= offset <= snapshot.log_end_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Offset {offset} is outside of {snapshot.log_start_offset} to "
            f"{snapshot.log_end_offset}",
        )
    if offset >= up_to:
        return NOTHING
    segments = snapshot.segments
    tail = _tail_of(snapshot, offset)
    if tail is not None and up_to >= snapshot.log_end_offset:
        start, end = tail.position, snapshot.end_position
        return _piece(segments[-1], start, end - start, end, max_bytes, min_one_batch)
    last, bound = place_of(snapshot, indexes, rules, up_to)
    index = index_of(segments, offset)
    place = None
    while index <= last:
        segment = segments[index]
        limit = bound if index == last else segment.size_bytes
        if segment.away is not None:
            below = segments[index + 1].base_offset
            size = min(max_bytes, AT_ONCE_BYTES)
            asked = AwayRead(snapshot, index, up_to, below, offset, size, min_one_batch)
            data = read_away(asked, indexes, rules)
            if data is not None:
                return data
            index += 1
            continue
        place = indexes.find_offset(segment, snapshot.end_of(index), rules, offset)
        if place is not None and place.position < limit:
            break
        index += 1
    else:
        return NOTHING
    piece = _piece(segment, place.position, place.size_bytes, limit, max_bytes, min_one_batch)
    if place.position >= segment.sound.whole_from or not piece.slices:
        return piece
    begin = place.position
    if place.base_offset > offset:  # compaction leaves gaps; so do offsets that have rotted
        trusted = indexes.of(segment, snapshot.end_of(index), rules)
        begin = min(begin, trusted.offsets.lookup(offset).position)
    below = segments[index + 1].base_offset if index < last else up_to
    return _proven(
        piece, UnverifiedRange(segment, begin, place.position + piece.size_bytes, limit, below)
    )


def _piece(  # noqa: PLR0917 - private, called by position
    segment: Segment,
    position: int,
    batch_bytes: int,
    limit: int,
    max_bytes: int,
    min_one_batch: bool,
) -> FetchData:
    """Data for a fetch from a batch on, at most up to `limit`."""
    if batch_bytes > max_bytes:
        if not min_one_batch:
            return NOTHING
        max_bytes = batch_bytes
    size = min(max_bytes, limit - position)
    return FetchData((FileSlice(segment.file(), position, size),), size, segment=segment)


def _proven(piece: FetchData, unverified: UnverifiedRange) -> FetchData:
    """The verified part of the piece; all of it, with the range, while that is unverified.

    CorruptLog when it begins with damage.
    """
    (part,) = piece.slices
    known = unverified.segment.sound
    sound_to = known.end_from(unverified.position)
    if sound_to >= part.position + part.size:
        return piece
    if sound_to not in known.damaged:
        return piece._replace(unverified=unverified)
    if sound_to <= part.position:
        raise CorruptLog(part.file.path, f"the batch at {sound_to} is damaged: it is not served")
    size = sound_to - part.position
    return piece._replace(slices=(FileSlice(part.file, part.position, size),), size_bytes=size)


def _tail_of(snapshot: LogSnapshot, offset: int) -> Tail | None:
    """The batch that was appended last, if it begins with `offset`: most fetches ask for it."""
    tail = snapshot.tail
    if tail is None or tail.offset != offset or tail.base_offset != snapshot.active.base_offset:
        return None
    return tail


def place_of(
    snapshot: LogSnapshot, indexes: TrustedIndexes, rules: IndexRules, offset: int
) -> tuple[int, int]:
    """Segment (its number) and position at which reading up to `offset` ends.

    Of a segment in the tier's store, which is not asked here, its end: `read_away` bounds that.
    """
    segments = snapshot.segments
    if offset >= snapshot.log_end_offset:
        return len(segments) - 1, snapshot.end_position
    place = snapshot.watermark_place
    if place is not None and offset == snapshot.high_watermark:
        return index_of(segments, place.base_offset), place.position
    index = index_of(segments, offset)
    limit = snapshot.end_of(index)
    if segments[index].away is not None:
        return index, limit
    found = indexes.find_offset(segments[index], limit, rules, offset)
    return index, limit if found is None else found.position
