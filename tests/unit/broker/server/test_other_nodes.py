"""Addresses of the other nodes of a fleet, as clients of each listener hear them."""

import pytest

from broker.runtime.endpoint import Endpoint
from broker.runtime.request_context import Peer
from broker.server.client_software import ClientSoftware
from broker.server.endpoints import AdvertisedEndpoints
from tests.support.disk.simdisk import SimFileSystem

INSIDE, OUTSIDE = Endpoint("in.test", 9092), Endpoint("out.test", 9093)


def peer(listener: str, connection: int = 1) -> Peer:
    return Peer(connection, "10.0.0.7", 50_000, listener, "10.0.0.1", 9092)


def test_those_that_live_and_those_that_have_gone() -> None:
    software = ClientSoftware()
    endpoints = AdvertisedEndpoints({}, SimFileSystem(), software)
    software.named(1, "librdkafka", "2.16.0")
    both = {"IN": INSIDE, "OUT": OUTSIDE}
    endpoints.others_are({1: both, 2: both, 3: {"IN": INSIDE}}, {4: both}, besides=1)
    assert endpoints.others_of(peer("IN")) == {2: INSIDE, 3: INSIDE}
    assert endpoints.known_to(peer("IN")) == {2: INSIDE, 3: INSIDE, 4: INSIDE}
    assert endpoints.known_to(peer("OUT")) == {2: OUTSIDE, 4: OUTSIDE}
    assert endpoints.known_to(peer("NONE")) == {}


@pytest.mark.parametrize(
    ("name", "version", "hears"),
    [
        ("librdkafka", "2.16.0", True),
        ("confluent-kafka-python", "2.16.0-rdkafka-2.16.0", True),
        ("confluent-kafka-go", "2.16.0", True),
        ("rust-rdkafka", "0.38.0", True),
        ("my-client", "1.0-librdkafka-2.16.0", True),
        ("apache-kafka-java", "4.3.0", False),
        ("kgo", "1.20.0", False),
        ("unknown", "unknown", False),
    ],
)
def test_those_that_have_gone_are_for_clients_that_would_wait_for_them(
    name: str, version: str, *, hears: bool
) -> None:
    """Others ask each node that they hear of, and would wait for one that is gone."""
    software = ClientSoftware()
    endpoints = AdvertisedEndpoints({}, SimFileSystem(), software)
    endpoints.others_are({2: {"IN": INSIDE}}, {4: {"IN": INSIDE}}, besides=1)
    software.named(7, name, version)
    assert endpoints.known_to(peer("IN", 7)).keys() == ({2, 4} if hears else {2})
    software.connection_lost(7)
    assert endpoints.known_to(peer("IN", 7)).keys() == {2}
