"""Addresses of the other nodes of a fleet, as clients of each listener hear them."""

from broker.runtime.endpoint import Endpoint
from broker.runtime.request_context import Peer
from broker.server.endpoints import AdvertisedEndpoints
from tests.support.disk.simdisk import SimFileSystem

INSIDE, OUTSIDE = Endpoint("in.test", 9092), Endpoint("out.test", 9093)


def peer(listener: str) -> Peer:
    return Peer(1, "10.0.0.7", 50_000, listener, "10.0.0.1", 9092)


def test_those_that_live_and_those_that_have_gone() -> None:
    endpoints = AdvertisedEndpoints({}, SimFileSystem())
    both = {"IN": INSIDE, "OUT": OUTSIDE}
    endpoints.others_are({1: both, 2: both, 3: {"IN": INSIDE}}, {4: both}, besides=1)
    assert endpoints.others_of(peer("IN")) == {2: INSIDE, 3: INSIDE}
    assert endpoints.known_to(peer("IN")) == {2: INSIDE, 3: INSIDE, 4: INSIDE}
    assert endpoints.known_to(peer("OUT")) == {2: OUTSIDE, 4: OUTSIDE}
    assert endpoints.known_to(peer("NONE")) == {}
