"""Nodes that have gone are still told of for a while, and no longer than that."""

from broker.fleet.lately_gone import KEPT_SECONDS, LatelyGone
from broker.runtime.endpoint import Endpoint
from tests.support.disk.simenv import SimClock

FIRST = {"PLAINTEXT": Endpoint("first.test", 9092)}
MOVED = {"PLAINTEXT": Endpoint("moved.test", 9092)}
SECOND = {"PLAINTEXT": Endpoint("second.test", 9092)}
FIRST_GONE = {"PLAINTEXT": Endpoint("first.test", 1)}
MOVED_GONE = {"PLAINTEXT": Endpoint("moved.test", 1)}
SECOND_GONE = {"PLAINTEXT": Endpoint("second.test", 1)}


def test_nodes_are_told_of_until_they_are_back_or_gone_for_long() -> None:
    clock = SimClock()
    gone = LatelyGone(clock.monotonic)
    assert gone.look({1: FIRST, 2: SECOND}) == {}
    assert gone.look({2: SECOND}) == {1: FIRST_GONE}
    assert gone.look({1: MOVED, 2: SECOND}) == {}
    assert gone.look({}) == {1: MOVED_GONE, 2: SECOND_GONE}
    clock.advance(round(KEPT_SECONDS * 1000) - 1)
    assert gone.look({2: SECOND}) == {1: MOVED_GONE}
    clock.advance(1)
    assert gone.look({}) == {2: SECOND_GONE}
    assert gone.look({2: SECOND}) == {}


def test_two_on_one_host_have_two_addresses() -> None:
    gone = LatelyGone(SimClock().monotonic)
    both = {each: {"PLAINTEXT": Endpoint("one.test", 9090 + each)} for each in (1, 2)}
    gone.look({**both, 3: SECOND})
    assert gone.look({3: SECOND}) == {1: {"PLAINTEXT": Endpoint("one.test", 1)}, 2: both[2]}
