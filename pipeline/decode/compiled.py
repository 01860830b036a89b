"""The compiled decoder's results as Arrow arrays: room is made here, filled there, never copied."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.decode.arrays import Numbers, bitmap
from pipeline.decode.schemas import HEADERS
from protocol.records.batch import InvalidRecords
from protocol.records.columns import (
    Fields,
    HeaderRoom,
    Room,
    Wanted,
    count_headers,
    locate_records,
    take_fields,
    take_headers,
)

_Memory = np.ndarray[Any, np.dtype[np.uint8]]
Octets = bytes | bytearray | memoryview

_NONE = np.empty(0, np.int64)
_NO_FIELDS = Fields(np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.uint8))


class Located(NamedTuple):
    """Numbers of the wanted records, and places of their fields. Empty: not asked for."""

    offsets: Numbers
    times: Numbers
    claimed: Numbers
    batches: Numbers
    deltas: Numbers
    places: Numbers
    """Of the key's size; `take` moves them on."""
    ends: Numbers


def locate(
    payloads: Octets, table: Numbers, wanted: Wanted, *, origins: bool, places: bool
) -> Located:
    """The wanted records of the batches in `table` (`columns.locate_records`). InvalidRecords."""
    count = int(table[:, 2].sum())
    numbers = _memory(7 * 8 * count).view(np.int64).reshape(7, count)
    offsets, times, *rest = numbers
    claimed, batches, deltas = rest[:3] if origins else (_NONE,) * 3
    starts, ends = rest[3:] if places else (_NONE,) * 2
    room = Room(offsets, times, claimed, batches, deltas, starts, ends)
    found = locate_records(payloads, table.reshape(-1), wanted, room)
    return Located(*(each[:found] for each in room))


def skip(payloads: Octets, located: Located) -> None:
    """Move the places behind a field that nobody wants. InvalidRecords."""
    take_fields(payloads, located.places, located.ends, _NO_FIELDS)


def take(payloads: Octets, located: Located) -> pa.Array:
    """The fields at the places as a binary array; the places move on. InvalidRecords."""
    count = len(located.places)
    room = _room(count, len(payloads))
    size = take_fields(payloads, located.places, located.ends, room)
    return pa.Array.from_buffers(pa.binary(), count, _buffers(room, size))


def take_lists(payloads: Octets, located: Located) -> pa.Array:
    """The headers at the places; null where a record has none. InvalidRecords."""
    records = len(located.places)
    total = count_headers(payloads, located.places, located.ends)
    lists = _room(records, 0)
    octets = len(payloads) if total else 0
    names, values = _room(total, octets), _room(total, octets)
    sizes = take_headers(payloads, located.places, located.ends, HeaderRoom(lists, names, values))
    if not names.is_there.view(np.bool_).all():
        raise InvalidRecords("a header has a null key")
    columns = [
        pa.Array.from_buffers(pa.string(), total, _buffers(names, sizes[0])),
        pa.Array.from_buffers(pa.binary(), total, _buffers(values, sizes[1])),
    ]
    pairs = pa.StructArray.from_arrays(columns, fields=list(HEADERS.value_type))
    outer = [bitmap(lists.is_there.view(np.bool_)), pa.py_buffer(lists.ends)]
    return pa.Array.from_buffers(HEADERS, records, outer, children=[pairs])


def _room(entries: int, octets: int) -> Fields:
    ends = _memory(4 * (entries + 1)).view(np.int32)
    ends[0] = 0
    return Fields(ends, _memory(entries), _memory(octets))


def _memory(size: int) -> _Memory:
    """Arrow's allocator keeps what was given back; numpy's has the kernel clear it every time."""
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)


def _buffers(room: Fields, size: int) -> list[pa.Buffer | None]:
    return [
        bitmap(room.is_there.view(np.bool_)),
        pa.py_buffer(room.ends),
        pa.py_buffer(_kept(room.data, size)),
    ]


def _kept(room: _Memory, size: int) -> _Memory:
    """The filled part. A buffer that is mostly empty is copied: rows may wait for others."""
    if size > len(room) // 2:
        return room[:size]
    fitting = _memory(size)
    fitting[:] = room[:size]
    return fitting
