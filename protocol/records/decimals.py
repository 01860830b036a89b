"""Numbers as decimal text, for walkers that write headers and the texts of faults.

Compiled walkers inline the same functions of decimals.pxd; uncompiled ones call these.
"""


def digits_of(number: int) -> int:
    """Characters that a number takes in decimal text, its sign included."""
    return len(str(number))


def put_digits(out: bytearray | memoryview, to: int, number: int, digits: int) -> int:
    """Write a number as decimal text, `digits` long; where it ends."""
    out[to : to + digits] = str(number).encode("ascii")
    return to + digits
