"""The persister of share groups: their states as the share coordinator has them, in this broker or
in another one of its fleet.
"""

from typing import Protocol
from uuid import UUID

from broker.groups.share.persister import StateSummary
from broker.runtime.deferred import Deferred, refused
from broker.runtime.gathering import after
from broker.share.state.key import ShareKey
from broker.share.state.remembered import SharePartitionState
from protocol.errors import KafkaError


class StoredStates(Protocol):
    """The share coordinator. Each call raises KafkaError, or fails with it."""

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> Deferred[None]:
        """Begins a share partition, or begins it again."""

    def delete(self, key: ShareKey) -> Deferred[None]:
        """Forgets a share partition."""

    def summary(self, key: ShareKey) -> SharePartitionState | Deferred[SharePartitionState]:
        """Remembered state."""


class StatesPersister:
    """A `SharePersister`. Used from the event loop only."""

    def __init__(self, states: StoredStates) -> None:
        """Nothing was asked."""
        self._states = states

    def initialize(
        self, group_id: str, topic_id: UUID, partition: int, state_epoch: int, start_offset: int
    ) -> Deferred[None]:
        """Makes a state, or begins one again: FENCED_STATE_EPOCH (124) below its epoch."""
        key = ShareKey(group_id, topic_id, partition)
        try:
            return self._states.initialize(key, state_epoch, start_offset)
        except KafkaError as error:
            return refused(error)

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> Deferred[None]:
        """Forgets a state; one that is not there is forgotten already."""
        try:
            return self._states.delete(ShareKey(group_id, topic_id, partition))
        except KafkaError as error:
            return refused(error)

    def summary(
        self, group_id: str, topic_id: UUID, partition: int
    ) -> StateSummary | Deferred[StateSummary]:
        """Reads a state; one that is not there has no start. Raises KafkaError."""
        found = self._states.summary(ShareKey(group_id, topic_id, partition))
        if not isinstance(found, Deferred):
            return _summed(found)
        return after(found, _summed, _raised)


def _summed(state: SharePartitionState) -> StateSummary:
    return StateSummary(state.start_offset, state.leader_epoch, state.finished)


def _raised(error: KafkaError) -> StateSummary:
    raise error
