"""Whole batches in, Arrow columns out: the one decoder of every transport, job and sink.

The work is done by the compiled `protocol.records.columns`, or in lock-step by numpy where it is
not compiled; both give the same columns. What is not selected never leaves here: offsets, record
times, aborted transactions and control batches are judged record by record. Only the columns of the
wanted schema are made. No I/O.
"""

from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.decode import compiled
from pipeline.decode import numpy_decoder as lockstep
from pipeline.decode.arrays import Numbers
from pipeline.decode.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIME,
    COUNT,
    LAST_OFFSET,
    MAX_TIME,
    POSITION,
    PRODUCER,
    ROW_NUMBERS,
    SIZE,
)
from pipeline.decode.columns import NEEDS_BATCH, Batches, BatchOrigin, columns_of, named
from pipeline.decode.compiled import Octets
from pipeline.decode.schemas import ALL_COLUMNS
from pipeline.errors import DamagedLog
from protocol.errors import DecodeError
from protocol.records.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAX_INT64,
    MIN_INT64,
    TRANSACTIONAL,
    InvalidRecords,
)
from protocol.records.columns import BATCH_NUMBERS, IS_COMPILED, Wanted
from protocol.records.compression import DEFAULT_LIMIT_BYTES, codec_of, inflate
from protocol.records.scan import tabulate_batches
from storage.index.txn_index import AbortedTxn

__all__ = ["EVERYTHING", "BatchOrigin", "Selection", "Table", "decode", "decode_rows", "tabulate"]

UNPACKED_AT_A_TIME = 64 * 1024 * 1024
MAGIC_AT = 16


class Selection(NamedTuple):
    """Selection of the records to decode: inclusive bounds, without aborted transactions."""

    first_offset: int = 0
    last_offset: int = MAX_INT64
    low_ms: int = MIN_INT64
    """Record times, as readers see them: of a stamped batch its append time."""
    high_ms: int = MAX_INT64
    aborted: tuple[AbortedTxn, ...] = ()
    """Transactions whose records do not count (read_committed)."""


EVERYTHING = Selection()
DEFAULT_ENGINE: ModuleType = compiled if IS_COMPILED else lockstep


class Table(NamedTuple):
    """The whole batches that some bytes begin with."""

    rows: Numbers
    """A row for each, with the columns of `rows`."""
    end: int
    """Their end."""
    needed: int
    """Bytes from there on that the next batch takes, or its header; 0 when nothing follows."""
    fault: DamagedLog | None = None
    """Fault of the next batch, when all of it is there, or its header is."""


def decode(
    data: Octets,
    origin: BatchOrigin,
    schema: pa.Schema,
    selection: Selection = EVERYTHING,
    *,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    engine: ModuleType = DEFAULT_ENGINE,
) -> Iterator[pa.RecordBatch]:
    """The selected records of the batches in `data`, with the columns of `schema`, in log order.

    `schema` holds fields of `schemas.ALL_COLUMNS`. The last batch may be cut off: it is left out.
    DamagedLog for a wrong CRC, header or record, and for a batch that unpacks to more than
    `limit_bytes`.
    """
    table = tabulate(data, origin)
    yield from decode_rows(
        data, table.rows, origin, schema, selection, limit_bytes=limit_bytes, engine=engine
    )
    if table.fault is not None:
        raise table.fault


def tabulate(data: Octets, origin: BatchOrigin) -> Table:
    """The whole batches that `data` begins with, headers and CRCs checked."""
    rows = np.empty((len(data) // HEADER_BYTES + 1, ROW_NUMBERS), np.int64)  # touched as filled
    count, scan = tabulate_batches(data, 0, rows.reshape(-1))
    fault = None
    if scan.stop == "corrupt":
        place = f"{origin}, at byte {origin.position + scan.position}"
        fault = DamagedLog(
            f"{place}: the {scan.fault} of a batch is wrong; horolog verify tells more"
        )
    return Table(rows[:count], scan.position, scan.needed, fault)


def is_old_format(data: Octets, position: int) -> bool:
    """True when a message of format 0 or 1 seems to begin there."""
    return len(data) > position + MAGIC_AT and data[position + MAGIC_AT] < 2


def decode_rows(
    data: Octets,
    rows: Numbers,
    origin: BatchOrigin,
    schema: pa.Schema,
    selection: Selection = EVERYTHING,
    *,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    engine: ModuleType = DEFAULT_ENGINE,
) -> Iterator[pa.RecordBatch]:
    """As `decode`, for the batches of a table that was made before."""
    kept = rows[_wanted_rows(rows, selection)]
    for payloads, table, batches in _unpacked(data, kept, origin, limit_bytes):
        group = Batches(batches, origin)
        try:
            made = _decoded(payloads, table, group, schema, selection, engine)
        except DecodeError:
            raise _blamed(payloads, table, group, engine) from None
        if made.num_rows:
            yield made


def _wanted_rows(rows: Numbers, selection: Selection) -> Any:
    attributes = rows[:, ATTRIBUTES]
    is_stamped = attributes & LOG_APPEND_TIME != 0
    wanted = (
        (attributes & CONTROL == 0)
        & (rows[:, COUNT] > 0)
        & (rows[:, LAST_OFFSET] >= selection.first_offset)
        & (rows[:, BASE_OFFSET] <= selection.last_offset)
        & (rows[:, MAX_TIME] >= selection.low_ms)
        & ~(is_stamped & (rows[:, MAX_TIME] > selection.high_ms))
    )
    if selection.aborted:
        wanted &= ~_aborted(rows, selection.aborted)
    return wanted


def _aborted(rows: Numbers, aborted: tuple[AbortedTxn, ...]) -> Any:
    found = np.zeros(len(rows), np.bool_)
    for each in aborted:
        found |= (
            (rows[:, PRODUCER] == each.producer_id)
            & (rows[:, BASE_OFFSET] >= each.first_offset)
            & (rows[:, LAST_OFFSET] <= each.last_offset)
        )
    return found & (rows[:, ATTRIBUTES] & TRANSACTIONAL != 0)


def _unpacked(
    data: Octets, rows: Numbers, origin: BatchOrigin, limit_bytes: int
) -> Iterator[tuple[Octets, Numbers, Numbers]]:
    """Payloads, the table of their places, and the rows of their batches."""
    if not len(rows):
        return
    table = np.empty((len(rows), BATCH_NUMBERS), np.int64)
    table[:, 0] = rows[:, POSITION] + HEADER_BYTES
    table[:, 1] = rows[:, POSITION] + rows[:, SIZE]
    table[:, 2], table[:, 3] = rows[:, COUNT], rows[:, BASE_OFFSET]
    table[:, 4], table[:, 5] = rows[:, BASE_TIME], rows[:, MAX_TIME]
    table[:, 6] = rows[:, ATTRIBUTES] & LOG_APPEND_TIME != 0
    if not (rows[:, ATTRIBUTES] & CODEC_MASK).any():
        yield data, table, rows
        return
    first, joined = 0, bytearray()
    for index in range(len(rows)):
        joined, start = _inflated(data, rows[index], table[index], joined, origin, limit_bytes)
        table[index, :2] = start, len(joined)
        if len(joined) >= UNPACKED_AT_A_TIME or index == len(rows) - 1:
            part = slice(first, index + 1)
            yield joined, table[part], rows[part]
            first, joined = index + 1, bytearray()


def _inflated(  # noqa: PLR0917 - private, called in one place
    data: Octets,
    row: Numbers,
    place: Numbers,
    joined: bytearray,
    origin: BatchOrigin,
    limit_bytes: int,
) -> tuple[bytearray, int]:
    """`joined` with the records of one more batch, and where they begin there."""
    start = len(joined)
    packed = memoryview(data)[int(place[0]) : int(place[1])]
    try:
        codec = codec_of(int(row[ATTRIBUTES]) & CODEC_MASK)
        joined += inflate(codec, packed, limit_bytes=limit_bytes)
    except DecodeError as error:
        raise DamagedLog(f"{named(Batches(row[None], origin))}: {error.message}") from None
    return joined, start


def _decoded(  # noqa: PLR0917 - private, called by position
    payloads: Octets,
    table: Numbers,
    batches: Batches,
    schema: pa.Schema,
    selection: Selection,
    engine: ModuleType,
) -> pa.RecordBatch:
    """One record batch. DecodeError."""
    if (table[:, 2] > table[:, 1] - table[:, 0]).any():
        raise InvalidRecords("a batch counts more records than it has bytes")
    names = set(schema.names)
    has_bytes = not names.isdisjoint(("key", "value", "headers"))
    is_mixed = bool(table[:, 6].any() and not table[:, 6].all())
    located = engine.locate(
        payloads,
        table,
        Wanted(*selection[:4]),
        origins=not names.isdisjoint(NEEDS_BATCH) or ("timestampType" in names and is_mixed),
        places=has_bytes,
    )
    taken = {}
    for name, is_last in (("key", names.isdisjoint(("value", "headers"))), ("value", False)):
        if name in names:
            taken[name] = engine.take(payloads, located)
        elif has_bytes and not is_last:
            engine.skip(payloads, located)
    if "headers" in names:
        taken["headers"] = engine.take_lists(payloads, located)
    return columns_of(schema, located, batches, taken)


def _blamed(payloads: Octets, table: Numbers, batches: Batches, engine: ModuleType) -> DamagedLog:
    """The first damage, with its batch: found by reading one batch after the other."""
    for index in range(len(table)):
        single = Batches(batches.rows[index : index + 1], batches.origin)
        try:
            _decoded(payloads, table[index : index + 1], single, ALL_COLUMNS, EVERYTHING, engine)
        except DecodeError as error:
            return DamagedLog(f"{named(single)}: {error.message}")
    return DamagedLog(f"{batches.origin}: a batch cannot be read")
