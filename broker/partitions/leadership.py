"""The leader of a partition: without a fleet this node, always; in one perhaps another."""

from math import inf
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError

NOBODY = -1
NEW_SECONDS = 10.0
"""Batches that were on their way when a leader changed have come by then, or were sent again."""


class Leadership(NamedTuple):
    """Leader of a partition, as far as this node knows."""

    node_id: int
    """-1: nobody, for the moment."""
    epoch: int
    is_here: bool
    """It is this node, which serves it."""
    gained_at: float = -inf
    """Monotonic seconds."""

    def is_new(self, now: float) -> bool:
        """True while some of what a producer has on its way may have been refused before."""
        return now - self.gained_at < NEW_SECONDS

    def refusal(self, place: object) -> KafkaError:
        """NOT_LEADER_OR_FOLLOWER (6): clients ask for the leader once more, and try again."""
        whose = f"node {self.node_id} leads it" if self.node_id != NOBODY else "nobody leads it yet"
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{place}: {whose}")
