"""The leader of a partition: without a fleet this node, always; in one perhaps another."""

from math import inf
from typing import NamedTuple, Protocol

from protocol.errors import ErrorCode, KafkaError

NOBODY = -1
NEW_SECONDS = 10.0
"""Batches that were on their way when a leader changed have come by then, or were sent again."""


class Lease(Protocol):
    """A node's right to lead what it leads, which it has to renew."""

    @property
    def is_held(self) -> bool:
        """False while another node may have taken over already, unseen from here."""

    @property
    def held_since(self) -> float:
        """Monotonic seconds from which on records were taken without a gap."""

    @property
    def has_room(self) -> bool:
        """False while no more records of clients can be kept."""


class _ForEver:
    """A lease that needs no renewal."""

    is_held = has_room = True
    held_since = -inf


_FOR_EVER: Lease = _ForEver()


class Leadership(NamedTuple):
    """Leader of a partition, as far as this node knows."""

    node_id: int
    """-1: nobody, for the moment."""
    epoch: int
    is_here: bool
    """It is this node, which serves it."""
    gained_at: float = -inf
    """Monotonic seconds."""
    lease: Lease = _FOR_EVER

    def is_new(self, now: float) -> bool:
        """True while some of what a producer has on its way may have been refused before."""
        return now - max(self.gained_at, self.lease.held_since) < NEW_SECONDS

    @property
    def takes_writes(self) -> bool:
        """True where batches may be appended."""
        return self.is_here and self.lease.is_held

    def check_room(self) -> None:
        """NOT_ENOUGH_REPLICAS (19), which clients retry, while no more can be kept."""
        if not self.lease.has_room:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                "The object store takes nothing, and the database has as many bytes of this node "
                "as horolog.fleet.rows.max.bytes allows",
            )

    def refusal(self, place: object) -> KafkaError:
        """NOT_LEADER_OR_FOLLOWER (6): clients ask for the leader once more, and try again."""
        if self.is_here:
            return KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{place}: another node may lead it by now"
            )
        whose = f"node {self.node_id} leads it" if self.node_id != NOBODY else "nobody leads it yet"
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{place}: {whose}")
