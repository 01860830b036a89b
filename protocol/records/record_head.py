"""Heads of the records of format 2: what every walker reads first, and its faults.

Compiled walkers inline the same function of record_head.pxd; uncompiled ones call this one. Rules:
semantics.md 7.2.
"""

from typing import Final

from protocol.records.numbers import Octets, leaves_int64, zigzag

HEAD_FAULTS: Final = (
    "",
    "its length runs past the batch",
    "its timestamp delta is damaged",
    "its timestamp leaves the 64-bit range",
    "its offset delta is damaged",
)
"""Faults of a head, by the number that `head_of` gives."""
OFFSET_FAULT: Final = 4


def head_of(
    data: Octets, at: int, limit: int, base_timestamp: int
) -> tuple[int, int, int, int, int]:
    """Read a record's head: position of its key's size, its end, time, offset delta, fault or 0."""
    size, at = zigzag(data, at, limit, 32)
    if at < 0 or size < 1 or size > limit - at:
        return 0, 0, 0, 0, 1
    end = at + size
    delta, at = zigzag(data, at + 1, end, 64)  # after the attributes, which mean nothing yet
    if at < 0:
        return 0, 0, 0, 0, 2
    if leaves_int64(base_timestamp, delta):
        return 0, 0, 0, 0, 3
    offset_delta, at = zigzag(data, at, end, 32)
    if at < 0:
        return 0, 0, 0, 0, OFFSET_FAULT
    return at, end, base_timestamp + delta, offset_delta, 0
