"""The byte-level rules that headers, construct types and generated code share, and their limits.

Nothing here allocates by a number that a peer claimed. Unknown tagged fields are stepped over and
never become objects. (Limits: operations C1, C2.)
"""

from __future__ import annotations

import functools
import uuid

from protocol.errors import DecodeError

Buffer = bytes | bytearray | memoryview

MAX_OBJECTS = 250_000  # Python objects that one message may decode to, whatever its size
FREE_OBJECTS = 20_000  # those that a frame of any size may decode to; more need bytes to back them
BYTES_PER_OBJECT = 6  # on the wire, beyond the free ones: the heap stays near ten frames
MAX_TAGS = 64  # tagged fields of one struct
TAG_COST = 5  # what an unknown tag takes of the object budget: it costs time, not memory

ZERO_UUID = uuid.UUID(int=0)
ONE_BYTE = tuple(bytes((value,)) for value in range(256))


def object_budget(size: int) -> int:
    """Return how many objects a frame of `size` bytes may decode to."""
    return min(MAX_OBJECTS, FREE_OBJECTS + size // BYTES_PER_OBJECT)


def read_uvarint(data: Buffer, at: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits: (value, position after it).

    Raises DecodeError when it is longer, IndexError when the data ends in it.
    """
    value = 0
    for byte_number in range(5):
        byte = data[at + byte_number]
        value |= (byte & 0x7F) << (7 * byte_number)
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, at + byte_number + 1
    raise DecodeError("a variable-length integer has more than 32 bits", at)


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    if value < 0x80:
        return ONE_BYTE[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_tag_count(data: Buffer, at: int, first_byte: int) -> tuple[int, int]:
    """Finish the count of a tag section whose first byte was read already; `at` is after it. Raises
    DecodeError.
    """
    count = first_byte
    if count > 0x7F:
        count, at = read_uvarint(data, at - 1)
    if count > MAX_TAGS:
        raise DecodeError(f"{count} tagged fields in one struct, more than {MAX_TAGS}", at)
    return count, at


def skip_tags(data: Buffer, at: int, first_byte: int, budget: int) -> tuple[int, int]:
    """Step over a section of tagged fields nobody here knows: (position after it, budget left).
    Raises DecodeError.
    """
    count, at = read_tag_count(data, at, first_byte)
    budget -= count * TAG_COST
    if budget < 0:
        raise DecodeError("too many tagged fields for the size", at)
    end = len(data)
    for _ in range(count):
        _, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        at += size
        if at > end:
            raise DecodeError("truncated in a tagged field", end)
    return at, budget


@functools.lru_cache(maxsize=4096)
def to_uuid(raw: bytes) -> uuid.UUID:
    """Turn 16 bytes into a UUID; topic ids come again and again."""
    return uuid.UUID(bytes=raw)
