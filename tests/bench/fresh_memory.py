"""Memory that a hypervisor has taken back is touched before a round, not by the broker in it.

A virtual machine may give free memory back to its host, in blocks of 2 MiB and more. The first
touch then costs up to ten times what writing into it does, and would be charged to whichever
broker's page cache happens to get those blocks: the same append costs 0.6 ms a MB or 3. Which
blocks an allocation gets is not ours to say, so all that are free are touched: everything once at
the beginning of a run, the large blocks, which are those that can go back, before each round of a
cell that asks for it. What measures latency or a start does not: the host takes back meanwhile.
"""

import mmap
from pathlib import Path

PAGE = mmap.PAGESIZE
HUGE_ORDER = 9
HUGE_PAGE = PAGE << HUGE_ORDER
LEFT_BYTES = 2 << 30
"""Stays free, so that no cache of files is given up for it."""
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def touch_all() -> None:
    """Takes all free memory from the host, and leaves it free."""
    touch()
    size = _free_bytes() - LEFT_BYTES
    if size > 0:
        mmap.mmap(-1, size, flags=PRIVATE | mmap.MAP_POPULATE).close()


def touch() -> None:
    """Takes the large free blocks from the host, and leaves them free."""
    size = (_free_huge_bytes() - LEFT_BYTES) // HUGE_PAGE * HUGE_PAGE
    if size <= 0:
        return
    with mmap.mmap(-1, size, flags=PRIVATE) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for begin in range(0, size, HUGE_PAGE):
            memory[begin] = 1


def _free_bytes() -> int:
    lines = _said_by_kernel("meminfo")
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemFree:")), 0)


def _free_huge_bytes() -> int:
    zones = [list(map(int, zone.split()[4:])) for zone in _said_by_kernel("buddyinfo")]
    return sum(
        count * (PAGE << order)
        for zone in zones
        for order, count in enumerate(zone)
        if order >= HUGE_ORDER
    )


def _said_by_kernel(name: str) -> list[str]:
    """Nothing where there is no such kernel."""
    try:
        return Path("/proc", name).read_text(encoding="ascii").splitlines()
    except OSError:
        return []
