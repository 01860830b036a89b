"""The leader of a partition: without a fleet this node, always; in one perhaps another."""

from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError

NOBODY = -1


class Leadership(NamedTuple):
    """Leader of a partition, as far as this node knows."""

    node_id: int
    """-1: nobody, for the moment."""
    epoch: int
    is_here: bool
    """It is this node, which serves it."""

    def refusal(self, place: object) -> KafkaError:
        """NOT_LEADER_OR_FOLLOWER (6): clients ask for the leader once more, and try again."""
        whose = f"node {self.node_id} leads it" if self.node_id != NOBODY else "nobody leads it yet"
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{place}: {whose}")
