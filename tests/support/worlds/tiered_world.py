"""A broker as handlers see it, with partitions that go on in a store in memory."""

from uuid import UUID

from storage.log.lifecycle import learn_times
from storage.retention.plan import RetentionLimits
from storage.tier.names import PartitionKeys
from storage.tier.object_cache import ObjectCache
from storage.tier.remote_object import Reach
from storage.tier.tiered_log import TieredLog
from tests.support.disk.simdisk import SimFileSystem
from tests.support.records.logs import make_durable
from tests.support.tier.memory_store import MemoryStore
from tests.support.worlds.handler_world import InlineLanes, World

CACHE_BYTES = 64 * 1024 * 1024
ALL = RetentionLimits(retention_ms=0, retention_bytes=-1)


class InlineReads(InlineLanes):
    """The threads for what the store has; while `held`, a store that is silent."""

    wait_seconds = search_seconds = 0.05


class TieredWorld(World):
    """A broker with a tier: what is closed leaves the directory when a test says so."""

    away_kind = InlineReads
    store_kind = MemoryStore

    def __init__(self, fs: SimFileSystem | None = None, seed: int = 0, **settings: str) -> None:
        super().__init__(fs, seed, **settings)
        self.store = self.store_kind()
        cache = ObjectCache(self.fs, "/cache", CACHE_BYTES)
        cache.open()
        self.reach = Reach(self.store, cache)
        self.tiered: dict[str, TieredLog] = {}

    def roll(self, topic: str = "t", index: int = 0) -> None:
        """Begins a new segment."""
        assert self.partition(topic, index).log.roll()

    def send_away(self, topic: str = "t", index: int = 0) -> None:
        """All closed segments go to the store, and leave the directory."""
        log = self.partition(topic, index).log
        keys = PartitionKeys(topic, UUID(int=7), index)
        tiered = self.tiered.setdefault(
            f"{topic}-{index}", TieredLog(log, keys, self.reach, self.env, None)
        )
        make_durable(log)
        while tiered.copy_next(lambda size: None) is not None:
            tiered.show()
        assert learn_times(log, 1000)
        while tiered.leave(tiered.leaving.droppable(ALL, self.clock.now_ms() + 1)):
            pass
        assert log.snapshot.first_local, "nothing has left"

    def lose_objects(self) -> dict[str, bytes]:
        """The store has no records any more; returns what it had."""
        gone = {key: data for key, data in self.store.objects.items() if key.endswith(".log")}
        for key in gone:
            del self.store.objects[key]
        return gone
