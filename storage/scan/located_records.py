"""Records of one batch as columns, all of them: where each is, and its time."""

from array import array
from typing import NamedTuple

from protocol.records.batch import BatchHeader
from protocol.records.columns import Room, Wanted, locate_records
from storage.env import Buffer
from storage.timestamps import INT64_MAX, INT64_MIN

ALL = Wanted(INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX)
NOTHING = array("q")


class LocatedRecords(NamedTuple):
    """Columns of one batch; `places` and `ends` are empty where they were not asked for."""

    offsets: "array[int]"
    times: "array[int]"
    """Milliseconds, as readers see them."""
    places: "array[int]"
    ends: "array[int]"


def located(records: Buffer, header: BatchHeader, *, places: bool) -> LocatedRecords:
    """Unpacked records of a batch. DecodeError for what is no record."""
    count = header.record_count
    table = array(
        "q",
        (
            0, len(records), count, header.base_offset, header.base_timestamp,
            header.max_timestamp, header.is_log_append_time,
        ),
    )  # fmt: skip
    offsets, times = numbers(count), numbers(count)
    at, ends = (numbers(count), numbers(count)) if places else (NOTHING, NOTHING)
    room = Room(offsets, times, NOTHING, NOTHING, NOTHING, at, ends)
    found = locate_records(records, table, ALL, room)
    return LocatedRecords(offsets[:found], times[:found], at[:found], ends[:found])


def numbers(count: int) -> "array[int]":
    """Room for so many numbers of 64 bits."""
    return array("q", bytes(8 * count))
