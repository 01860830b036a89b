"""One partition as the broker serves it, its loop, lanes and fsync threads under a `Scheduler`.

Everything is real but the clock, the disk, the event loop and the threads' turns. `play` runs a
made-up burst of requests; what must be true is looked at whenever another thread goes on, by
readers in between, and at the end, after a power cut too.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from uuid import UUID

from broker.partitions import sync_thread
from broker.partitions.fetch_waiters import FetchWaiters
from broker.partitions.group_commit import GroupCommit
from broker.partitions.partition import Partition
from broker.partitions.partition_services import NOBODY, PartitionServices
from broker.partitions.refused_writes import RefusedWrites
from broker.partitions.waiting_append import only_on_lane
from broker.runtime.deferred import Deferred
from broker.runtime.lanes import DiskLanes
from broker.runtime.memory_account import MemoryAccount
from broker.runtime.probes import BrokerProbes
from broker.runtime.unpacking import Unpacking
from config.topic import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.records.builder import build_batch
from protocol.records.markers import ABORT, Marker, build_marker
from storage import locks
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.log.log import Log
from storage.segment.log_snapshot import AppendResult
from storage.validation.internal_batch import own_batch
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.logs import NO_BOUNDS, make_durable
from tests.support.threads.interleaving import Scheduler
from tests.support.threads.scheduled_loop import ScheduledLoop

LOG_DIR, TOPIC = "/data", "t"
PARTITION_DIR = f"{LOG_DIR}/{TOPIC}-0"
NOW = 1_700_000_000_000
TOKEN = re.compile(rb"<\d+>")
WATCHED = (
    *(
        f"/storage/{name}.py"
        for name in (
            "directory/log_checkpoints", "directory/log_manager", "files/partition_files",
            "index/sparse_index", "index/txn_index", "log/appender", "log/durability", "log/log",
            "producers/producer_state", "search/log_search", "segment/index_rebuild",
            "segment/segment", "segment/trusted_indexes", "segment/writer", "zones/zone_map",
        )
    ),
    *(
        f"/broker/{name}.py"
        for name in (
            "partitions/group_commit", "partitions/sync_thread", "partitions/writer",
            "partitions/writer_gate", "runtime/lanes",
        )
    ),
)  # fmt: skip
"""Source files in which threads change places."""
SEGMENT_BYTES = (250, 600, 600, 3000)
SETTINGS: dict[str, Any] = {
    **NO_BOUNDS,
    "index_interval_bytes": 100,
    "horolog_zone_bytes": 200,
    "file_delete_delay_ms": 0,
}


class InterleavedWorld:
    """The partition, and the ledger of what was promised."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.clock = SimClock(NOW)
        self.fs = SimFileSystem(clock=self.clock)
        self.config = TopicConfig(**SETTINGS, segment_bytes=self.dice.choice(SEGMENT_BYTES))
        self.promised: set[bytes] = set()
        """Values whose answer waits for the disk."""
        self.acknowledged: dict[int, bytes] = {}
        """First offset and value of what was answered as durable."""
        self.aborted: set[tuple[int, int, int]] = set()
        """Producer, first offset, marker: of transactions that are known to be aborted."""
        self.seen: dict[int, bytes] = {}
        """Batches that readers got, by first offset."""
        self.times: dict[int, int] = {}
        """Offset of the record of a time."""
        self.errors: list[BaseException] = []
        self.cuts: list[tuple[SimFileSystem, dict[int, bytes]]] = []
        self.may_fail = False
        self.counter = 0
        self.open: dict[int, int] = {}
        """First offset of each producer's transaction."""
        self.in_flight: Counter[int] = Counter()
        self.ending: set[int] = set()
        self._sequences: dict[int, int] = {}
        self.waiting: set[Deferred[Any]] = set()
        self.manager = self.started(self.fs)
        self._past()

    @property
    def log(self) -> Log:
        return self.manager.logs[TOPIC, 0]

    def started(self, fs: SimFileSystem) -> LogManager:
        manager = LogManager(Env(self.clock, fs, SeededRng(1)), LOG_DIR, lambda topic: self.config)
        manager.open_directory("cluster", 1)
        manager.load()
        return manager

    # --- what was before ---

    def _past(self) -> None:
        """Records and aborted transactions, then a clean stop, some of it with spoilt indexes."""
        log = self.manager.create_log(TOPIC, 0, UUID(int=7), self.config)
        if self.dice.random() < 0.25:
            return
        for _ in range(self.dice.randint(1, 9)):
            data, time = self._batch({})
            self._known(log.append(data, acks_all=True, leader_epoch=0), data, time)
        for producer in range(50, 50 + self.dice.randint(0, 2)):
            data, time = self._batch(
                {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}, is_open=True
            )
            first = self._known(log.append(data, acks_all=True, leader_epoch=0), data, time)
            marker = own_batch(build_marker(Marker(ABORT, 1), producer, 0, NOW), NOW)
            end = log.append_own(marker, acks_all=True, leader_epoch=0)
            self.aborted.add((producer, first, end.base_offset))
        make_durable(log)
        assert self.manager.close()
        if self.dice.random() < 0.5:
            self._spoil_indexes()
        self.manager = self.started(self.fs)

    def _spoil_indexes(self) -> None:
        for entry in self.fs.list_dir(PARTITION_DIR):
            if entry.name.endswith((".index", ".timeindex")) and self.dice.random() < 0.7:
                self.fs.open(f"{PARTITION_DIR}/{entry.name}").write_at(0, b"\0" * 24)

    def _known(self, result: AppendResult, data: memoryview, time: int) -> int:
        self.acknowledged[result.base_offset] = bytes(TOKEN.findall(data)[0])
        self.times[time] = result.base_offset
        return result.base_offset

    # --- what the broker does ---

    @contextmanager
    def served(self, scheduler: Scheduler) -> Iterator[ScheduledLoop]:
        """The partition in service, every lock and thread in the scheduler's hands."""
        loop = ScheduledLoop(scheduler, self.clock.monotonic)
        with ExitStack() as stack:
            stack.enter_context(patch.object(sync_thread, "threading", scheduler.threading()))
            stack.enter_context(patch.object(sync_thread, "SimpleQueue", scheduler.queue))
            stack.enter_context(patch.object(locks, "ONCE", scheduler.lock()))
            self.log._gate = scheduler.lock()  # type: ignore[assignment]
            self.manager._indexes.gate = scheduler.lock()  # type: ignore[assignment]
            self.manager._checkpoints._turn = scheduler.lock()  # type: ignore[assignment]
            self._wire(loop)
            self.fs.on_call = lambda call: scheduler.point()
            yield loop
            self.fs.on_call = None

    def _wire(self, loop: Any) -> None:
        self.lanes = DiskLanes(loop)
        self.commit = GroupCommit(
            loop,
            self.clock.monotonic,
            SimpleNamespace(synced=lambda seconds, error: None),
            interval_seconds=0.1,
            interval_bytes=1 << 20,
            flush_bytes=1 << 30,
            on_durable=lambda log: self.partition.writer.became_durable(),
            on_failed=lambda log, error: self.partition.writer.went_offline(),
        )
        waiters = FetchWaiters(loop)
        lane = self.lanes.lane(LOG_DIR)
        serving = PartitionServices(
            lane,
            self.commit,
            waiters,
            None,  # type: ignore[arg-type]
            Unpacking(lane, self.clock.monotonic),
            MemoryAccount(1 << 32),
            RefusedWrites(BrokerProbes(self.clock.monotonic)),
        )
        self.partition = Partition(self.log, serving)

    def is_busy(self) -> bool:
        return bool(self.commit._syncing or self.commit._due)

    # --- requests ---

    def _batch(self, options: dict[str, Any], *, is_open: bool = False) -> tuple[memoryview, int]:
        self.counter += 1
        value = b"<%d>" % self.counter + bytes(self.dice.randrange(60))
        time = NOW + self.counter
        data = build_batch([(time, b"k", value)], transactional=is_open, **options)
        return memoryview(data), time

    def produce(self, *, acks: int, producer: int = -1, on_lane: bool = False) -> None:
        """One record; in a transaction when there is a producer."""
        options = {}
        if producer >= 0:
            if producer in self.ending:
                return
            self.in_flight[producer] += 1
            sequence = self._sequences.get(producer, 0)
            self._sequences[producer] = sequence + 1
            options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
        data, time = self._batch(options, is_open=producer >= 0)
        token = bytes(TOKEN.findall(data)[0])
        if acks == -1:
            self.promised.add(token)

        def answered(result: AppendResult) -> None:
            self.times[time] = result.base_offset
            if acks == -1:
                self.acknowledged[result.base_offset] = token
            if producer >= 0:
                self.in_flight[producer] -= 1
                self.open.setdefault(producer, result.base_offset)

        partition = self.partition
        self._asked(
            lambda: (
                partition.writer._append_in_turn(data, acks, NOBODY, only_on_lane)
                if on_lane
                else partition.writer.append(data, acks)
            ),
            answered,
        )

    def end(self, producer: int, kind: int) -> None:
        """The marker of its transaction; once what it sent is answered."""
        if producer not in self.open or self.in_flight[producer]:
            return
        self.ending.add(producer)
        first = self.open.pop(producer)
        marker = own_batch(build_marker(Marker(kind, 1), producer, 0, NOW), NOW)

        def answered(result: AppendResult) -> None:
            self.ending.discard(producer)
            if kind == ABORT:
                self.aborted.add((producer, first, result.base_offset))

        self._asked(lambda: self.partition.writer.append_own(marker, -1), answered)

    def in_turn(self, work: Callable[[], Any]) -> None:
        """A change of another kind, on a lane."""
        self._asked(lambda: self.partition.writer.in_turn(work), lambda result: None)

    def on_lane(self, work: Callable[[], Any]) -> None:
        """A look, or a checkpoint, beside the changes."""
        self.lanes.run(LOG_DIR, work).add_done_callback(self._over)

    def _over(self, future: Any) -> None:
        error = future.exception()
        if error is not None:
            self.errors.append(error)

    def _asked(self, ask: Callable[[], Any], answered: Callable[[Any], None]) -> None:
        try:
            outcome = ask()
        except KafkaError as error:
            self._refused(error)
            return
        if not isinstance(outcome, Deferred):
            answered(outcome)
            return
        self.waiting.add(outcome)

        def listener(value: Any, error: BaseException | None) -> None:
            self.waiting.discard(outcome)
            if error is None:
                answered(value)
            else:
                self._refused(error)

        outcome.listen(listener)

    def _refused(self, error: BaseException) -> None:
        is_expected = isinstance(error, KafkaError) and (
            error.code == ErrorCode.OFFSET_OUT_OF_RANGE
            or (self.may_fail and error.code == ErrorCode.KAFKA_STORAGE_ERROR)
        )
        if not is_expected:
            self.errors.append(error)
