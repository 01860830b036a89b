"""State of a share partition as the coordinator remembers it, and how a change alters it."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.share.state.merge import merge
from broker.share.states import StateBatch

UNKNOWN = -1


class SharePartitionState(NamedTuple):
    """All that is stored of a share partition. Values are never changed in place."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    """The first offset that is not finished; -1 while that was not decided."""
    finished: int
    """Number of finished offsets from the start on; -1 while that is not known."""
    batches: list[StateBatch]
    created_ms: int
    written_ms: int
    """Wall time at which the snapshot was written; the state it shows was made at `created_ms`."""
    updates: int = 0
    """Updates since the snapshot."""
    newest_leader: int = 0
    """Newest epoch of a leader since it is known, also from before it was begun again."""

    @property
    def fenced_below(self) -> int:
        """Epochs of leaders below this one are refused."""
        return max(self.leader_epoch, self.newest_leader)

    def changed(
        self, leader_epoch: int, start_offset: int, finished: int, batches: Sequence[StateBatch]
    ) -> "SharePartitionState":
        """After one more update; -1 leaves an epoch or the start as it is. How many are finished is
        not known any more where it does not say so, as with a Kafka.
        """
        start = self.start_offset if start_offset == UNKNOWN else start_offset
        return self._replace(
            leader_epoch=self.leader_epoch if leader_epoch == UNKNOWN else leader_epoch,
            newest_leader=max(self.fenced_below, leader_epoch),
            start_offset=start,
            finished=finished,
            batches=merge(self.batches, batches, start),
            updates=self.updates + 1,
        )

    def as_snapshot(self, now_ms: int) -> "SharePartitionState":
        """The same, to be stored as a snapshot of its own."""
        return self.repeated(now_ms)._replace(created_ms=now_ms)

    def repeated(self, now_ms: int) -> "SharePartitionState":
        """The same, to be stored as one more snapshot of what was made before."""
        return self._replace(snapshot_epoch=self.snapshot_epoch + 1, written_ms=now_ms, updates=0)
