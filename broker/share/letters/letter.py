"""Dead letters as records: where a record came from, and why it was given up, in headers.

Numbers and times (ms) are decimal digits. Reading blocks: it runs on a lane.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.share.letters import header_names
from broker.share.letters.rows import Row, packed, size_of
from broker.share.states import REJECTED, GivenUp
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import iter_headers
from protocol.records.record import Header, Record, iter_records
from storage.log.log import Log
from storage.log.settled_read import read_settled
from storage.search.arrivals import ArrivalSpan

READ_BYTES = 1024 * 1024
MOST_LETTERS = 500


class LetterTerms(NamedTuple):
    """The facts that all letters of a group's partition have in common."""

    group: str
    copies: bool
    """Letters have key, value and headers of the record."""
    now_ms: int
    most_bytes: int
    """The largest batch that their topic takes."""


class Letters(NamedTuple):
    """Letters of some offsets."""

    rows: list[Row]
    reasons: list[str]
    next_offset: int
    """The first offset that is not among them."""


class LetterBatch(NamedTuple):
    """Letters of some offsets as a batch; none where nothing of them needs one."""

    batch: bytearray | None
    reasons: list[str]
    next_offset: int


def batch_from(
    log: Log, offset: int, given_up: Sequence[GivenUp], terms: LetterTerms
) -> LetterBatch:
    """The letters of the records at or after `offset`, as many as one read gives and their topic
    takes in one batch. A record that is too large for that topic, packed too, has a letter without
    a copy. StorageError, DecodeError, KafkaError MESSAGE_TOO_LARGE where that is too large, too.
    """
    found = letters_from(log, offset, given_up, terms)
    batch = packed(found.rows, terms.most_bytes) if found.rows else None
    if not found.rows or batch is not None:
        return LetterBatch(batch, found.reasons, found.next_offset)
    end = found.next_offset
    only = [each._replace(last=min(each.last, end - 1)) for each in given_up if each.first < end]
    plain = letters_from(log, offset, only, terms._replace(copies=False))
    batch = packed(plain.rows, terms.most_bytes)
    if batch is None:
        text = f"Their topic takes batches of {terms.most_bytes} bytes, less than a letter has"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, text)
    return LetterBatch(batch, plain.reasons, end)


def letters_from(log: Log, offset: int, given_up: Sequence[GivenUp], terms: LetterTerms) -> Letters:
    """The letters of the records at or after `offset`, as many as one read gives.

    What is not in the log any more, and what is no record, needs none. StorageError, DecodeError.
    """
    snapshot, last = log.snapshot, given_up[-1].last
    offset = max(offset, snapshot.log_start_offset)
    if offset > last or offset >= snapshot.high_watermark:
        return Letters([], [], last + 1)
    data = read_settled(log, offset, READ_BYTES, snapshot.high_watermark)
    if not data.slices:
        return Letters([], [], last + 1)
    raw = memoryview(data.slices[0].read())
    limit = log.config.max_decompressed_message_bytes
    spans = log.search.arrivals_between(offset, last + 1)
    found, size_bytes = Letters([], [], last + 1), 0
    for record, following in _records(raw, offset, last, limit):
        why = _why(given_up, record.offset)
        if why is not None:
            row = _row(record, why, log, terms, spans)
            size_bytes += size_of(row)
            if found.rows and size_bytes > min(terms.most_bytes, READ_BYTES):
                return found._replace(next_offset=record.offset)
            found.rows.append(row)
            found.reasons.append(why.reason)
        if len(found.rows) >= MOST_LETTERS:
            return found._replace(next_offset=record.offset + 1)
        found = found._replace(next_offset=following)
    return found._replace(next_offset=max(found.next_offset, _end_of(raw, offset)))


def _records(
    raw: memoryview, first: int, last: int, limit_bytes: int
) -> Iterator[tuple[Record, int]]:
    """Records of a range, each with the offset after it."""
    for position, header in iter_headers(raw):
        if header.base_offset > last:
            return
        if header.last_offset < first or header.is_control:
            continue
        for record in iter_records(raw[position:], limit_bytes=limit_bytes):
            if first <= record.offset <= last:
                yield record, record.offset + 1


def _end_of(raw: memoryview, offset: int) -> int:
    """The offset after the batches that were read."""
    return max((header.last_offset + 1 for _, header in iter_headers(raw)), default=offset)


def _why(given_up: Sequence[GivenUp], offset: int) -> GivenUp | None:
    return next((each for each in given_up if each.first <= offset <= each.last), None)


def _row(
    record: Record, why: GivenUp, log: Log, terms: LetterTerms, spans: Sequence[ArrivalSpan]
) -> Row:
    headers = [*(record.headers if terms.copies else ()), *_headers(record, why, log, terms)]
    arrival = next((each.last_ms for each in spans if record.offset < each.end_offset), None)
    if arrival is not None:
        headers.append((header_names.ARRIVAL_TIME, b"%d" % arrival))
    if terms.copies:
        return terms.now_ms, record.key, record.value, headers
    return terms.now_ms, None, None, headers


def _headers(record: Record, why: GivenUp, log: Log, terms: LetterTerms) -> list[Header]:
    text = f"Delivered {why.deliveries} times, and not accepted."
    if why.reason == REJECTED:
        text = "A member rejected the record."
    headers: list[Header] = [
        (header_names.TOPIC, log.topic.encode()),
        (header_names.PARTITION, b"%d" % log.partition),
        (header_names.OFFSET, b"%d" % record.offset),
        (header_names.GROUP, terms.group.encode()),
        (header_names.DELIVERY_COUNT, b"%d" % why.deliveries),
        (header_names.MESSAGE, text.encode()),
        (header_names.REASON, why.reason.encode()),
        (header_names.RECORD_TIME, b"%d" % record.timestamp),
    ]
    if why.member:
        headers.append((header_names.MEMBER, why.member.encode()))
    return headers
