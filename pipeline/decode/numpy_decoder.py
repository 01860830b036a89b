"""The decoder where nothing is compiled: numpy takes the i-th record of every batch in one step.

Gives what `compiled` gives. Thirty times as fast as reading record by record in Python, given many
batches at a time; a column of fields is one `take` of Arrow's.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.decode.arrays import Mask, Numbers
from pipeline.decode.compiled import Located, Octets, take_lists
from protocol.records.batch import InvalidRecords
from protocol.records.columns import Wanted

__all__ = ["Located", "locate", "skip", "take", "take_lists"]

_Octets = np.ndarray[Any, np.dtype[np.uint8]]
_NONE = np.empty(0, np.int64)
_MOST_BYTES = {32: 5, 64: 10}


class _Heads(NamedTuple):
    """One record of each batch that has so many."""

    time: Numbers
    delta: Numbers
    place: Numbers
    end: Numbers


def locate(
    payloads: Octets, table: Numbers, wanted: Wanted, *, origins: bool, places: bool
) -> Located:
    """The wanted records of the batches in `table`, in its order. InvalidRecords."""
    data = _octets(payloads)
    counts = table[:, 2]
    firsts = np.cumsum(counts) - counts
    total = int(counts.sum())
    delta, claimed, place, end = np.empty((4, total), np.int64)
    at = table[:, 0].copy()
    for index in range(int(counts.max(initial=0))):
        alive = np.flatnonzero(counts > index)
        heads = _heads(data, at[alive], table[alive])
        rows = firsts[alive] + index
        delta[rows], claimed[rows] = heads.delta, heads.time
        place[rows], end[rows] = heads.place, heads.end
        at[alive] = heads.end
    _refuse(at != table[:, 1], "bytes follow its last record")
    return _selected(table, wanted, (delta, claimed, place, end), origins=origins, places=places)


def skip(payloads: Octets, located: Located) -> None:
    """Move the places behind a field that nobody wants. InvalidRecords."""
    _sizes(_octets(payloads), located)


def take(payloads: Octets, located: Located) -> pa.Array:
    """The fields at the places as a binary array; the places move on. InvalidRecords."""
    data = _octets(payloads)
    sizes = _sizes(data, located)
    is_there = sizes >= 0
    count = len(sizes)
    if not count:
        return pa.array([], pa.binary())
    slots = np.empty(2 * count + 1, np.int32)  # a gap, a field, a gap, a field, ...
    slots[0] = 0
    slots[2::2] = located.places
    slots[1::2] = located.places - np.maximum(sizes, 0)
    buffers = [None, pa.py_buffer(slots), pa.py_buffer(data)]
    whole = pa.Array.from_buffers(pa.binary(), 2 * count, buffers)
    wanted = pa.array(np.arange(1, 2 * count, 2, dtype=np.int32), mask=~is_there)
    return whole.take(wanted)


def _selected(
    table: Numbers,
    wanted: Wanted,
    columns: tuple[Numbers, ...],
    *,
    origins: bool,
    places: bool,
) -> Located:
    delta, claimed, place, end = columns
    batch = np.repeat(np.arange(len(table)), table[:, 2])
    base = table[batch, 3]
    offset = base + delta
    _refuse(_wrapped(base, delta, offset), "its offset delta is damaged", batch)
    time = np.where(table[batch, 6] != 0, table[batch, 5], claimed)
    keep = np.flatnonzero(
        (offset >= wanted.first_offset)
        & (offset <= wanted.last_offset)
        & (time >= wanted.low_ms)
        & (time <= wanted.high_ms)
    )
    extra = (claimed[keep], batch[keep], delta[keep]) if origins else (_NONE,) * 3
    where = (place[keep], end[keep]) if places else (_NONE,) * 2
    return Located(offset[keep], time[keep], *extra, *where)


def _heads(data: _Octets, at: Numbers, rows: Numbers) -> _Heads:
    limit, base = rows[:, 1], rows[:, 4]
    size, at, sound = _zigzag(data, at, limit, 32)
    _refuse(~sound | (size < 1) | (size > limit - at), "its length runs past the batch")
    end = at + size
    time_delta, at, sound = _zigzag(data, at + 1, end, 64)
    _refuse(~sound, "its timestamp delta is damaged")
    time = base + time_delta
    _refuse(_wrapped(base, time_delta, time), "its timestamp leaves the 64-bit range")
    delta, at, sound = _zigzag(data, at, end, 32)
    _refuse(~sound, "its offset delta is damaged")
    return _Heads(time, delta, at, end)


def _sizes(data: _Octets, located: Located) -> Numbers:
    size, at, sound = _zigzag(data, located.places, located.ends, 32)
    bad = ~sound | (size < -1) | (size > located.ends - at)
    _refuse(bad, "its key or value runs past the record")
    located.places[:] = at + np.maximum(size, 0)
    return size


def _zigzag(data: _Octets, at: Numbers, limit: Numbers, bits: int) -> tuple[Numbers, Numbers, Mask]:
    """Signed numbers at all positions, the positions behind them, and whether they are sound."""
    byte = data[np.minimum(at, len(data) - 1)].astype(np.uint64)
    raw = byte & np.uint64(127)
    at = at + 1
    sound = at <= limit
    more = np.flatnonzero(byte > 127)
    for index in range(1, _MOST_BYTES[bits]):
        if not len(more):
            break
        where = at[more]
        byte = data[np.minimum(where, len(data) - 1)].astype(np.uint64)
        shift = 7 * index
        if shift > bits - 7:
            sound[more] &= byte >> np.uint64(bits - shift) == 0
        raw[more] |= (byte & np.uint64(127)) << np.uint64(shift)
        at[more] = where + 1
        sound[more] &= where < limit[more]
        more = more[byte > 127]
    sound[more] = False
    return (
        (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64),
        at,
        sound,
    )


def _wrapped(base: Numbers, delta: Numbers, total: Numbers) -> Mask:
    """True where base + delta left the 64-bit range."""
    return (delta > 0) & (total < base) | (delta < 0) & (total > base)


def _refuse(bad: Mask, why: str, batches: Numbers | None = None) -> None:
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise InvalidRecords(why, first if batches is None else int(batches[first]))


def _octets(payloads: Octets) -> _Octets:
    data = np.frombuffer(payloads, np.uint8)
    return data if len(data) else np.zeros(1, np.uint8)
