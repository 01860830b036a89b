"""Memory of this process, from the allocators themselves, so without slowing it."""

import ctypes
import gc
import sys

SMALL_BLOCK_BYTES = 100
"""About what a block of Python's own allocator takes: objects of up to 512 bytes."""
BEFORE, BETWEEN, BEHIND = 4, 2, 2
"""Numbers of `struct mallinfo2` around the two that count."""


class _MallInfo(ctypes.Structure):
    _fields_ = (
        ("before", ctypes.c_size_t * BEFORE),
        ("hblkhd", ctypes.c_size_t),  # in blocks of their own
        ("between", ctypes.c_size_t * BETWEEN),
        ("uordblks", ctypes.c_size_t),  # in arenas
        ("behind", ctypes.c_size_t * BEHIND),
    )


def held_bytes() -> int:
    """Bytes in use, by Python and by the libraries in C; what is garbage is collected before.

    AttributeError where the C library is not glibc 2.33 or newer.
    """
    gc.collect()
    tell = ctypes.CDLL(None).mallinfo2
    tell.restype = _MallInfo
    told = tell()
    return int(told.uordblks + told.hblkhd) + sys.getallocatedblocks() * SMALL_BLOCK_BYTES
