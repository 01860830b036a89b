"""Memory settings of the processes that decode and write.

A worker keeps the memory it has had: piece after piece takes as much, and the kernel would clear it
each time. Arrow's own allocator gives it back, and begins with huge pages most of which are cleared
in vain: reading all columns is a sixth slower with it. What the user has set stays."""

import ctypes
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

POOL = "ARROW_DEFAULT_MEMORY_POOL"
_MMAP_THRESHOLD, _TRIM_THRESHOLD = "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"
WORKER_MEMORY: Mapping[str, str] = MappingProxyType({
    POOL: "system",
    _MMAP_THRESHOLD: str(128 << 20),
    _TRIM_THRESHOLD: str(256 << 20),
})  # fmt: skip
_MALLOPT = {_TRIM_THRESHOLD: -1, _MMAP_THRESHOLD: -3}
"""Numbers of glibc's mallopt(3)."""


@contextmanager
def worker_memory() -> Iterator[None]:
    """Programs that begin meanwhile take their memory so."""
    added = WORKER_MEMORY.keys() - os.environ.keys()
    os.environ.update({name: WORKER_MEMORY[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def keep_memory() -> None:
    """This process keeps its memory from now on: it was forked, and has read no variables.

    Arrow's allocator is chosen when Arrow is loaded, which was before (`pipeline.cli.main`).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for name, number in _MALLOPT.items():
            if name not in os.environ:
                mallopt(number, int(WORKER_MEMORY[name]))
