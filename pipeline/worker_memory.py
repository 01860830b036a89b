"""How the processes that decode and write take their memory: by variables that they begin with.

A worker keeps the memory it has had: piece after piece takes as much, and the kernel would clear it
each time. Arrow's own allocator gives it back, and begins with huge pages most of which are cleared
in vain: reading all columns is a sixth slower with it. What the user has set stays.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

WORKER_MEMORY: Mapping[str, str] = MappingProxyType({
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(128 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
})  # fmt: skip


@contextmanager
def worker_memory() -> Iterator[None]:
    """Processes that begin meanwhile take their memory so."""
    added = WORKER_MEMORY.keys() - os.environ.keys()
    os.environ.update({name: WORKER_MEMORY[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
