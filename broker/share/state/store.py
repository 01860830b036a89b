"""The states of share partitions, as the leaders of these partitions use them."""

from typing import Protocol

from broker.runtime.deferred import Deferred
from broker.share.state.coordinator import ShareChange
from broker.share.state.key import ShareKey
from broker.share.state.remembered import SharePartitionState


class ShareStates(Protocol):
    """The share coordinator of this broker, or of whichever node of a fleet."""

    def read(
        self, key: ShareKey, leader_epoch: int
    ) -> SharePartitionState | Deferred[SharePartitionState]:
        """Remembered state. Raises KafkaError, or fails with it."""

    def write(self, key: ShareKey, change: ShareChange) -> Deferred[None]:
        """Changes what is remembered; settled when that is durable. Raises KafkaError, or fails
        with it.
        """

    def is_current(self, key: ShareKey, state_epoch: int) -> bool:
        """False when the state is known to have been begun again, or forgotten, since it was read
        with this epoch.
        """

    def epoch_of(self, key: ShareKey, leader_epoch: int) -> int:
        """The epoch with which the leader of a partition asks. Where there is one node only no
        later leader can be: the epoch that is remembered, of a fleet perhaps that this broker was
        taken out of, is its own.
        """
