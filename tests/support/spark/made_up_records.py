"""Records that are made up from their offsets: a source for archives that needs no log.

Of any offset it is known whether there is a record, and what is in it.
"""

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline.sinks.archive.rounds import ArchiveStretch
from pipeline.sinks.archive.run import Extent
from pipeline.sinks.archive.values import Stream

DAY_MS = 86_400_000
TODAY_MS = 20_778 * DAY_MS
"""21 November 2026: the same in every process of a test, whatever midnight comes between them."""
STRETCH = 500
ROWS_A_BATCH = 70


class Row(NamedTuple):
    """The record at an offset."""

    offset: int
    time_ms: int
    key: bytes
    value: bytes | None
    table: str
    """Of the archive, where it belongs."""
    day: int | None


def row_at(offset: int) -> Row | None:
    """The record; None for a hole. One in 50 has a bad time, one in 30 no JSON."""
    if offset % 41 == 7:
        return None
    when = TODAY_MS - 3 * DAY_MS + offset * 60_000 % (3 * DAY_MS) - (offset * 7919) % 5000
    table = "records"
    if offset % 50 == 13:
        bad = (-1, 0, when // 1000, when + 29 * 365 * DAY_MS, when * 1000, -DAY_MS)
        when, table = bad[offset // 50 % len(bad)], "quarantine"
    value: bytes | None = json.dumps({"n": offset, "text": "x" * (offset % 90)}).encode()
    if offset % 30 == 4:
        value = b"no JSON" if offset % 60 == 4 else b'{"n": "many"}'
        table = "dead_letters" if table == "records" else table
    if offset % 97 == 0:
        value = None
    if value is None and table == "dead_letters":
        table = "records"
    day = when // DAY_MS if table == "records" else None
    return Row(offset, when, b"k%d" % (offset % 13), value, table, day)


def rows_between(first: int, until: int) -> list[Row]:
    """All records of a stretch."""
    return [row for row in map(row_at, range(first, until)) if row is not None]


class MadeUp:
    """A source of partitions with so many offsets each. `pause`: seconds that a batch takes."""

    def __init__(
        self, ends: dict[int, int], *, start: int = 0, topic_id: str = "made", pause: float = 0
    ) -> None:
        self._ends = ends
        self._start = start
        self._topic_id = topic_id
        self._pause = pause

    def extents(self) -> list[Extent]:
        return [
            Extent(Stream("t", self._topic_id, number), self._start, end)
            for number, end in self._ends.items()
        ]

    def stretches(self, extent: Extent, first: int) -> Iterator[ArchiveStretch]:
        while first < extent.end:
            until = min(extent.end, (first // STRETCH + 1) * STRETCH)
            work = (extent.stream.partition, first, until, self._pause)
            yield ArchiveStretch(extent.stream, first, until, 100 * (until - first), work)
            first = until

    @property
    def read(self) -> Any:
        return read_made_up


def read_made_up(work: Any, schema: pa.Schema) -> Iterable[pa.RecordBatch]:
    """The records of a stretch, a batch at a time."""
    partition, first, until, pause = work
    for begin in range(first, until, ROWS_A_BATCH):
        rows = rows_between(begin, min(until, begin + ROWS_A_BATCH))
        time.sleep(pause)
        if rows:
            yield pa.RecordBatch.from_pylist([_columns(row, partition) for row in rows], schema)


def _columns(row: Row, partition: int) -> dict[str, Any]:
    fits = abs(row.time_ms) < 2**53
    return {
        "topic": "t", "partition": partition, "offset": row.offset, "key": row.key,
        "value": row.value, "timestamp": row.time_ms * 1000 if fits else 0, "timestampType": 0,
        "headers": [{"key": "h", "value": b"%d" % row.offset}] if row.offset % 5 == 0 else None,
        "timestampMs": row.time_ms, "appendTime": None, "producerId": -1,
    }  # fmt: skip
