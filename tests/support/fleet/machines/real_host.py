"""A node's logs in a simulation as real ones, on a simulated disk that may lose its tails."""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from broker.fleet.catalog.rows import PartitionKey
from broker.fleet.host import ShardHost, WriteCommits
from broker.fleet.local_logs import LocalLog, LocalLogs
from config.topic import TopicConfig
from protocol.records.builder import build_batch
from protocol.records.record import Record, read_records
from protocol.records.scan import scan_batches
from storage.cleaner.cleanable_logs import is_compacted
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.log.log import Log
from storage.log.settled_read import read_settled
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng
from tests.support.fleet.machines.sim_host import ServedLog, SimBatch, Value, decoded
from tests.support.fleet.machines.sim_tier import SimTier, Surroundings, remote_logs
from tests.support.records.cleaning import COMPACT
from tests.support.worlds.handler_world import InlineLanes

CONFIG = TopicConfig(
    message_timestamp_after_max_ms=2**63 - 1,
    segment_bytes=700,
    index_interval_bytes=150,
    horolog_zone_bytes=200,
    horolog_durability="fsync",
    file_delete_delay_ms=0,
)
TIERED = replace(CONFIG, remote_storage_enable=True, local_retention_ms=3000)
COMPACTED = replace(CONFIG, cleanup_policy=COMPACT, delete_retention_ms=500)
SYNC_SHARE = 0.4


class MachineClock:
    """The clocks of a machine, of which one may be wrong."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class RealDisk:
    """A data directory that a node keeps over its restarts."""

    def __init__(
        self,
        node_id: int,
        now_ms: Callable[[], int],
        around: Surroundings | None = None,
        *,
        is_compacted: bool = False,
    ) -> None:
        """`around`: of a node that puts segments in a store."""
        self._is_compacted = is_compacted
        self._node_id = node_id
        self._clock = MachineClock(now_ms)
        self._around = around
        self._fs = SimFileSystem(clock=self._clock)

    def lose_tails(self, dice: random.Random) -> None:
        """A power cut: what is not synced may go."""
        self._fs = self._fs.after_crash(dice.getrandbits(32))

    def lose_all(self) -> None:
        self._fs = SimFileSystem(clock=self._clock)

    def host(self, dice: random.Random) -> "RealHost":
        """A process begins, after the one before was killed."""
        self._fs = self._fs.after_kill()
        if self._around is not None:
            return self._tiered(self._around, dice)
        logs = LogManager(Env(self._clock, self._fs, SeededRng(1)), "/data", lambda _: CONFIG)
        self._load(logs)
        return RealHost(logs, dice)

    def _load(self, logs: LogManager) -> None:
        logs.open_directory("cluster", self._node_id)
        logs.load()

    def _tiered(self, around: Surroundings, dice: random.Random) -> "RealHost":
        env = Env(self._clock, self._fs, SeededRng(dice.getrandbits(32)))
        config = COMPACTED if self._is_compacted else dice.choice((CONFIG, TIERED))
        remote = remote_logs(env, around.store)
        logs = LogManager(env, "/data", lambda _: config, remote)
        self._load(logs)
        return RealHost(logs, dice, partial(SimTier, logs, remote, env, around), config)


class RealServedLog:
    """A log with clients: each sends what it has until it is acknowledged, idempotently."""

    def __init__(self, log: LocalLog, commits: WriteCommits, dice: random.Random) -> None:
        self.owned = log
        self.commits = commits
        self.takes_writes = self.answers = True
        self._dice = dice

    def append(self, values: Sequence[Value], sequence: int, now_ms: int) -> int:
        """The offset behind a batch; that of its first arrival when it is there already."""
        log = self.owned.log
        batch = build_batch(
            [(now_ms, value.key if self._is_compacted else None, value.encoded())
             for value in values],
            producer_id=values[0].producer, producer_epoch=0, base_sequence=sequence,
        )  # fmt: skip
        epoch = self.owned.shard.epoch
        result = log.append(memoryview(batch), acks_all=True, leader_epoch=epoch)
        if self._dice.random() < SYNC_SHARE:
            log.mark_durable(log.sync())  # of this disk: readers see no more for it
        return result.last_offset + 1

    def delete(self, dice: random.Random) -> int:
        """The new start: a committed offset, within a batch perhaps; records of before it go."""
        snapshot = self.owned.log.snapshot
        start = dice.randint(snapshot.log_start_offset, snapshot.high_watermark)
        self.owned.log.delete_records(start)
        return start

    def committed(self) -> list[SimBatch]:
        """As readers see it; when each came is the rows' affair."""
        return list(self.by_offset().values())

    def by_offset(self) -> Mapping[int, SimBatch]:
        log = self.owned.log
        begin, end = log.snapshot.log_start_offset, log.snapshot.high_watermark
        assert end == self.owned.durable_offset
        found = {
            record.offset: SimBatch(epoch, 0, value_of(record))
            for record, epoch in records_between(log, begin, end)
        }
        assert self._is_compacted or list(found) == list(range(begin, end)), "there is a gap"
        return found

    @property
    def _is_compacted(self) -> bool:
        return is_compacted(self.owned.log.config)


class RealHost:
    """Clients' side of the logs of a node."""

    def __init__(
        self,
        logs: LogManager,
        dice: random.Random,
        made_tier: Callable[[Callable[[Log], LocalLog | None]], SimTier] | None = None,
        config: TopicConfig = CONFIG,
    ) -> None:
        self.served: dict[PartitionKey, ServedLog] = {}
        self.tier = None if made_tier is None else made_tier(self._owned)
        part = None if self.tier is None else self.tier.part
        self.shards: ShardHost = LocalLogs(logs, InlineLanes(), lambda _: config, self, part)  # type: ignore[arg-type]
        self._dice = dice

    def _owned(self, log: Log) -> LocalLog | None:
        owned = (each.owned for each in self.served.values())
        found = (each for each in owned if isinstance(each, LocalLog) and each.log is log)
        return next(found, None)

    def serve(self, log: LocalLog, commits: WriteCommits) -> None:
        self.served[log.partition] = RealServedLog(log, commits, self._dice)

    def committed(self, log: LocalLog) -> None:
        """Nobody waits for it."""

    def end_writes(self, log: LocalLog) -> None:
        found = self.served.get(log.partition)
        if found is not None and found.owned is log:
            found.takes_writes = False

    def end(self, log: LocalLog) -> None:
        found = self.served.get(log.partition)
        if found is not None and found.owned is log:
            found.takes_writes = found.answers = False
            del self.served[log.partition]


def records_between(log: Log, begin: int, end: int) -> Iterator[tuple[Record, int]]:
    """Records with their epochs, as far as compaction has left some."""
    at = begin
    while at < end:
        view = memoryview(read_settled(log, at, 1 << 20, end).read())
        if not view:
            return  # compaction has left nothing behind
        for row in scan_batches(view).batches:
            for record in _records_of(bytes(view[row[0] : row[0] + row[5]])):
                if record.offset >= at:
                    epoch = log.epochs.epoch_at(record.offset)
                    assert epoch is not None
                    yield record, epoch
            at = max(at, row[2] + 1)


@lru_cache(maxsize=20_000)
def _records_of(batch: bytes) -> tuple[Record, ...]:
    """Its records; the judge reads the same batches again and again."""
    return tuple(read_records(memoryview(batch)))


def records_in(batches: memoryview) -> Iterator[Record]:
    """Records of batches that follow one another."""
    for row in scan_batches(batches).batches:
        yield from read_records(batches[row[0] : row[0] + row[5]])


def value_of(record: Record) -> Value:
    """The value that a record was made of."""
    assert record.value is not None
    return decoded(record.value)
