"""Batches out of bytes and files, whatever their format: messages of before Kafka 0.11 become some.

They keep offsets, times, keys, values and codec, as when a broker is started on their directory
(`storage.old_formats.format_upgrade`). A batch made of them has the position of its first message.

Offsets rise from batch to batch, or it is damage: no CRC covers them, and a torn write may have
left a batch that lacks nothing else.
"""

from collections.abc import Generator, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from pipeline.decode import numpy_decoder as lockstep
from pipeline.decode.batch_columns import BASE_OFFSET, LAST_OFFSET, POSITION
from pipeline.decode.columns import BatchOrigin
from pipeline.decode.decoder import DEFAULT_ENGINE, Table, is_old_format, tabulate
from pipeline.errors import DamagedLog
from protocol.errors import DecodeError
from protocol.records.compression import DEFAULT_LIMIT_BYTES
from storage.old_formats.format_upgrade import converted_run, end_of_message

READ_BYTES = (16 if DEFAULT_ENGINE is lockstep else 4) * 1024 * 1024
MOST_BATCH_BYTES = 512 * 1024 * 1024


class TableSource(Protocol):
    """Source of batches: a segment's `.log`."""

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; the count is short only at the end of the file."""

    def size(self) -> int:
        """Length in bytes."""


class Batched(NamedTuple):
    """Whole batches in a row."""

    data: memoryview
    table: Table
    position: int
    """Base of the positions in the table."""


class Rest(NamedTuple):
    """End of the whole batches, and facts about the next bytes; as in `Table`."""

    end: int
    needed: int
    fault: DamagedLog | None


class Parts(NamedTuple):
    """Contents of some bytes."""

    batches: list[Batched]
    fault: DamagedLog | None
    """Fault behind them."""


def parts_of(data: memoryview, origin: BatchOrigin) -> Parts:
    """All whole batches that `data` begins with."""
    found: list[Batched] = []
    walk = tables_in(data, origin)
    while True:
        try:
            found.append(next(walk))
        except StopIteration as ended:
            return Parts(found, ended.value.fault)


def tables_in(
    data: memoryview, origin: BatchOrigin, next_offset: int = 0
) -> Generator[Batched, None, Rest]:
    """The whole batches that `data` begins with; `origin` says where that is.

    None may have an offset below `next_offset`, nor below one before it.
    """
    at = 0
    while True:
        place = origin._replace(position=origin.position + at)
        if is_old_format(data, at):
            end = end_of_message(data, at)
            if end > len(data):
                return Rest(at, end - at, None)
            try:
                end, batch = converted_run(data, at, end, DEFAULT_LIMIT_BYTES)
            except DecodeError as error:
                text = (
                    f"{place}, at byte {place.position}: {error.message}; horolog verify tells more"
                )
                return Rest(at, 0, DamagedLog(text))
            table = _in_order(tabulate(batch, place), place, next_offset)
            if table.fault is not None:
                return Rest(at, 0, table.fault)
            yield Batched(memoryview(batch), table, place.position)
            at, next_offset = end, _end_offset(table)
            continue
        table = _in_order(tabulate(data[at:], place), place, next_offset)
        if len(table.rows):
            next_offset = _end_offset(table)
            yield Batched(data[at:], table, place.position)
        at += table.end
        if table.fault is None or not is_old_format(data, at):
            return Rest(at, table.needed, table.fault)


def read_tables(
    file: TableSource,
    origin: BatchOrigin,
    start: int,
    end: int,
    last_offset: int,
    *,
    read_bytes: int = READ_BYTES,
) -> Iterator[Batched]:
    """The batches from `start` to `end` and to `last_offset`; the bytes hold until the next ones.

    DamagedLog for a batch that is wrong or cut off before that offset.
    """
    position, size, next_offset = start, read_bytes, origin.segment or 0
    buffer = bytearray()
    while position < end:
        size = min(size, end - position)
        if size > len(buffer):
            buffer = bytearray(size)
        data = memoryview(buffer)[:size]
        data = data[: file.read_into(position, data)]
        found = tables_in(data, origin._replace(position=position), next_offset)
        while True:
            try:
                part = next(found)
            except StopIteration as ended:
                rest: Rest = ended.value
                break
            yield part
            next_offset = _end_offset(part.table)
            if next_offset > last_offset:
                return
        if _is_behind(data, rest.end, last_offset):
            return
        if rest.fault is not None:
            raise rest.fault
        position += rest.end
        size = read_bytes
        if not rest.end:  # the next batch is larger than what was read, or not all there
            size = rest.needed
            end = max(end, file.size())
            if not 0 < size <= min(end - position, MOST_BATCH_BYTES):
                raise _cut_off(origin, position, last_offset)


def _in_order(table: Table, place: BatchOrigin, next_offset: int) -> Table:
    """The table up to the first batch whose offsets do not follow those before it."""
    rows = table.rows
    ends = np.concatenate(([next_offset], rows[:-1, LAST_OFFSET] + 1))
    wrong = np.flatnonzero(rows[:, BASE_OFFSET] < ends[: len(rows)])
    if not len(wrong):
        return table
    row = wrong[0]
    at = int(rows[row, POSITION])
    fault = DamagedLog(
        f"{place}, at byte {place.position + at}: offset {rows[row, BASE_OFFSET]} follows "
        f"{ends[row] - 1}; horolog verify tells more"
    )
    return Table(rows[:row], at, 0, fault)


def _end_offset(table: Table) -> int:
    return int(table.rows[-1, LAST_OFFSET]) + 1


def _is_behind(data: memoryview, end: int, last_offset: int) -> bool:
    """True when the next batch begins after all that is wanted; its first bytes may say so."""
    begin = data[end : end + 8]
    return len(begin) == 8 and int.from_bytes(begin, "big") > last_offset


def _cut_off(origin: BatchOrigin, position: int, last_offset: int) -> DamagedLog:
    return DamagedLog(
        f"{origin}, at byte {position}: the batch is cut off, below offset {last_offset + 1}, up "
        "to which may be read; horolog verify tells more"
    )
