"""Nodes that have gone are still told of for a while, and no longer than that."""

from broker.fleet.lately_gone import KEPT_SECONDS, LatelyGone
from broker.runtime.endpoint import Endpoint
from tests.support.disk.simenv import SimClock

FIRST = {"PLAINTEXT": Endpoint("first.test", 9092)}
MOVED = {"PLAINTEXT": Endpoint("moved.test", 9092)}
SECOND = {"PLAINTEXT": Endpoint("second.test", 9092)}


def test_nodes_are_told_of_until_they_are_back_or_gone_for_long() -> None:
    clock = SimClock()
    gone = LatelyGone(clock.monotonic)
    assert gone.look({1: FIRST, 2: SECOND}) == {}
    assert gone.look({2: SECOND}) == {1: FIRST}
    assert gone.look({1: MOVED, 2: SECOND}) == {}
    assert gone.look({}) == {1: MOVED, 2: SECOND}
    clock.advance(round(KEPT_SECONDS * 1000) - 1)
    assert gone.look({2: SECOND}) == {1: MOVED}
    clock.advance(1)
    assert gone.look({}) == {2: SECOND}
    assert gone.look({2: SECOND}) == {}
