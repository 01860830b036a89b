"""The tier's work on a node in a simulation: rounds and sweeps as the broker has them, on a store
that fails and lanes that take their time.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar

from broker.fleet.led_segments import LedSegments, RowsOfLogs
from broker.fleet.local_logs import LocalLog, StorePart
from broker.fleet.segment_parts import SegmentParts
from broker.guards.clock_guard import ClockWatch
from broker.runtime.callbacks import failed
from broker.runtime.deferred import Deferred
from broker.tier.pace import Pace
from broker.tier.standing import TierOwner, TierStanding
from broker.tier.store_account import StoreAccount
from broker.tier.tally import TierTally
from broker.tier.tier import Tier
from broker.tier.tiering import Tiering
from broker.tier.tiering_parts import TierParts
from broker.tier.trash import Trash
from config.broker import BrokerConfig
from storage.cleaner.cleanable_logs import is_compacted
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.errors import StorageError
from storage.log.log import Log
from storage.tier.object_cache import ObjectCache
from storage.tier.orphans import OrphanSweep, SweepOrder
from storage.tier.port import ObjectStore, StoreError
from storage.tier.remote_logs import RemoteLogs
from storage.tier.remote_object import Reach
from storage.tier.tiered_log import TieredLog
from tests.support.records.cleaning import clean_tiered

T = TypeVar("T")
CACHE_DIR, CACHE_BYTES = "/cache", 1 << 20
SETTINGS = BrokerConfig(horolog_tier_max_lag_ms=4000)
QUICK_RATE = 50.0
LANE_RATES, TURN_RATE, ROUND_RATE = (QUICK_RATE, QUICK_RATE, 0.3), 200.0, 0.5
"""Of waits by the dice: so many a second; lanes of some processes are slow."""
SWEEP_SHARE, CLEAN_SHARE, RETAIN_SHARE = 0.2, 0.5, 0.1
"""Rounds after which there is a sweep, a run of the cleaner, and one of retention."""
Removing = Callable[[Log, int], None]
"""Hears of the start that a log is about to have."""


class Waits(Protocol):
    """The time of a process, which may be stopped."""

    async def sleep(self, seconds: float) -> None:
        """Returns when that is over, and the process runs."""


class Surroundings(NamedTuple):
    """Surroundings of a process of a node."""

    store: ObjectStore
    clock: Waits
    dice: random.Random


class SlowLane:
    """A lane of threads: work that was begun ends, whoever waited for it."""

    def __init__(self, clock: Waits, dice: random.Random, rate: float) -> None:
        """Nothing is begun."""
        self._clock = clock
        self._dice = dice
        self._rate = rate
        self._running: set[asyncio.Task[Any]] = set()
        self.busy_until = 0.0
        """The moment, in seconds, at which the longest of its waits ends."""

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """As a lane has it."""
        task = asyncio.ensure_future(self._work(work, args))
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def hasten(self) -> None:
        """Work that begins from now on takes moments."""
        self._rate = QUICK_RATE

    def kill(self) -> None:
        """The process is gone, and its threads."""
        for each in list(self._running):
            each.cancel()

    async def _work(self, work: Callable[..., T], args: tuple[object, ...]) -> T:
        await self._wait()
        done = work(*args)
        await self._wait()
        return done

    async def _wait(self) -> None:
        seconds = self._dice.expovariate(self._rate)
        self.busy_until = max(self.busy_until, asyncio.get_running_loop().time() + seconds)
        await self._clock.sleep(seconds)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it, or is gone


class Turns:
    """The writer of a partition that has no others waiting."""

    def __init__(self, lane: SlowLane) -> None:
        self._lane = lane

    def in_turn(self, work: Callable[[], T]) -> Deferred[T]:
        """As a writer has it."""
        deferred: Deferred[T] = Deferred()

        def over(done: asyncio.Task[T]) -> None:
            if done.cancelled():
                return  # its process was killed
            error = done.exception()
            deferred.resolve(done.result()) if error is None else deferred.fail(error)

        asyncio.ensure_future(self._lane.run(work)).add_done_callback(over)
        return deferred


class LogInTurn(NamedTuple):
    """A partition, as rounds have it."""

    log: Log
    writer: Turns


class OneTopic(NamedTuple):
    """A topic."""

    partitions: list[LogInTurn]


class TopicsOfLogs:
    """The topics of a directory, as rounds have them."""

    internal_topics: frozenset[str] = frozenset()

    def __init__(self, logs: LogManager, turns: Turns) -> None:
        self._logs = logs
        self._turns = turns

    @property
    def image(self) -> "TopicsOfLogs":
        return self

    @property
    def topics(self) -> Mapping[str, OneTopic]:
        logs = self._logs.logs.values()
        return {"t": OneTopic([LogInTurn(each, self._turns) for each in logs])}


class OneConfig(NamedTuple):
    """Settings that stay as they are."""

    broker_config: BrokerConfig


class PlentyOfSpace(NamedTuple):
    """A disk that has room."""

    is_scarce: bool = False
    is_low: bool = False
    margin_bytes: int = 1 << 30


class SimTier:
    """The tier of a node's process."""

    def __init__(
        self,
        logs: LogManager,
        remote: RemoteLogs,
        env: Env,
        around: Surroundings,
        owned: Callable[[Log], LocalLog | None],
    ) -> None:
        """Nothing was asked. `remote`: the parts in the store, as the directory knows them."""
        self._logs, self._env, self._around = logs, env, around
        self._rows: Callable[[], RowsOfLogs | None] = lambda: None
        store, clock, dice = around
        self._lane = SlowLane(clock, dice, dice.choice(LANE_RATES))
        self._turns = SlowLane(clock, dice, TURN_RATE)
        lane: Any = self._lane
        self.part = StorePart(SegmentParts(logs, store, env), remote, lane)
        self._sweep = OrphanSweep(store, env.clock, remote.find)
        self._tier = self._made(remote, env)
        segments = self._segments = LedSegments(owned, self._rows_now)
        topics: Any = TopicsOfLogs(logs, Turns(self._turns))
        config: Any = OneConfig(SETTINGS)
        space: Any = PlentyOfSpace()
        owner = TierOwner(self._tier, logs, env, lane, 1)
        self.tiering = Tiering(
            TierParts(
                topics, logs, config, env.clock, ClockWatch(env.clock, lambda: SETTINGS), lane,
                self._tier, TierStanding(owner), _sync, space, segments,
            )
        )  # fmt: skip

    def _made(self, remote: RemoteLogs, env: Env) -> Tier:
        store, monotonic, pace = self._around.store, env.clock.monotonic, Pace(lambda: inf)
        lane: Any = self._lane
        unused: Any = None
        return Tier(
            store, remote.reach.cache, remote, unused, lane, pace, pace, Trash(store, monotonic),
            TierTally(), self._sweep, StoreAccount(monotonic), unused,
        )  # fmt: skip

    def _rows_now(self) -> RowsOfLogs | None:
        return self._rows()

    async def run(
        self, rows: Callable[[], RowsOfLogs | None], sweep_rest: float, removing: Removing
    ) -> None:
        """Rounds, until it is cancelled. `sweep_rest`: seconds for which an orphan is known before
        it goes.
        """
        self._rows = rows
        _, clock, dice = self._around
        while True:
            await clock.sleep(dice.expovariate(ROUND_RATE))
            try:
                await self.tiering.run()
                if dice.random() < CLEAN_SHARE:
                    await self._clean()
                if dice.random() < RETAIN_SHARE:
                    await self._retain(removing)
                if dice.random() < SWEEP_SHARE:
                    await self.sweep(sweep_rest)
            except Exception as fault:  # noqa: BLE001 - it is counted, and nothing is to be
                failed("tier", fault)

    async def _clean(self) -> None:
        """A run of the cleaner over each log that is led here, as far as the store answers."""
        for log in list(self._logs.logs.values()):
            if is_compacted(log.config) and self._segments.is_led(log):
                with suppress(StorageError):
                    await self._turns.run(self._cleaned, log)

    def _cleaned(self, log: Log) -> None:
        if log.is_closed or not self._segments.is_led(log):
            return
        clean_tiered(log, self._logs, self._env, self.part.remote.of(log))

    async def _retain(self, removing: Removing) -> None:
        """Retention takes the first segments of a log that is led here."""
        logs = [each for each in self._logs.logs.values() if self._segments.is_led(each)]
        if logs:
            log = self._around.dice.choice(logs)
            with suppress(StorageError):
                await self._turns.run(self._removed, log, removing)

    def _removed(self, log: Log, removing: Removing) -> None:
        if log.is_closed or not self._segments.is_led(log):
            return
        snapshot = log.snapshot
        bases = [each.base_offset for each in snapshot.segments[1:]]
        starts = [each for each in bases if each <= snapshot.high_watermark]
        if starts:
            start = self._around.dice.choice(starts)
            removing(log, start)
            while self._logs.remove_segments(log, start).has_more:
                pass

    async def sweep(self, rest: float) -> None:
        """One round of the sweep, if the store answers."""
        ids = frozenset(each.topic_id for each in self._logs.logs.values() if each.topic_id)
        tier = self._tier
        order = SweepOrder(
            ids, frozenset(), tier.trash.names(), tier.tally.stopped_names(), 0, rest,
            past_ms=0, is_shared=True,
        )  # fmt: skip
        with suppress(StoreError):
            await self._lane.run(self._sweep.round, order)

    def tiered(self, topic: str, partition: int) -> TieredLog:
        """The part in the store of a log that is here."""
        return self.part.remote.logs[topic, partition]

    def hasten(self) -> None:
        """Peace: its lanes are quick."""
        self._lane.hasten()

    @property
    def busy_until(self) -> float:
        """As that of its lane."""
        return self._lane.busy_until

    def kill(self) -> None:
        """The process is gone."""
        self._lane.kill()
        self._turns.kill()


def remote_logs(env: Env, store: ObjectStore) -> RemoteLogs:
    """Parts in the store of a directory whose process begins."""
    env.fs.make_dir(CACHE_DIR)
    cache = ObjectCache(env.fs, CACHE_DIR, CACHE_BYTES)
    cache.open()
    return RemoteLogs(Reach(store, cache), env)


def _sync(log: Log) -> None:
    log.mark_durable(log.sync())
