"""Numbers and bytes of records and messages, read and written: zigzag numbers, and big-endian ones.

Walkers use these, and code that handles records one by one. Compiled walkers inline the same
functions of numbers.pxd; uncompiled ones call these. The tests of the walkers run both. Rules:
semantics.md 7.1 and 7.2.
"""

Octets = bytes | bytearray | memoryview
Room = bytearray | memoryview


def zigzag(data: Octets, at: int, limit: int, bits: int) -> tuple[int, int]:
    """A signed number of at most `bits` bits, and the position after it, or -1 for damage."""
    raw = shift = 0
    while at < limit:
        byte = data[at]
        at += 1
        if byte < 128:
            if shift > bits - 7 and byte >> (bits - shift):
                return 0, -1
            raw |= byte << shift
            return (raw >> 1) ^ -(raw & 1), at
        if shift > bits - 7:
            return 0, -1
        raw |= (byte & 127) << shift
        shift += 7
    return 0, -1


def sized(data: Octets, at: int, end: int) -> tuple[int, int]:
    """Size of a field, -1 for null, and where its bytes begin; there -1 for damage."""
    size, at = zigzag(data, at, end, 32)
    if at < 0 or size < -1 or size > end - at:
        return 0, -1
    return size, at


def walked_zigzag(data: Octets, at: int) -> tuple[int, int]:
    """A signed number that was read before, and the position after it."""
    byte = data[at]
    raw, shift = byte & 127, 7
    while byte > 127:
        at += 1
        byte = data[at]
        raw |= (byte & 127) << shift
        shift += 7
    return (raw >> 1) ^ -(raw & 1), at + 1


def leaves_int64(base: int, delta: int) -> bool:
    """True when base + delta is no 64-bit number."""
    return not -(2**63) <= base + delta < 2**63


def folded(number: int) -> int:
    """A signed number with its sign in the last bit."""
    return number << 1 if number >= 0 else (-number << 1) - 1


def zigzag_size(number: int) -> int:
    """Bytes that a signed number takes."""
    return max(1, -(-folded(number).bit_length() // 7))


def zigzag_bytes(number: int) -> bytes:
    """Encode a signed number of at most 64 bits."""
    if -64 <= number < 64:
        return _ONE_BYTE[number]
    rest = folded(number)
    if rest < 0x4000:
        return bytes((rest & 0x7F | 0x80, rest >> 7))
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def put_varint(out: Room, to: int, raw: int) -> int:
    """Write a number without sign; where it ends."""
    while raw > 127:
        out[to] = raw & 127 | 128
        raw >>= 7
        to += 1
    out[to] = raw
    return to + 1


def put_zigzag(out: Room, to: int, number: int) -> int:
    """Write a signed number; where it ends."""
    return put_varint(out, to, folded(number))


def put_bytes(out: Room, to: int, data: Octets, at: int, end: int) -> int:
    """Copy bytes for which there is room; where they end. None when `end` is not above `at`."""
    out[to : to + end - at] = data[at:end]
    return to + end - at


def int64_at(data: Octets, at: int) -> int:
    """Read a big-endian number of eight bytes."""
    return int.from_bytes(data[at : at + 8], "big", signed=True)


def int32_at(data: Octets, at: int) -> int:
    """Read a big-endian number of four bytes."""
    return int.from_bytes(data[at : at + 4], "big", signed=True)


def int16_at(data: Octets, at: int) -> int:
    """Read a big-endian number of two bytes."""
    return int.from_bytes(data[at : at + 2], "big", signed=True)


def put_int32(out: Room, to: int, number: int) -> int:
    """Write the low four bytes, the highest first; where they end."""
    out[to : to + 4] = (number & 0xFFFF_FFFF).to_bytes(4, "big")
    return to + 4


def put_int64(out: Room, to: int, number: int) -> int:
    """Write eight bytes, the highest first; where they end."""
    out[to : to + 8] = (number & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "big")
    return to + 8


_ONE_BYTE = tuple(bytes((folded(n),)) for n in (*range(64), *range(-64, 0)))
"""Encoded numbers that take one byte, by number: negative ones count from the end."""
