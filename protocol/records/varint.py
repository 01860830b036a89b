"""Zigzag numbers of one to ten bytes, as record bodies hold them (semantics.md 7.2).

For code that handles records one by one (builder, record); the compiled walk has its own. Reading
expects bytes that the walk has passed.
"""


def zigzag_bytes(number: int) -> bytes:
    """Encode a signed number of at most 64 bits."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    if rest < 0x80:
        return _ONE_BYTE[rest]
    if rest < 0x4000:
        return bytes((rest & 0x7F | 0x80, rest >> 7))
    encoded = bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def read_zigzag(data: memoryview, position: int) -> tuple[int, int]:
    """Decode the number at `position`: the number and the position after it."""
    raw = shift = 0
    while True:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7


_ONE_BYTE = tuple(bytes((n,)) for n in range(0x80))
