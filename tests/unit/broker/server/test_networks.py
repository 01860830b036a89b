"""Who is told a published port: clients that come in by the gateway, or from networks not ours."""

import pytest

from broker.runtime.endpoint import Endpoint
from broker.server.endpoints import BoundListener
from broker.server.networks import ROUTES, is_outside, is_outside_of
from storage.posix import real_env
from tests.support.disk.simenv import sim_env

# The routes of a container in 172.17.0.0/16 (gateway 172.17.0.1) and 10.1.2.0/24.
TABLE = """\
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010011AC	0003	0	0	0	00000000	0	0	0
eth0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
eth1	0002010A	00000000	0001	0	0	0	00FFFFFF	0	0	0
"""
HEAD = TABLE.splitlines()[0]


@pytest.mark.parametrize(
    ("client", "outside"),
    [
        ("172.17.0.1", True),  # the gateway: a published port
        ("172.17.0.9", False),
        ("172.17.255.9", False),
        ("10.1.2.3", False),
        ("10.1.3.3", True),
        ("192.168.65.1", True),
        ("127.0.0.1", False),
        ("127.5.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("", False),
    ],
)
def test_the_routing_table_tells(client: str, outside: bool) -> None:
    assert is_outside_of(TABLE, client) is outside


@pytest.mark.parametrize("table", ["", HEAD, f"{HEAD}\neth0\t0000"])
def test_without_routes_nobody_is_outside(table: str) -> None:
    assert not is_outside_of(table, "192.168.65.1")


def test_the_kernel_s_own_table_can_be_read() -> None:
    """Whatever it says: loopback is inside, and no client makes it fail."""
    fs = real_env().fs
    assert not is_outside(fs, "127.0.0.1")
    assert is_outside(fs, "192.0.2.1") in {True, False}


def test_a_machine_without_that_file_takes_everybody_for_inside() -> None:
    fs = sim_env().fs
    assert not fs.exists(ROUTES)
    assert not is_outside(fs, "192.0.2.1")


REACHED = Endpoint("172.17.0.2", 9092)
TOLD, PUBLISHED = Endpoint("broker.example", 19092), Endpoint("localhost", 9092)


@pytest.mark.parametrize(
    ("advertised", "published", "outside", "answer"),
    [
        (None, None, True, REACHED),
        (None, PUBLISHED, False, REACHED),
        (None, PUBLISHED, True, PUBLISHED),
        (TOLD, PUBLISHED, True, TOLD),
        (TOLD, PUBLISHED, False, TOLD),
    ],
)
def test_what_a_client_is_told(
    advertised: Endpoint | None, published: Endpoint | None, outside: bool, answer: Endpoint
) -> None:
    listener = BoundListener("PLAINTEXT", "0.0.0.0", 9092, advertised, published)
    assert listener.endpoint_for(*REACHED, outside=outside) == answer


def test_what_somebody_on_the_host_dials() -> None:
    assert str(BoundListener("A", "", 9092, None, PUBLISHED).dialled) == "localhost:9092"
    assert str(BoundListener("A", "", 9092).dialled) == "127.0.0.1:9092"
