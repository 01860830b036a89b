"""The share coordinator of this broker as the persister of its share groups: no request between."""

from uuid import UUID

from broker.groups.share.persister import StateSummary
from broker.runtime.deferred import Deferred
from broker.share.state.coordinator import ShareCoordinator
from broker.share.state.key import ShareKey
from protocol.errors import KafkaError


class LocalPersister:
    """A `SharePersister`. Used from the event loop only."""

    def __init__(self, states: ShareCoordinator) -> None:
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
            return _failed(error)

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> Deferred[None]:
        """Forgets a state; one that is not there is forgotten already."""
        try:
            return self._states.delete(ShareKey(group_id, topic_id, partition))
        except KafkaError as error:
            return _failed(error)

    def summary(self, group_id: str, topic_id: UUID, partition: int) -> StateSummary:
        """Reads a state; one that is not there has no start. Raises KafkaError."""
        found = self._states.summary(ShareKey(group_id, topic_id, partition))
        return StateSummary(found.start_offset, found.leader_epoch, found.finished)


def _failed(error: KafkaError) -> Deferred[None]:
    failed: Deferred[None] = Deferred()
    failed.fail(error)
    return failed
