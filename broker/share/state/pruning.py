"""Keeps `__share_group_state` short: the disk does not fill, no start reads for ever.

As Kafka 4.3's share coordinator: from time to time what has had no snapshot for long gets one, and
records that nobody is read from any more go from the front of each partition. Kafka writes the
snapshots of all queues that rest while one of them works; here they are written only where that
frees more records than it writes. Work is done in slices, so that no request waits for all of it.
"""

from collections.abc import Sequence

from broker.partitions.partition import Partition
from broker.runtime.deferred import Deferred, refused
from broker.runtime.event_log import event
from broker.runtime.gathering import wait_for
from broker.share.state.coordinator import ShareCoordinator
from broker.share.state.key import ShareKey

AT_ONCE = 50
"""Share partitions whose snapshots are written together."""
AT_ONCE_RANGES = 10_000
MOST_NAMED = 20
"""Events of one partition and one pass: a sick disk fails for all of them."""


class ShareStatePruning:
    """Periodic work of the share coordinator. Used from the event loop only."""

    def __init__(self, states: ShareCoordinator) -> None:
        """Nothing is done before it is called."""
        self._states = states

    async def renew(self) -> None:
        """Writes snapshots of share partitions that have had none since the last call."""
        for partition in self._served():
            end_offset = partition.log.snapshot.log_end_offset
            old = self._states.needed.old(partition.index, end_offset)
            await self._write(partition, old)

    async def prune(self) -> None:
        """Removes the records that no share partition is read from."""
        for partition in self._served():
            try:
                await self._prune(partition)
            except Exception as error:  # noqa: BLE001 - the other partitions go on
                event("share_state_not_pruned", "warning", partition=partition, error=error)

    def _served(self) -> Sequence[Partition]:
        """State partitions that this broker leads, and has read."""
        states = self._states
        return [each for each in states.topic.partitions if states.loading.has_read(each.index)]

    async def _write(self, partition: Partition, keys: Sequence[ShareKey]) -> None:
        at = failures = 0
        while at < len(keys):
            end, ranges = at, 0
            while end < len(keys) and end - at < AT_ONCE and ranges < AT_ONCE_RANGES:
                ranges += self._states.ranges_of(keys[end])
                end += 1
            for key, written in [(key, self._snapshot(key)) for key in keys[at:end]]:
                try:
                    await wait_for(written)
                except Exception as error:  # noqa: BLE001 - the other share partitions go on
                    failures += 1
                    if failures <= MOST_NAMED:
                        event(
                            "share_state_not_pruned", "warning",
                            partition=partition, share=key.owner, error=error,
                        )  # fmt: skip
            at = end

    def _snapshot(self, key: ShareKey) -> Deferred[None]:
        try:
            return self._states.snapshot(key)
        except Exception as error:  # noqa: BLE001 - as one that could not be written
            return refused(error)

    async def _prune(self, partition: Partition) -> None:
        log = partition.log
        end_offset = log.snapshot.log_end_offset
        first = self._states.needed.first(partition.index, end_offset)
        if first is None or first <= log.snapshot.log_start_offset:
            return
        forced = partition.writer.forced_up_to(end_offset)
        if forced is not None:  # whatever `horolog.durability` says: it is read instead
            await wait_for(forced)
        await wait_for(partition.writer.delete_records(min(first, log.snapshot.high_watermark)))
