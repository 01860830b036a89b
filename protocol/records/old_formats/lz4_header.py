"""The header checksum of LZ4 frames, which format 0 has wrong (semantics.md 7.6).

Old Kafka took it over the magic number and the descriptor, in place of the descriptor alone, and
clients of that time do the same. A reader of format 0 must not verify it, and a writer must write
it wrong. The checksum is the second byte of XXH32; only its form for short input is needed here.
"""

from collections.abc import Iterator

MAGIC_BYTES = 4
_CONTENT_SIZE, _DICTIONARY = 0x08, 0x01
_PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_MASK = 0xFFFFFFFF


def with_right_checksum(frame: memoryview) -> bytes | memoryview:
    """The frame as the LZ4 library wants it, whatever the check byte was."""
    at = _checksum_position(frame)
    if at >= len(frame):
        return frame
    right = _check_byte(bytes(frame[MAGIC_BYTES:at]))
    return frame if frame[at] == right else bytes(frame[:at]) + bytes((right,)) + frame[at + 1 :]


def with_wrong_checksum(frame: bytes) -> bytes:
    """The frame as brokers and clients of format 0 want it; for headers of at most 15 bytes."""
    at = _checksum_position(frame)
    return frame[:at] + bytes((_check_byte(frame[:at]),)) + frame[at + 1 :]


def _checksum_position(frame: bytes | memoryview) -> int:
    flags = frame[MAGIC_BYTES] if len(frame) > MAGIC_BYTES else 0
    return 6 + (8 if flags & _CONTENT_SIZE else 0) + (4 if flags & _DICTIONARY else 0)


def _check_byte(data: bytes) -> int:
    return xxh32(data) >> 8 & 0xFF


def xxh32(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes."""
    assert len(data) < 16, "longer input has another form"
    _, second, third, _, fifth = _PRIMES
    state = fifth + len(data)
    for number, prime, turn, factor in _rounds(data):
        state = (state + number * prime) & _MASK
        state = (state << turn | state >> (32 - turn)) * factor & _MASK
    state = (state ^ state >> 15) * second & _MASK
    state = (state ^ state >> 13) * third & _MASK
    return state ^ state >> 16


def _rounds(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    first, _, third, fourth, fifth = _PRIMES
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        yield int.from_bytes(data[at : at + 4], "little"), third, 17, fourth
    for byte in data[whole:]:
        yield byte, fifth, 11, first
