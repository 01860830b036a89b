"""The dirty-time walkers driven over a whole payload, in chunks, compiled or from their source."""

from array import array
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from protocol.records import mistimed
from protocol.records.batch import HEADER_BYTES
from protocol.records.builder import NewRecord, build_batch
from protocol.records.record import Record, read_records
from tests.support.records.record_walkers import from_source

NAMES = ("walk", "mistimed", "rewrite", "faults")
SOURCE = {name: from_source(name) for name in NAMES}


@dataclass(slots=True)
class Judged:
    """Results of the walkers."""

    verdicts: bytes
    tally: list[int]
    outlines: list[tuple[int, int, array]]  # type: ignore[type-arg]  # first, count, rows


def judged(  # noqa: PLR0917 - called by position
    walk: ModuleType,
    judge: ModuleType,
    payload: bytes,
    count: int,
    base: int,
    limits: mistimed.Limits,
    chunk: int = 4,
) -> Judged:
    """Every record judged, a chunk at a time."""
    verdicts = b""
    tally = array("q", bytes(8 * mistimed.TALLY_COLUMNS * mistimed.VERDICTS))
    outlines, at = [], 0
    for first in range(0, count, chunk):
        size = min(chunk, count - first)
        outline = array("q", bytes(64 * size))
        at = walk.outline_records(payload, at, first, size, base, outline)
        found = bytearray(size)
        judge.judge_times(outline, first, size, limits, found, tally)
        verdicts += found
        outlines.append((first, size, outline))
    return Judged(verdicts, list(tally), outlines)


def rewritten(
    rewrite: ModuleType, payload: bytes, seen: Judged, rewriting: Any
) -> tuple[bytes, int]:
    """The payload that comes out, and its number of records."""
    out, written = b"", 0
    times = array("q", rewrite.NO_TIMES)
    for first, size, outline in seen.outlines:
        verdicts = seen.verdicts[first : first + size]
        buffer = bytearray(7 + rewrite.room_for(outline, size, verdicts, rewriting))
        end, written = rewrite.rewrite_records(
            payload, outline, first, size, verdicts, rewriting, written, buffer, 7, times
        )
        assert not any(buffer[:7])
        out += buffer[7:end]
    return out, written


def payload_of(rows: list[NewRecord]) -> bytes:
    """The records of a batch as they lie in it."""
    return bytes(build_batch(rows)[HEADER_BYTES:])


def records_of(payload: bytes, count: int, base: int, last_delta: int = -1) -> list[Record]:
    """The records in a payload."""
    batch = build_batch([(base, None, None)] * count) if count else build_batch([])
    head = bytearray(batch[:HEADER_BYTES])
    head[8:12] = (len(payload) + HEADER_BYTES - 12).to_bytes(4)
    return read_records(memoryview(bytes(head) + payload))
