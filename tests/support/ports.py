"""Ports for servers that come back at the same address.

Not those that the system gives to connections that go out: one of them may have a server's port
while the server is away.
"""

import random
import socket
from contextlib import ExitStack
from pathlib import Path

LEAST = 10_240
GIVEN_BY_SYSTEM = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST_GIVEN = 32_768
"""Taken where the system does not say it."""


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody uses at this moment, all different."""
    candidates, found = random.sample(_candidates(), k=len(_candidates())), list[int]()
    with ExitStack() as kept:
        while len(found) < count:
            probe = kept.enter_context(socket.socket())
            port = candidates.pop()
            try:
                probe.bind(("", port))
            except OSError:
                continue
            found.append(port)
    return found


def free_port() -> int:
    """As `free_ports`, one."""
    return free_ports(1)[0]


def _candidates() -> range:
    try:
        first_given = int(GIVEN_BY_SYSTEM.read_text().split()[0])
    except OSError:
        first_given = FIRST_GIVEN
    return range(LEAST, first_given) if first_given > 2 * LEAST else range(LEAST, FIRST_GIVEN)
