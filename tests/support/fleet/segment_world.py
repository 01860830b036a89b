"""Nodes with logs in segments in the store, one partition as the catalog has it, and an oracle."""

import random
from collections.abc import Iterator
from uuid import UUID

from broker.fleet.catalog.rows import (
    CommitId,
    CommittedSpan,
    Incarnation,
    ManifestName,
    OwnedShard,
    PartitionKey,
    PartitionRow,
)
from broker.fleet.frame import ArrivedBatch, PartitionBatches, make_frame
from broker.fleet.local_logs import LocalLog, LocalLogs, StorePart
from broker.fleet.segment_parts import SegmentParts
from broker.state.reading import batches_of
from config.topic import TopicConfig
from protocol.records.record import Record, read_records
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.log.following import batches_between
from storage.tier.object_cache import ObjectCache
from storage.tier.remote_logs import RemoteLogs
from storage.tier.remote_object import Reach
from storage.tier.tiered_log import TieredLog
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng
from tests.support.fleet.commits import HeldCommits
from tests.support.fleet.machines.real_host import records_between
from tests.support.fleet.transactions_of_log import Transactions, check_committed
from tests.support.tier.memory_store import MemoryStore
from tests.support.worlds.handler_world import InlineLanes

NOW = 1_700_000_000_000
IN_A_ZONE = 3
"""Batches beside one in its zone, at most: a marker has 78 bytes, and a zone 200."""
VALUE_BYTES = 40
"""Values are numbers with spaces before them; those of markers are shorter."""
KEY = PartitionKey(UUID(int=5), 0)
COMMIT = CommitId(Incarnation(1, 1), 1)
MARKER = -1
"""The value that stands for a marker of a transaction."""


class Front:
    """Clients' side, of which there is none."""

    def serve(self, log: LocalLog, commits: object) -> None: ...

    def committed(self, log: LocalLog) -> None: ...

    def end_writes(self, log: LocalLog) -> None: ...

    def end(self, log: LocalLog) -> None: ...


class Rows:
    """One partition as the catalog has it, and all that was ever committed."""

    def __init__(self) -> None:
        self.spans: list[CommittedSpan] = []
        self.bytes: dict[int, list[ArrivedBatch]] = {}
        self.manifest: ManifestName | None = None
        self.copied_end = 0
        """End of the last named manifest: commits of before it are gone."""
        self.log_start = 0
        self.epoch = 0
        self.values: list[tuple[int, int]] = []
        """Epoch and value by offset."""
        self.keys: list[bytes | None] = []
        self.arrivals: dict[int, int] = {}
        self.transactions = Transactions()
        """Of what is committed."""

    def row(self) -> PartitionRow:
        return PartitionRow(KEY, "t", 1, self.log_start, tuple(self.spans), None, self.manifest)

    async def bytes_of(self, committed: CommittedSpan) -> list[ArrivedBatch]:
        return self.bytes[committed.span.base_offset]

    def commit(self, log: LocalLog) -> None:
        """All that the leader has."""
        begin = len(self.values)
        batches = log.batches(begin, log.end_offset, 1 << 20)
        if not batches:
            return
        [span] = make_frame(UUID(int=1), COMMIT, [PartitionBatches(KEY, self.epoch, batches)]).spans
        self.spans.append(CommittedSpan(span, COMMIT, None))
        self.bytes[span.base_offset] = [
            ArrivedBatch(each.arrival_ms, each.data) for each in batches
        ]
        for each in batches:
            for key, value in keys_and_values(each.data):
                self.values.append((self.epoch, value))
                self.keys.append(key)
            self.arrivals[each.base_offset] = each.arrival_ms
        log.mark_durable(log.end_offset)

    def name(self, tiered: TieredLog) -> None:
        """As `name_manifest_v1`."""
        name = ManifestName(self.epoch, tiered.manifest.number)
        if self.manifest is None or name > self.manifest:
            self.manifest = name
            end = tiered.manifest.end_offset
            assert end >= self.copied_end, "commits of what the store no longer has are gone"
            self.copied_end = end
            kept = [each for each in self.spans[:-1] if each.span.end_offset > end]
            self.spans = kept + self.spans[-1:]
        tiered.named(tiered.manifest)

    def trim(self, start: int) -> None:
        self.log_start = max(self.log_start, start)
        self.spans = [each for each in self.spans if each.span.end_offset > start]


class Node:
    """A machine with a disk of its own, and a way to the store that all share."""

    def __init__(
        self, number: int, store: MemoryStore, clock: "Clock", config: TopicConfig
    ) -> None:
        self._store = store
        self._clock = clock
        self._number = number
        self._config = config
        self.fs = SimFileSystem(clock=clock)
        self.log: LocalLog | None = None
        self._cache: ObjectCache | None = None
        self._starts = 0
        self.start()

    def start(self) -> None:
        self._starts += 1
        env = Env(self._clock, self.fs, SeededRng(100 * self._starts + self._number))
        self.fs.make_dir("/cache")
        if self._cache is not None:
            self._cache.close()
        self._cache = ObjectCache(self.fs, "/cache", 1 << 20)
        self._cache.open()
        self.remote = RemoteLogs(Reach(self._store, self._cache), env)
        logs = self.logs = LogManager(env, "/data", lambda _: self._config, self.remote)
        logs.open_directory("cluster", self._number)
        logs.load()
        parts = SegmentParts(logs, self._store, env)
        lane = self.lane = InlineLanes()
        self.host = LocalLogs(
            logs, lane, lambda _: self._config, Front(), StorePart(parts, self.remote, lane)  # type: ignore[arg-type]
        )  # fmt: skip

    def crash(self, dice: random.Random) -> None:
        """A power cut: what is not synced may go."""
        self.fs = self.fs.after_crash(dice.getrandbits(32))
        self.start()

    def lose_disk(self) -> None:
        self.fs = SimFileSystem(clock=self._clock)
        self.start()

    async def lead(self, rows: Rows) -> None:
        rows.epoch += 1
        log = await self.host.load(rows.row(), OwnedShard(1, rows.epoch), rows.bytes_of)
        assert isinstance(log, LocalLog)
        self.host.serve(log, HeldCommits())
        self.log = log

    @property
    def tiered(self) -> TieredLog:
        return self.remote.logs["t", 0]


class Clock:
    """One clock for all, which goes on."""

    def __init__(self) -> None:
        self.now = NOW

    def now_ms(self) -> int:
        self.now += 1
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


def keys_and_values(data: bytes) -> Iterator[tuple[bytes | None, int]]:
    for record in read_records(memoryview(data)):
        value = _number(record)
        key = None if record.key is None or value == MARKER else bytes(record.key)
        yield key, value


def _number(record: Record) -> int:
    value = record.value or b""
    return MARKER if len(value) < VALUE_BYTES else int(value)


def check(rows: Rows, log: LocalLog, *, is_compacted: bool) -> None:
    """The leader has all that is committed, as it was written, and nothing else.

    Of a compacted log the last record of each key at least.
    """
    begin = log.log.snapshot.log_start_offset
    assert begin == rows.log_start
    assert log.end_offset == len(rows.values)
    wanted = _last_of_keys(rows)
    if is_compacted:  # first, while nothing was brought here
        assert not log.log.snapshot.first_local, "some of it is in the store alone"
        read = {header.base_offset for _, header in batches_of(log.log, 1 << 20)}
        assert wanted <= read, "a coordinator would not find the last record of a key"
    found = dict(records_of(log, begin, len(rows.values)))
    for offset, (value, epoch) in found.items():
        assert (epoch, value) == rows.values[offset], offset
    check_committed(log.log, rows.transactions, wanted if is_compacted else None)
    if not is_compacted:
        assert sorted(found) == list(range(begin, len(rows.values)))
        check_arrivals(rows, log)
        return
    assert wanted <= found.keys(), "the last record of a key is gone"


def _last_of_keys(rows: Rows) -> frozenset[int]:
    """Offsets of what compaction keeps: of each key the last that counts, and what may count."""
    transactions = rows.transactions
    undecided = transactions.undecided
    left_out = transactions.uncounted | undecided
    last = {key: offset for offset, key in enumerate(rows.keys) if offset not in left_out}
    return undecided.union(last.values())


def records_of(log: LocalLog, begin: int, end: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Value and epoch by offset."""
    for record, epoch in records_between(log.log, begin, end):
        yield record.offset, (_number(record), epoch)


def check_arrivals(rows: Rows, log: LocalLog) -> None:
    """Each batch came when its first leader had it, or where it has a zone with others, when one of
    these did; the first one may begin before the start.
    """
    start, bases = log.log.snapshot.log_start_offset, sorted(rows.arrivals)
    first = next((at for at, base in enumerate(bases) if base >= start), len(bases))
    came = [rows.arrivals[each] for each in bases]
    while first < len(bases):
        for each in batches_between(log.log, bases[first], len(rows.values), 1 << 20):
            assert each.base_offset == bases[first]
            near = came[max(0, first - IN_A_ZONE) : first + 1 + IN_A_ZONE]
            assert near[0] <= each.arrival_ms <= near[-1], each.base_offset
            first += 1
