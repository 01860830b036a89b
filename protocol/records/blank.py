"""Memory to be written into, which costs nothing until it is.

`bytearray(n)` writes zeros over all of it, and no other thread of the interpreter runs meanwhile:
64 MiB take 40 ms. A large piece is asked of the system instead, which gives pages as they are
first written to, by a library that lets others run.
"""

from mmap import mmap

LARGE_BYTES = 1024 * 1024
"""Below, the way to the system takes longer than the zeros."""


def blank(size_bytes: int) -> bytearray | memoryview:
    """So many zeros that may be written over."""
    if size_bytes <= LARGE_BYTES:
        return bytearray(size_bytes)
    return memoryview(mmap(-1, size_bytes))
