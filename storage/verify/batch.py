"""A batch as the proofs see it: its header's facts, and those of the records in it."""

from typing import NamedTuple

from protocol.errors import DecodeError
from protocol.records.batch import CODEC_MASK, HEADER_BYTES, NO_TIMESTAMP
from protocol.records.compression import codec_of, inflate
from protocol.records.scan import BatchRow
from protocol.records.walk import check_records
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.zones.gaps import Gap


class ProvenBatch(NamedTuple):
    """A sound batch. Times in ms; those of records are what their producers claimed."""

    position: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    """As readers see it: what the header states."""
    record_count: int
    attributes: int
    leader_epoch: int
    min_claimed: int
    max_claimed: int
    """Both -1 when no record has a time."""
    max_claimed_offset: int
    """Of the first record that has the largest; -1 when that is not known."""
    is_read: bool
    """True when the records could be unpacked, so that their times are known."""
    in_gap: int = 0
    """Records with a time that their zone says none has."""


def proven(
    row: BatchRow, data: memoryview, begin: int, gap: Gap | None = None
) -> tuple[ProvenBatch, DecodeError | None]:
    """The batch of a scan's row, and why its records cannot be read, if so.

    `gap`: of its zone.
    """
    attributes, count = row[7], row[6]
    body: memoryview | bytes | bytearray = data[row[0] + HEADER_BYTES : row[0] + row[5]]
    low = high = NO_TIMESTAMP
    at = -1
    in_gap = 0
    error = None
    try:
        if attributes & CODEC_MASK:
            body = inflate(codec_of(attributes & CODEC_MASK), body)
        facts = check_records(body, count, row[3], *(gap or (INT64_MIN, INT64_MAX)))
        low, high = facts.min_timestamp, facts.max_timestamp
        if gap is not None:
            in_gap = count - facts.untimed - facts.out_of_bounds
        if facts.first_misplaced < 0 <= facts.max_timestamp_index:
            at = row[1] + facts.max_timestamp_index
    except DecodeError as failed:
        error = failed
    batch = ProvenBatch(
        begin + row[0],
        row[1],
        row[2],
        row[4],
        count,
        attributes,
        row[11],
        low,
        high,
        at,
        error is None,
        in_gap,
    )
    return batch, error
