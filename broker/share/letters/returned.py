"""Dead letters as the records that they were: what goes back to the topics of their origin.

A letter that is a copy has all of its record. Of another the record is looked up where it was; it
goes back only if it is still the same. Reading blocks: it runs on a lane.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.share.letters import header_names
from broker.share.letters.rows import Row, size_of
from broker.share.letters.source import RecordSource
from protocol.records.batch import iter_headers
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.record import Header, Record, iter_records

READ_BYTES = 1024 * 1024
MOST_LETTERS = 500
MOST_DIGITS = 19
MOST_NUMBER = 2**63 - 2
"""Of a time or an offset: also its distance to -1, which is no time, fits 64 bits."""

Place = tuple[str, int]

OTHER_GROUP, NO_LETTER = "other_group", "no_letter"
NO_TOPIC, RECORD_GONE = "no_topic", "record_gone"
PASSED_OVER = (OTHER_GROUP, NO_LETTER, NO_TOPIC, RECORD_GONE)
"""Reasons for which a record of the letters' topic is passed over."""


class ParsedLetter(NamedTuple):
    """A letter, by its headers; times in ms."""

    place: Place
    offset: int
    group: str
    record_ms: int
    arrival_ms: int | None
    headers: list[Header]
    """Headers of the record: those of the letter are taken off."""


class ChunkTerms(NamedTuple):
    """Bounds of one piece of letters, and where their records go."""

    group: str
    source_of: Callable[[Place], RecordSource | None]
    """The records of a partition that letters may go back to."""
    end: int
    """Letters below this offset."""
    most_letters: int | None = MOST_LETTERS
    """None: all of them, because an earlier attempt chose the end."""


@dataclass(slots=True)
class LetterChunk:
    """Neighbouring letters that go back together: one batch for each partition of origin."""

    next_offset: int
    """The first offset that is not among them."""
    rows: dict[Place, list[Row]] = field(default_factory=dict)
    passed_over: Counter[str] = field(default_factory=Counter)
    letters: int = 0
    size_bytes: int = 0
    """About what the records take."""


def read_letters(letters: RecordSource, offset: int, terms: ChunkTerms) -> LetterChunk:
    """The letters from `offset` on, as many as one read gives and the topics of origin take in one
    batch; at least one. StorageError, DecodeError, KafkaError for damage and what is not there.
    """
    chunk = LetterChunk(max(offset, letters.start))
    reader = _Reader(letters, chunk, terms)
    while chunk.next_offset < terms.end and reader.read() and terms.most_letters is None:
        pass
    return chunk


class _Reader:
    """Reads one chunk."""

    def __init__(self, letters: RecordSource, chunk: LetterChunk, terms: ChunkTerms) -> None:
        self._letters = letters
        self._chunk = chunk
        self._terms = terms
        self._sizes: Counter[Place] = Counter()
        self._originals: dict[Place, dict[int, Record]] = {}

    def read(self) -> bool:
        """Reads a piece more; False when it ended before the piece did."""
        chunk, end = self._chunk, self._terms.end
        limit = self._letters.config.max_decompressed_message_bytes
        raw = self._letters.read(chunk.next_offset, READ_BYTES)
        if not raw:
            chunk.next_offset = end
            return False
        for position, header in iter_headers(raw):
            if not header.is_control:
                for record in iter_records(raw[position:], limit_bytes=limit):
                    if chunk.next_offset <= record.offset < end and not self._take(record):
                        return False
            chunk.next_offset = min(max(chunk.next_offset, header.last_offset + 1), end)
        return True

    def _take(self, record: Record) -> bool:
        """False when there is no room for it in this chunk."""
        chunk, most = self._chunk, self._terms.most_letters
        if most is not None and chunk.letters >= most:
            return False
        letter = parse(record)
        reason, source, row = NO_LETTER, None, None
        if letter is not None:
            reason, source, row = self._returned(letter, record)
        if letter is None or source is None or row is None:
            chunk.passed_over[reason] += 1
            chunk.next_offset = record.offset + 1
            return True
        size = size_of(row)
        if most is not None and not self._has_room(letter.place, source, size):
            return False
        self._sizes[letter.place] += size
        chunk.rows.setdefault(letter.place, []).append(row)
        chunk.letters += 1
        chunk.size_bytes += size
        chunk.next_offset = record.offset + 1
        return True

    def _has_room(self, place: Place, source: RecordSource, size: int) -> bool:
        """True for the first record of a batch, however large: the topic judges that."""
        before = self._sizes[place]
        return not before or before + size <= min(source.config.max_message_bytes, READ_BYTES)

    def _returned(
        self, letter: ParsedLetter, record: Record
    ) -> tuple[str, RecordSource | None, Row | None]:
        if letter.group != self._terms.group:
            return OTHER_GROUP, None, None
        source = self._terms.source_of(letter.place)
        if source is None:
            return NO_TOPIC, None, None
        key, value, headers = record.key, record.value, letter.headers
        if key is None and value is None and not headers:
            original = self._original(source, letter)
            if original is None:
                return RECORD_GONE, None, None
            key, value, headers = original.key, original.value, list(original.headers)
        is_retimed = source.config.message_timestamp_type == "LogAppendTime"
        if is_retimed and letter.arrival_ms is not None:
            headers = [*headers, (header_names.REDRIVEN_ARRIVAL, b"%d" % letter.arrival_ms)]
        return "", source, (letter.record_ms, key, value, headers)

    def _original(self, source: RecordSource, letter: ParsedLetter) -> Record | None:
        """The record that a letter without a copy speaks of, if it is still there."""
        known = self._originals.get(letter.place)
        if known is None or letter.offset not in known:
            known = self._originals[letter.place] = _records_at(source, letter.offset)
        found = known.get(letter.offset)
        return found if found is not None and found.timestamp == letter.record_ms else None


def _records_at(source: RecordSource, offset: int) -> dict[int, Record]:
    """The records of one batch, or some, by their offsets; none where they are gone."""
    raw, limit = source.original(offset), source.config.max_decompressed_message_bytes
    return {
        record.offset: record
        for position, header in iter_headers(raw)
        if not header.is_control
        for record in iter_records(raw[position:], limit_bytes=limit)
    }


def parse(record: Record) -> ParsedLetter | None:
    """The letter; None when its headers are not those of one."""
    headers = list(record.headers)
    begin = _begin_of_own(headers)
    own = dict(headers[begin:])
    try:
        topic = (own[header_names.TOPIC] or b"").decode()
        group = (own[header_names.GROUP] or b"").decode()
        place = topic, _number(own[header_names.PARTITION])
        offset, record_ms = _number(own[header_names.OFFSET]), _time(own[header_names.RECORD_TIME])
        arrival = own.get(header_names.ARRIVAL_TIME)
        arrival_ms = None if arrival is None else _number(arrival)
    except (KeyError, ValueError):
        return None
    return ParsedLetter(place, offset, group, record_ms, arrival_ms, headers[:begin])


def _begin_of_own(headers: list[Header]) -> int:
    """The place of the letter's own headers: a record may itself have been a letter."""
    names = [name for name, _ in headers]
    if header_names.TOPIC not in names:
        return len(names)
    return len(names) - 1 - names[::-1].index(header_names.TOPIC)


def _number(text: bytes | None) -> int:
    if text is None or not text.isdigit() or len(text) > MOST_DIGITS:
        raise ValueError("no decimal digits")
    number = int(text)
    if number > MOST_NUMBER:
        raise ValueError("larger than those of records")
    return number


def _time(text: bytes | None) -> int:
    """A time, or -1 for none."""
    return -1 if text == b"-1" else _number(text)


def batches_of(
    chunk: LetterChunk, producer_id: int, most_bytes: Callable[[Place], int]
) -> Iterator[tuple[Place, bytearray]]:
    """The batches of a chunk: each the first and only one of a producer in its partition.

    Packed where it would be larger than its topic allows for: the record may have come packed.
    """
    for place, rows in chunk.rows.items():
        batch = _batch(rows, producer_id, Codec.NONE)
        if len(batch) > most_bytes(place):
            batch = _batch(rows, producer_id, Codec.ZSTD)
        yield place, batch


def _batch(rows: list[Row], producer_id: int, codec: Codec) -> bytearray:
    return build_batch(
        rows, codec=codec, producer_id=producer_id, producer_epoch=0, base_sequence=0
    )
