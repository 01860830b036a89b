"""Dead letters as records: where a record came from, and why it was given up, in headers.

Numbers and times (ms) are decimal digits. Reading blocks: it runs on a lane.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from broker.share.letters import header_names
from broker.share.states import REJECTED, GivenUp
from protocol.records.batch import iter_headers
from protocol.records.record import Header, Record, iter_records
from storage.log.log import Log
from storage.log.settled_read import read_settled
from storage.search.arrivals import ArrivalSpan

READ_BYTES = 1024 * 1024
MOST_LETTERS = 500
Row = tuple[Any, ...]
"""Time, key, value and headers of a letter."""


class LetterTerms(NamedTuple):
    """The facts that all letters of a group's partition have in common."""

    group: str
    copies: bool
    """Letters have key, value and headers of the record."""
    now_ms: int


class Letters(NamedTuple):
    """Letters of some offsets."""

    rows: list[Row]
    reasons: list[str]
    next_offset: int
    """The first offset that is not among them."""


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
    found = Letters([], [], last + 1)
    for record, following in _records(raw, offset, last, limit):
        why = _why(given_up, record.offset)
        if why is not None:
            found.rows.append(_row(record, why, log, terms, spans))
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
