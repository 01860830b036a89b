"""Commits of consumer groups, from the records of `__consumer_offsets`. Pure.

The last commit of a group and partition counts; one without a value takes it back. Some commits
before it are kept, to measure the speed of the group.
"""

import struct
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

TOPIC = "__consumer_offsets"
REMEMBERED = 32
_OFFSET_KEYS = frozenset({0, 1})
_FLEXIBLE = 4
_SHORT, _LONG = struct.Struct(">h"), struct.Struct(">q")


class GroupPlace(NamedTuple):
    """Place of a commit."""

    group: str
    topic: str
    partition: int


class Committed(NamedTuple):
    """An offset, and when it was committed (ms)."""

    offset: int
    time_ms: int


Commits = dict[GroupPlace, "deque[Committed]"]


def apply(commits: Commits, rows: Iterable[tuple[bytes | None, bytes | None]]) -> None:
    """Go over keys and values in the order of the log; other records of the topic are passed."""
    for key, value in rows:
        place = _place(key)
        if place is None:
            continue
        if value is None:
            commits.pop(place, None)
            continue
        found = _committed(value)
        if found is not None:
            commits.setdefault(place, deque(maxlen=REMEMBERED)).append(found)


def rate(commits: Iterable[Committed]) -> float | None:
    """Records a second between the first and the last of these commits; None if nothing tells."""
    known = list(commits)
    if len(known) < 2 or known[-1].time_ms <= known[0].time_ms:
        return None
    passed = (known[-1].time_ms - known[0].time_ms) / 1000
    return max(0, known[-1].offset - known[0].offset) / passed


def _place(key: bytes | None) -> GroupPlace | None:
    """Of a key: version, group, topic, partition."""
    if key is None or len(key) < 2 or _SHORT.unpack_from(key)[0] not in _OFFSET_KEYS:
        return None
    try:
        group, at = _text(key, 2)
        topic, at = _text(key, at)
        return GroupPlace(group, topic, int.from_bytes(key[at : at + 4], "big", signed=True))
    except (struct.error, UnicodeDecodeError):
        return None


def _committed(value: bytes) -> Committed | None:
    """Of a value: version, offset, (from 3: leader epoch,) metadata, time of the commit.

    From version 4 on the metadata is a compact string, and tagged fields follow.
    """
    try:
        version, offset = _SHORT.unpack_from(value)[0], _LONG.unpack_from(value, 2)[0]
        if version >= _FLEXIBLE:
            size, at = _varint(value, 14)
            at += max(0, size - 1)
        else:
            _, at = _text(value, 14 if version == _FLEXIBLE - 1 else 10)
        return Committed(offset, _LONG.unpack_from(value, at)[0])
    except (struct.error, UnicodeDecodeError, IndexError):
        return None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of seven bits a byte, and the position after it."""
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift > 28:
            return number, at


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = at + 2 + _SHORT.unpack_from(data, at)[0]
    return data[at + 2 : end].decode(), end
