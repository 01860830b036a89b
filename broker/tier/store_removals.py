"""Removal of objects of a tier that no manifest names any longer."""

import asyncio
from collections.abc import Sequence

from broker.runtime.event_log import event
from broker.tier.tier import Tier
from storage.errors import StorageError
from storage.tier.manifests.manifest import RemoteSegment
from storage.tier.tiered_log import TieredLog


class StoreRemovals:
    """Used from the event loop."""

    def __init__(self, tier: Tier) -> None:
        """Nothing is asked."""
        self._tier = tier

    def put(self, tiered: TieredLog, rows: Sequence[RemoteSegment]) -> None:
        """Has the objects of segments go after the delay: no manifest names them any longer."""
        keys = [key for row in rows for key in tiered.objects_of(row)]
        self._tier.trash.put(keys, tiered.log.config.file_delete_delay_ms)
        if rows:
            tiered.forget(rows)
            event(
                "remote_segments_removed",
                log=tiered.log,
                segments=len(rows),
                log_start_offset=tiered.log.snapshot.log_start_offset,
            )

    async def run(self, stopping: asyncio.Event) -> None:
        """Has the store remove what is due, until the broker is `stopping`."""
        trash = self._tier.trash
        for tiered in self._tier.remote.take_deleted():
            self._bury(tiered)
        while not stopping.is_set() and (leaving := trash.take()):
            try:
                await self._tier.copies.run(trash.remove, leaving)
            except StorageError as error:
                event(
                    "tier_deletion_failed",
                    "warning",
                    objects=len(leaving.keys),
                    retry_seconds=trash.put_back(leaving),
                    error=error,
                )
                return

    def _bury(self, tiered: TieredLog) -> None:
        """The log was deleted: its segments first, and then the manifests that name them."""
        delay_ms = tiered.log.config.file_delete_delay_ms
        self._tier.trash.put(tiered.segment_names(), delay_ms)
        self._tier.trash.put(tiered.manifest_names(), delay_ms)
