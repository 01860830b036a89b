"""A log that goes on in a store, both simulated, and the steps that a broker takes with it."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

from protocol.records.record import Record, read_records
from protocol.records.scan import scan_batches
from storage.env import Env
from storage.log.lifecycle import learn_times
from storage.log.log import AppendResult, Log
from storage.recovery.loading import LoadHints
from storage.retention.plan import RetentionLimits
from storage.segment.segment import Segment
from storage.tier.manifests import local_state
from storage.tier.manifests.manifest import RemoteSegment
from storage.tier.names import PartitionKeys
from storage.tier.object_cache import ObjectCache
from storage.tier.port import ObjectFacts
from storage.tier.remote_object import Reach
from storage.tier.tiered_log import TieredLog
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.logs import LOG_PATH, append, make_durable, open_log
from tests.support.tier.memory_store import MemoryStore

KEYS = PartitionKeys("t", UUID(int=7), 0)
CACHE_BYTES = 64 * 1024 * 1024
NOW = RetentionLimits(retention_ms=0, retention_bytes=-1)
"""Everything that the store has may leave."""


class CountingStore(MemoryStore):
    """A store in memory; `asked` counts the calls that read, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def get(self, key: str) -> bytes:
        self.asked["get"] += 1
        return super().get(key)

    def get_range(self, key: str, position: int, size: int) -> bytes:
        self.asked["get_range"] += 1
        return super().get_range(key, position, size)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
        self.asked["list"] += 1
        return super().list(prefix, after=after)


class TierWorld:
    """One log and its store."""

    def __init__(self, env: Env | None = None, cache_bytes: int = CACHE_BYTES, **settings: Any):
        self.env = env or sim_env()
        self.store = CountingStore()
        self.settings = {"segment_bytes": 2000, "index_interval_bytes": 256, **settings}
        self.cache_bytes = cache_bytes
        self.open()

    log: Log
    tiered: TieredLog

    cache: ObjectCache | None = None

    def begin_cache(self, directory: str) -> ObjectCache:
        """The one of the process before is gone."""
        if self.cache is not None:
            self.cache.close()
        self.cache = ObjectCache(self.env.fs, directory, self.cache_bytes)
        self.cache.open()
        return self.cache

    def open(self, *, is_clean: bool = True) -> None:
        """A start: the log as the directory has it, and what it knows of the store."""
        reach = Reach(self.store, self.begin_cache("/cache"))
        known = local_state.load(self.env.fs, LOG_PATH)
        hints = LoadHints(is_clean)
        if known is not None:
            hints = known.added_to(hints)
        self.log = open_log(self.env, hints, **self.settings)
        self.tiered = TieredLog(self.log, KEYS, reach, self.env, known)
        self.tiered.show()

    def reopen(self) -> None:
        """A clean stop and a start."""
        self.log.close()
        self.open()

    def write(self, sequence: int, producer: int = 5) -> AppendResult:
        """A batch of one record, the next of its producer where `sequence` is."""
        return append(
            self.log,
            1_700_000_000_000,
            value=b"x" * 500,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
        )

    def write_closed(self, count: int) -> None:
        """So many batches of one producer in closed segments that may be copied."""
        for sequence in range(count):
            self.write(sequence)
        self.log.roll()
        clock = self.env.clock
        assert isinstance(clock, SimClock)
        clock.advance(50)

    def copy_all(self) -> list[RemoteSegment]:
        """Copies what is due."""
        make_durable(self.log)
        rows = []
        while (row := self.tiered.copy_next(lambda size: None)) is not None:
            rows.append(row)
            self.tiered.show()
        return rows

    def drop_all(
        self,
        limits: RetentionLimits = NOW,
        bury: Callable[[Sequence[Segment]], None] = lambda gone: None,
    ) -> int:
        """Local segments that may leave do; how many did. `bury` gets those whose files may go."""
        assert learn_times(self.log, 1000)
        below = self.tiered.leaving.droppable(limits, self.env.clock.now_ms())
        count = 0
        while leaving := self.tiered.leave(below):
            count += len(leaving)
            bury(leaving)
        return count

    def read_from(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Bytes of a fetch, after what it takes from the store was brought."""
        up_to = self.log.snapshot.high_watermark
        for _ in range(5):
            data = self.log.read(offset, max_bytes, up_to=up_to, min_one_batch=True)
            if data.unverified is None:
                return data.read()
            data.unverified.settle()
        raise AssertionError("it is never here")

    def records(self, offset: int | None = None) -> list[Record]:
        """All records from `offset` on, one fetch after the other."""
        snapshot = self.log.snapshot
        at = snapshot.log_start_offset if offset is None else offset
        found: list[Record] = []
        while at < snapshot.high_watermark:
            data = self.read_from(at)
            scan = scan_batches(data)
            assert scan.batches, f"nothing at {at}"
            for row in scan.batches:
                records = read_records(memoryview(data)[row[0] : row[0] + row[5]])
                found += [record for record in records if record.offset >= at]
            at = scan.batches[-1][2] + 1
        return found
