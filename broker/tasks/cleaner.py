"""The cleaner of compacted topics: some logs at a time, off the loop and in bounded slices.

A round begins every `log.cleaner.backoff.ms` and ends when no log is left to clean. A log that
cannot be cleaned (damage, a full disk, records too large to unpack) is backed off with its reason
and tried again later, each time after twice as long; at once when its settings change. While the
broker's clock is unverified nothing is cleaned, since tombstones expire by time.

Logs of which a part is in the tier's store alone have one more worker, and its thread: a store
that is slow, or away, keeps no other log waiting.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from broker.runtime.event_log import event
from broker.runtime.gathering import wait_for
from broker.runtime.lanes import patient_threads
from broker.tasks.backoff import SetAside, set_aside
from broker.tasks.cleaner_tally import CleanerTally, EndedRun, LastRun
from broker.tasks.throttle import Throttle
from config.broker import BrokerConfig
from protocol.errors import KafkaError
from storage.cleaner.cleanable_logs import (
    CleanerOffsets,
    is_compacted,
    kept_verdict,
    learn_ages,
    verdict_on,
)
from storage.cleaner.cleaner import Cleaning, CleaningMemory, Slice
from storage.errors import StorageError
from storage.retention.cleanability import Verdict, first_of

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from broker.topics.topic_catalog import TopicCatalog
    from config.store import ConfigStore
    from storage.directory.log_manager import LogManager
    from storage.env import Env
    from storage.log.compaction_state import RemotePart
    from storage.log.log import Log

T = TypeVar("T")

SLICE_SECONDS = 0.05
SYNC_LOOKS, SYNC_LOOK_SECONDS = 50, 0.02
SEGMENTS_LOOKED_UP = 16  # of each log, in one look
LEAST_MAP_BYTES, LEAST_CHUNK_BYTES = 1 << 20, 1024


class RemoteParts(Protocol):
    """The tier's store, as the cleaner needs it."""

    @property
    def was_asked(self) -> bool:
        """False at the start: nothing is known of it yet, and nothing to report."""

    def part_of(self, log: "Log") -> "RemotePart | None":
        """The log's part in it; None when it has none. StorageError while it cannot be used."""


class Progress(NamedTuple):
    """Progress of one slice of work. `is_over`: the run has nothing left to do."""

    bytes_read: int
    bytes_written: int
    in_turn: Callable[[], None] | None
    is_over: bool


class Cleaner:
    """The rounds, and what they found. Used from the event loop; the scrape may read."""

    def __init__(
        self,
        topics: "TopicCatalog",
        logs: "LogManager",
        env: "Env",
        config: "ConfigStore",
        loop: asyncio.AbstractEventLoop,
        *,
        has_to_wait: Callable[[], bool],
        memory_bytes: Callable[[], int],
        sync: "Callable[[Log], None]",
        remote: "RemoteParts | None" = None,
    ) -> None:
        """Nothing was looked at; no thread runs.

        `has_to_wait` tells a hold of the clock, or of a broker that came out of a loop of crashes.
        All cleaning together takes `memory_bytes` at most. `sync` has a log synced soon.
        `remote`: where there is a tier.
        """
        self._topics = topics
        self._logs = logs
        self._env = env
        self._clock = env.clock
        self._config = config
        self._loop = loop
        self._has_to_wait = has_to_wait
        self._most_memory_bytes = memory_bytes
        self._sync = sync
        self._remote = remote
        self._threads: ThreadPoolExecutor | None = None
        self._thread_count = 0
        self._stopping = asyncio.Event()
        self._throttle = Throttle(
            loop.time, lambda: self._settings.log_cleaner_io_max_bytes_per_second
        )
        self._busy: set[Log] = set()
        self._running: set[Cleaning] = set()
        self._choosing = asyncio.Lock()
        self.verdicts: dict[Log, Verdict] = {}
        """As of the last look at the compacted logs; replaced, never changed."""
        self.set_aside: dict[Log, SetAside] = {}
        """Likewise."""
        self.last_runs: dict[Log, EndedRun] = {}
        """The last run over each log that is open and ended well; likewise."""
        self.tally: CleanerTally = CleanerTally()

    @property
    def memory_bytes(self) -> int:
        """Memory of the runs under way, in bytes; from any thread."""
        return sum(each.memory_bytes for each in tuple(self._running))

    async def run(self) -> None:
        """One round; returns when nothing is left to clean, or on `stop`.

        With `log.cleaner.enable=false` it looks, so that everybody sees what waits.
        """
        count = self._workers
        if self._threads is None or count != self._thread_count:
            self._end_threads()
            self._threads, self._thread_count = patient_threads(count, "cleaner"), count
            self.tally.has_workers(count)
        await self._finish_swaps()
        if not self._settings.log_cleaner_enable:
            if not self._stopping.is_set():
                await self._look()
            return
        work = (self._work(number) for number in range(count))
        errors = [each for each in await asyncio.gather(*work, return_exceptions=True) if each]
        if self._stopping.is_set():
            self._end_threads()
        self.tally.dead_threads = len(errors)
        if errors:
            raise errors[0]

    def stop(self) -> None:
        """Stops the run at the end of its slice; the round ends the threads."""
        self._stopping.set()
        if not self._busy and not self._choosing.locked():
            self._end_threads()

    def settings_changed(self, topic: str | None) -> None:
        """Retries logs that could not be cleaned."""
        self.set_aside = {
            log: found
            for log, found in self.set_aside.items()
            if topic is not None and log.topic != topic
        }

    async def _finish_swaps(self) -> None:
        """Names that a run could not change, whether or not the log is to be cleaned again: until
        then no segment leaves it.
        """
        for partition in self._topics.image.led_here():
            compaction = partition.log.compaction
            if compaction.unfinished is None or self._rests(partition.log):
                continue
            if self._stopping.is_set():
                return
            try:
                old = await self._on_thread(compaction.finish_swap)
            except Exception as error:  # noqa: BLE001 - a bug must not end the other work
                self._put_aside(partition, error)
            else:
                self._logs.bury(partition.log, old)

    # --- one worker ---

    async def _work(self, worker: int) -> None:
        while not self._stopping.is_set() and not self._has_to_wait():
            chosen = await self._choose(worker)
            if chosen is None:
                return
            partition, verdict = chosen
            try:
                if self._has_to_wait():  # since the log was chosen
                    return
                await self._clean(worker, partition, verdict)
            except (StorageError, KafkaError) as error:
                self._put_aside(partition, error)
            except Exception as error:  # noqa: BLE001 - a bug must not end the other work
                self._put_aside(partition, error)
            finally:
                self._busy.discard(partition.log)

    async def _look(self) -> "tuple[list[Partition], list[Verdict | None]]":
        """The present cleanability of each log."""
        partitions = self._compacted()
        self.set_aside, self.last_runs = _of_open(self.set_aside), _of_open(self.last_runs)
        await self._sync_closed(partitions)
        now_ms = self._clock.now_ms()
        verdicts, faults = await self._on_thread(
            judge_all, partitions, self._logs.cleaner_offsets, now_ms
        )
        for partition, error in faults:
            self._put_aside(partition, error)
        self.verdicts = {
            partition.log: verdict
            for partition, verdict in zip(partitions, verdicts, strict=True)
            if verdict is not None
        }
        return partitions, verdicts

    async def _choose(self, worker: int) -> "tuple[Partition, Verdict] | None":
        """The log that goes first; it is this worker's from now on."""
        async with self._choosing:
            partitions, verdicts = await self._look()
            free = (
                (number, verdict)
                for number, verdict in enumerate(verdicts)
                if verdict is not None and self._is_free(partitions[number].log, worker)
            )
            number = first_of(free)
            if number is None:
                return None
            partition, verdict = partitions[number], verdicts[number]
            assert verdict is not None
            seen = self.verdicts.items()
            self.tally.chose(worker, [each for each in seen if self._is_for(each[0], worker)])
            self._busy.add(partition.log)
            return partition, verdict

    async def _clean(self, worker: int, partition: "Partition", verdict: Verdict) -> None:
        """One run, slice by slice."""
        manager = self._logs
        remote = None if self._remote is None else self._remote.part_of(partition.log)
        cleaning = Cleaning(partition.log, verdict, self._memory(), self._env, remote)
        slices = cleaning.slices()
        self._running.add(cleaning)
        started = self._loop.time()
        try:
            while self._goes_on(partition.log):
                step = await self._on_thread(
                    _advance, slices, self._loop.time, self._throttle.window_bytes
                )
                self.tally.moved(step.bytes_read, step.bytes_written)
                if step.is_over:
                    break
                if step.in_turn is not None:
                    if not self._goes_on(partition.log):
                        return  # at once: without its turn the run must not be advanced
                    await wait_for(partition.writer.in_turn(step.in_turn))
                await self._rest(self._throttle.rest(step.bytes_read + step.bytes_written))
            else:
                return
        finally:
            self._running.discard(cleaning)
            await self._on_thread(slices.close)
            manager.bury(partition.log, cleaning.replaced)
        await self._on_thread(
            manager.cleaned, partition.log, cleaning.first_dirty, cleaning.stats.next_horizon_ms
        )
        self.set_aside = {
            log: found for log, found in self.set_aside.items() if log is not partition.log
        }
        ended = EndedRun(cleaning.stats, cleaning.map_utilisation)
        self.last_runs = _of_open({**self.last_runs, partition.log: ended})
        seconds = self._loop.time() - started
        run = LastRun(self._clock.now_ms(), seconds, cleaning.map_utilisation)
        self.tally.ended(worker, run, cleaning.stats)
        self._report(partition, verdict, cleaning, seconds)

    def _goes_on(self, log: "Log") -> bool:
        """False when a run has to be given up: on `stop`, and once the topic is not compacted."""
        return not self._stopping.is_set() and is_compacted(log.config)

    async def _rest(self, seconds: float) -> None:
        if seconds:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    # --- what a worker needs ---

    @property
    def _settings(self) -> BrokerConfig:
        return self._config.broker_config

    def _compacted(self) -> "list[Partition]":
        return [
            partition
            for partition in self._topics.image.led_here()
            if is_compacted(partition.log.config) and partition.log.takes_changes
        ]

    @property
    def _workers(self) -> int:
        """Those of all logs, and behind them the one of logs that are in the store in part."""
        return self._settings.log_cleaner_threads + (self._remote is not None)

    def _is_free(self, log: "Log", worker: int) -> bool:
        return (
            log not in self._busy
            and self._is_for(log, worker)
            and not log.compaction.is_stuck
            and not self._rests(log)
        )

    def _rests(self, log: "Log") -> bool:
        """True while it is too early to try again what failed."""
        aside = self.set_aside.get(log)
        return aside is not None and aside.until > self._clock.monotonic()

    def _is_for(self, log: "Log", worker: int) -> bool:
        if self._remote is None or not log.snapshot.first_local:
            return worker < self._settings.log_cleaner_threads
        return worker == self._settings.log_cleaner_threads and self._remote.was_asked

    def _memory(self) -> CleaningMemory:
        settings, share = self._settings, self._workers
        most = self._most_memory_bytes() // 2  # the rest is for unpacking
        return CleaningMemory(
            max(min(settings.log_cleaner_dedupe_buffer_size, most) // share, LEAST_MAP_BYTES),
            settings.log_cleaner_io_buffer_load_factor,
            max(settings.log_cleaner_io_buffer_size // share // 2, LEAST_CHUNK_BYTES),
        )

    async def _sync_closed(self, partitions: "list[Partition]") -> None:
        """Have closed segments synced whose topics do not ask for that; wait a little for it."""
        unsynced = [partition.log for partition in partitions if _has_unsynced(partition.log)]
        for log in unsynced:
            self._sync(log)
        for _ in range(SYNC_LOOKS):
            if not any(_has_unsynced(log) for log in unsynced):
                return
            await asyncio.sleep(SYNC_LOOK_SECONDS)

    def _put_aside(self, partition: "Partition", error: Exception) -> None:
        log = partition.log
        if log.is_closed:
            return
        aside = set_aside(self.set_aside.get(log), error, self._clock.monotonic())
        self.set_aside = {**self.set_aside, log: aside}
        self.tally.failed(aside.kind)
        event(
            "log_not_cleaned",
            "warning",
            log=partition,
            reason=aside.reason,
            retry_seconds=aside.retry_seconds,
        )

    def _report(
        self, partition: "Partition", verdict: Verdict, cleaning: Cleaning, seconds: float
    ) -> None:
        stats = cleaning.stats
        event(
            "log_cleaned",
            log=partition,
            because=verdict.because,
            delay_ms=verdict.delay_ms,
            from_offset=verdict.first_dirty,
            to_offset=cleaning.first_dirty,
            records_removed=stats.records_read - stats.records_kept,
            keyless_records=stats.keyless_records,
            bytes_read=stats.bytes_read,
            bytes_written=stats.bytes_written,
            seconds=round(seconds, 3),
        )

    def _on_thread(self, work: Callable[..., T], *args: object) -> "asyncio.Future[T]":
        assert self._threads is not None
        return self._loop.run_in_executor(self._threads, work, *args)

    def _end_threads(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None


def _of_open(found: "Mapping[Log, T]") -> "dict[Log, T]":
    """Findings about logs that are still open: those of others keep their files from going."""
    return {log: each for log, each in found.items() if not log.is_closed}


def _has_unsynced(log: "Log") -> bool:
    """True when a closed segment waits for the disk. The newest ones do, if any."""
    segments = log.snapshot.segments
    return len(segments) > 1 and not segments[-2].synced and log.takes_changes


def _advance(slices: Iterator[Slice], now: Callable[[], float], at_most_bytes: float) -> Progress:
    """On a thread: so many slices as fit into a short while, up to one that needs its turn."""
    until, read, written = now() + SLICE_SECONDS, 0, 0
    for each in slices:
        read += each.bytes_read
        written += each.bytes_written
        if each.in_turn is not None:
            return Progress(read, written, each.in_turn, is_over=False)
        if read + written >= at_most_bytes or now() >= until:
            return Progress(read, written, None, is_over=False)
    return Progress(read, written, None, is_over=True)


def judge_all(
    partitions: "Sequence[Partition]", offsets: CleanerOffsets, now_ms: int
) -> "tuple[list[Verdict | None], list[tuple[Partition, Exception]]]":
    """On a thread: what could be cleaned of each log; None where that cannot be said yet."""
    verdicts: list[Verdict | None] = []
    faults: list[tuple[Partition, Exception]] = []
    for partition in partitions:
        try:
            verdict = kept_verdict(partition.log, offsets, now_ms)
            if verdict is None and learn_ages(partition.log, SEGMENTS_LOOKED_UP):
                verdict = verdict_on(partition.log, offsets, now_ms)
            verdicts.append(verdict)
        except Exception as error:  # noqa: BLE001 - the other logs are judged
            verdicts.append(None)
            faults.append((partition, error))
    return verdicts, faults
