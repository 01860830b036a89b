"""Detection of clients from outside of the networks that this machine is on.

A container sees clients of its own networks by their addresses. Clients of a published port appear
as its gateway, or as addresses of other networks; the address that they dialled is unknown here.
The kernel's routing table distinguishes them, and is read each time, since a container can join a
network while it runs. Only IPv4 is judged: all others count as inside.
"""

from ipaddress import AddressValueError, IPv4Address

from storage.env import FileSystem
from storage.errors import DiskError

ROUTES = "/proc/net/route"
MAX_BYTES = 256 * 1024


def is_outside(fs: FileSystem, client_host: str) -> bool:
    """True when the client is the gateway, or in no network that this machine has an address in.

    False when the machine's routes cannot be known.
    """
    try:
        routes = fs.open(ROUTES, write=False)
    except DiskError:
        return False
    try:
        return is_outside_of(routes.read_at(0, MAX_BYTES).decode("ascii", "replace"), client_host)
    except DiskError:
        return False
    finally:
        routes.close()


def is_outside_of(table: str, client_host: str) -> bool:
    """The same, by a table in the form of Linux: hexadecimal words in the order of a small CPU."""
    try:
        client = int(IPv4Address(client_host))
    except AddressValueError:
        return False
    if client >> 24 == 127:
        return False
    rows = [line.split() for line in table.splitlines()[1:]]
    routes = [tuple(map(_number, (row[1], row[2], row[7]))) for row in rows if len(row) >= 8]
    if not routes or any(gateway == client for _, gateway, _ in routes):
        return bool(routes)
    return not any(
        mask and not gateway and client & mask == network for network, gateway, mask in routes
    )


def _number(word: str) -> int:
    """0011A8C0 is 192.168.17.0."""
    return int.from_bytes(bytes.fromhex(word), "little")
