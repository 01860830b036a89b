"""Standing of the tier as a whole: whether this broker may copy there, and the cluster's pictures.

Before anything is copied the store has to keep two writers apart, and the place has to be this
cluster's. The first that is against it is final: nothing more is copied in this process.
"""

from typing import NamedTuple

from broker.access.store.refusals import TierRefused
from broker.runtime.event_log import event
from broker.runtime.lanes import DiskLane, Turn
from broker.tier.create_only import prove_create_only
from broker.tier.tier import Tier
from broker.topics.stored_settings import without_secrets
from config.errors import ConfigError
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.errors import StorageError
from storage.log.log import Log
from storage.tier.card import ForeignTier, claim
from storage.tier.cluster_picture import Content, PictureWriter, read_files
from storage.tier.names import probe_name
from storage.tier.port import StoreError
from storage.tier.single_writer import WriterReplaced
from storage.tier.tiered_log import TieredLog

FINAL = (TierRefused, ForeignTier, WriterReplaced)


class TierOwner(NamedTuple):
    """The broker whose tier it is."""

    tier: Tier
    logs: LogManager
    env: Env
    disk: DiskLane
    node_id: int


class TierStanding:
    """Used from the event loop."""

    def __init__(self, place: TierOwner) -> None:
        """Nothing is asked."""
        self._place = place
        self._pictures = PictureWriter(place.tier.store, place.env.clock)
        self._proving = Turn()
        """Two proofs at once would be one too many: when the first one ends, sweeps begin, and may
        remove what the second one has put."""
        self._is_proven = False
        self._failure = ""
        self.refused = ""
        """Reason why nothing is copied at all; empty without one."""

    def part_of(self, log: Log) -> TieredLog | None:
        """The log's part in the store, for compaction; None when it has none.

        StoreError while the store was not tried out, or is refused, and the log needs it.
        """
        found = self._place.tier.remote.logs.get((log.topic, log.partition))
        if found is None or found.log is not log:
            return None
        if log.snapshot.first_local and (self.refused or not self._is_proven):
            raise StoreError(found.keys.prefix, "compact", self.refused or self._failure)
        return found

    @property
    def was_asked(self) -> bool:
        """True once the store was asked since the start, whatever its answer was."""
        return self._is_proven or bool(self.refused or self._failure)

    async def may_copy(self) -> bool:
        """True when the store was asked, and nothing is against it."""
        if not (self.refused or self._is_proven):
            try:
                await self._proving.run(self._place.tier.copies, self._prove)
            except (TierRefused, StorageError) as error:
                self._failure = str(error)
                self._failed(error)
        return self._is_proven and not self.refused

    async def picture(self) -> None:
        """Has the store know topics, settings, quotas and entries of access control."""
        try:
            content = await self._place.disk.run(self._content)
            is_new = await self._place.tier.copies.run(self._pictures.write_if_changed, content)
        except (ConfigError, StorageError) as error:
            self._failed(error)
            return
        self._place.tier.tally.reached()
        if is_new:
            event("cluster_pictured", files=len(content.files))

    def _prove(self) -> None:
        """On a thread, one at a time; who waited for another's proof has that."""
        if self._is_proven:
            return
        place = self._place
        prove_create_only(place.tier.store, probe_name(place.env.rng.uint64()))
        claim(place.tier.store, place.logs.cluster_id)
        self._is_proven = True

    def _content(self) -> Content:
        logs = self._place.logs
        files = read_files(self._place.env.fs, logs.log_dir, without_secrets)
        return Content(logs.cluster_id, self._place.node_id, files)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, FINAL):
            self.refused = str(error)
            event("tier_refused", "error", error=error)
        elif self._place.tier.tally.unreachable(error):
            event("tier_unreachable", "warning", error=error)
