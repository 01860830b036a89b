"""Persister of share groups (KIP-932): the states of their partitions, where they are stored."""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from broker.runtime.deferred import Deferred

UNINITIALIZED = -1
"""Start offset of a partition that nobody has read yet, and a count that nobody has."""


@dataclass(frozen=True, slots=True)
class StateSummary:
    """Progress of a group in one partition: its first unfinished offset."""

    start_offset: int = UNINITIALIZED
    leader_epoch: int = 0
    delivery_complete_count: int = UNINITIALIZED
    """Finished offsets from the start offset on."""


class SharePersister(Protocol):
    """Stores the states of the partitions that share groups read.

    Each call settles when the change is durable, and fails with KafkaError.
    """

    def initialize(
        self, group_id: str, topic_id: UUID, partition: int, state_epoch: int, start_offset: int
    ) -> Deferred[None]:
        """Makes a state, or begins one again: FENCED_STATE_EPOCH (124) below its epoch."""

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> Deferred[None]:
        """Forgets a state; one that is not there is forgotten already."""

    def summary(
        self, group_id: str, topic_id: UUID, partition: int
    ) -> StateSummary | Deferred[StateSummary]:
        """Reads a state; one that is not there has no start. Raises KafkaError, or fails with it,
        when it cannot be read.
        """
