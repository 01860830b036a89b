"""Memory that a hypervisor has taken back is touched before a round, not by the broker in it.

A virtual machine gives memory that was free for two seconds back to its host. The first touch then
costs several times what writing into it does, and would be charged to whichever broker comes first
after a topic was deleted.
"""

import mmap


def touch(megabytes: int) -> None:
    """Takes that much memory from the host and leaves it free."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, megabytes * 1_000_000, flags=flags).close()
