"""A broker under attack, whole: real sockets, a test clock, a disk that can lose its power.

One life is a seed. In each round strangers send what they like over several connections; then time
passes until everything that waits on it has happened; then the broker stops in one of three ways
and starts again on the same disk. Each time an administrator takes back what he can take back by
requests, every API answers as a sound broker's, and the memory is where it was.
"""

import asyncio
import contextlib
import gc
import random
import struct
import threading
from typing import Any

from broker.daemon.app import Broker
from broker.runtime.event_log import journal
from broker.runtime.memory_account import MemoryClass
from protocol.codec import encode_bytes
from protocol.headers import request_header_bytes
from storage.env import Env
from tests.support.clients.damaged_requests import damaged, settle_in
from tests.support.clients.plain_talk import Talk
from tests.support.clients.random_requests import random_request
from tests.support.clients.served_check import Checked
from tests.support.clients.wire import AsyncWireClient, frame
from tests.support.disk.held_memory import held_bytes
from tests.support.disk.simdisk import FileNode, SimFileSystem
from tests.support.disk.simenv import SeededRng
from tests.support.worlds.app import frozen_at, make_broker
from tests.support.worlds.handler_world import BATCH_TIME
from tests.support.worlds.hostile_oracle import (
    CostError,
    StrangersClient,
    bounded_cost,
    every_api_answers,
    records_follow_one_another,
)
from tests.support.worlds.hostile_talk import ATTACKS, ODD_STATE

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "horolog.max.partitions": "60",
    "horolog.memory.max.bytes": str(256 << 20),
    "log.cleaner.dedupe.buffer.size": str(1 << 20),
    "horolog.disk.ballast.bytes": "0",  # the simulated disk is memory
}
MINUTES_MS, HOURS_MS, DAYS_MS = 61_000, 3 * 3_600_000, 9 * 86_400_000
"""Sessions and rebalances; transactions (15 minutes); retention, offsets, ids and producers."""
MEMORY_BOUND_BYTES = 12 << 20
ACCOUNT_BOUND_BYTES = 64 << 10
PATIENCE_SECONDS, ATTACK_SECONDS = 0.1, 2
ATTACKS_SHARE = 0.5
CHECK_SECONDS = 60
CONNECTIONS = 4
MOST_AT_A_TIME_BYTES = (256 + 96) << 20
"""More than clients may make the broker hold, and what the strangers themselves hold."""
SETTLES_TRIES, SETTLES_SECONDS = 20, 0.05
DATA, TOPICS = "/data", ("t", "u0")
UNEXPECTED = ("request_failed", "task_failed", "callback_failed", "load_groups", "load_trans")
ENDS = ("stop", "kill", "cut")


class FindingError(AssertionError):
    """A broken promise."""


class ThreadedDisk(SimFileSystem):
    """The simulated disk for a broker whose lanes and fsync threads are real."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self._guard = threading.RLock()

    @property
    def held_bytes(self) -> int:
        """Memory of all simulated files, those that are deleted in the cache, too."""
        nodes = [each for each in gc.get_objects() if isinstance(each, FileNode)]
        pending = sum(len(data or b"") for node in nodes for _, data in node.pending)
        return pending + sum(len(node.cached) + len(node.durable) for node in nodes)

    def _mutate(self, *call: Any, **how: Any) -> None:
        with self._guard:
            super()._mutate(*call, **how)

    def _successor(self, survival: Any) -> "ThreadedDisk":
        with self._guard:
            plain = super()._successor(survival)
        again = ThreadedDisk(clock=self._clock)
        again._root, again._used = plain._root, plain._used
        return again


class HostileLife:
    """One broker and its strangers."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(f"hostile {seed}")
        self.clock = frozen_at(BATCH_TIME)
        self.disk = ThreadedDisk(clock=self.clock)
        self.broker: Broker = None  # type: ignore[assignment]
        self.requests = 0
        self.attacks: list[str] = []
        self.step = "start"
        self._lines: list[str] = []
        self._checks = 0
        self._odd_state = False
        self._memory_before = 0
        self._clients: list[AsyncWireClient] = []
        self._waiting: list[AsyncWireClient] = []

    async def live(self, rounds: int, requests: int) -> None:
        """FindingError tells what was broken, and after what."""
        asyncio.get_running_loop().set_exception_handler(self._escaped)
        kept = journal.write, journal.now_ms
        journal.write, journal.now_ms = self._lines.append, self.clock.now_ms
        try:
            await self._start()
            await self._check()
            self._memory_before = held_bytes()
            for number in range(rounds):
                await self._round(number, requests)
        finally:
            await self._end()
            journal.write, journal.now_ms = kept

    async def _round(self, number: int, requests: int) -> None:
        self.step = f"round {number}, attack"
        try:
            await self._strangers(requests)
        except CostError as error:
            raise FindingError(f"{self.step}: {error}") from error
        self.step = f"round {number}, right after the attack"
        await self._is_as_promised()
        self.step = f"round {number}, time"
        await self._all_timers_fire()
        await self._is_sound()
        how = self.dice.choice(ENDS)
        self.step = f"round {number}, {how} and start"
        await self._restart(how)
        await self._is_sound()

    async def _is_sound(self) -> None:
        self._nothing_escaped()
        await self._take_back()
        await self._check()
        await self.broker.services.held_time.advance(DAYS_MS)  # type: ignore[union-attr]
        self._memory_is_back()

    # --- what is done to it ---

    async def _start(self) -> None:
        env = Env(self.clock, self.disk, SeededRng(self.dice.getrandbits(32)))
        self.broker = make_broker(DATA, SETTINGS, env, self.clock)  # type: ignore[arg-type]
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self.broker.start()
                await self.broker._loading
        except Exception as error:
            raise FindingError(f"{self.step}: {error!r}") from error

    async def _restart(self, how: str) -> None:
        if self.dice.random() < 0.5:
            self._plant_odd_state()
        if how == "stop":
            await self._end()
        left = self.disk.after_crash(self.dice.getrandbits(32)) if how == "cut" else None
        left = left or self.disk.after_kill()
        if how != "stop":
            await self._end()
        self.disk = left  # type: ignore[assignment]
        await self._start()

    async def _end(self) -> None:
        await self._hang_up()
        if self.broker is not None:
            await self.broker.stop()

    def _plant_odd_state(self) -> None:
        """State records that cannot be restored."""
        for topic, key, value in self.dice.sample(ODD_STATE, 2):
            image = self.broker.services.topics.image.topics.get(topic)
            if image is not None:
                records = _internal_batch(self.clock.now_ms(), key, value)
                log = self.dice.choice(image.partitions).log
                log.append(memoryview(records), acks_all=False, leader_epoch=0)
                self._odd_state = True

    async def _strangers(self, requests: int) -> None:
        (maker,) = await self._connected(1)
        for name in TOPICS:
            made = {"name": name, "num_partitions": 2, "replication_factor": 1}
            await Talk(maker).ask("CreateTopics", 7, topics=[made], timeout_ms=1000)
        for _ in range(requests):
            client = self.dice.choice(await self._connected(CONNECTIONS))
            self.requests += 1
            if not await self._was_answered(client):  # it waits, or has no answer to come
                self._clients.remove(client)
                self._waiting.append(client)

    async def _was_answered(self, client: AsyncWireClient) -> bool:
        """True when the connection is good for more."""
        with contextlib.suppress(OSError, EOFError, TimeoutError, AssertionError):
            if self.dice.random() < ATTACKS_SHARE:
                return await self._attack(Talk(client))
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._any_request(client)
            return True
        return False

    async def _attack(self, talk: Talk) -> bool:
        attack = self.dice.choice(ATTACKS)
        self.attacks.append(attack.__name__)
        with bounded_cost(attack.__name__, MOST_AT_A_TIME_BYTES):
            async with asyncio.timeout(ATTACK_SECONDS):
                await attack(talk, self.dice)
        return not talk.waits

    async def _any_request(self, client: AsyncWireClient) -> None:
        api, request, version = random_request(self.dice)
        settle_in(request, self.dice, self.broker.services.topics)
        header = request_header_bytes(api, version, 5, "stranger")
        try:
            whole = header + encode_bytes(request, version)
        except struct.error:  # a text too long for a version that counts in 16 bits
            return
        await client.send_raw(frame(damaged(whole, self.dice)))
        await client.receive_frame()

    async def _connected(self, count: int) -> list[AsyncWireClient]:
        while len(self._clients) < count:
            try:
                self._clients.append(await StrangersClient.connect(*self.broker.bootstrap))
            except OSError as error:
                raise FindingError(f"{self.step}: nobody can connect: {error!r}") from error
        return self._clients

    async def _hang_up(self) -> None:
        clients = self._clients + self._waiting
        self._clients, self._waiting = [], []
        for client in clients:
            await client.close()

    async def _all_timers_fire(self) -> None:
        for ms in (MINUTES_MS, HOURS_MS, DAYS_MS):
            async with asyncio.timeout(CHECK_SECONDS):
                await self.broker.services.held_time.advance(ms)  # type: ignore[union-attr]
            await asyncio.sleep(0.01)
        await self._hang_up()

    # --- what must be true ---

    async def _is_as_promised(self) -> None:
        """Before time or anybody helps: memory is accounted for, APIs answer, logs can be read."""
        await self._hang_up()
        await self._memory_is_accounted_for()
        self._nothing_escaped()
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                async with await AsyncWireClient.connect(*self.broker.bootstrap) as client:
                    await every_api_answers(client, self._advance)
                    await records_follow_one_another(Talk(client), TOPICS)
        except (OSError, EOFError, TimeoutError, AssertionError) as error:
            raise FindingError(f"{self.step}: {error!r}") from error
        self._nothing_escaped()

    async def _advance(self, ms: int) -> None:
        await self.broker.services.held_time.advance(ms)  # type: ignore[union-attr]

    async def _memory_is_accounted_for(self) -> None:
        """As soon as what was under way has ended."""
        for _ in range(SETTLES_TRIES):
            await asyncio.sleep(SETTLES_SECONDS)
            told = sum(self.broker.services.memory.used(kind) for kind in MemoryClass)
            grown = held_bytes() - self._memory_before - self.disk.held_bytes
            if grown - told <= MEMORY_BOUND_BYTES:
                return
        sizes = f"{grown >> 20} MiB more, {told >> 20} of them known"
        raise FindingError(f"{self.step}: memory that nobody accounts for: {sizes}")

    def _nothing_escaped(self) -> None:
        lines, self._lines[:] = self._lines[:], []
        odd = [line for line in lines if any(f"event={name}" in line for name in UNEXPECTED)]
        crashes = dict(self.broker.services.probes.crashes)
        if crashes:
            raise FindingError(f"{self.step}: crashes by API {crashes}: {odd[:1]}")
        if odd:
            raise FindingError(f"{self.step}: {len(odd)} errors that nobody expected: {odd[0]}")

    def _escaped(self, loop: Any, context: dict[str, Any]) -> None:
        self._lines.append(f"event=callback_failed {context}")

    async def _take_back(self) -> None:
        """Takes back, by requests, what an administrator would find odd."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                async with await AsyncWireClient.connect(*self.broker.bootstrap) as client:
                    await _without_settings(Talk(client))
                    await _without_topics(Talk(client))
        except (OSError, EOFError, TimeoutError, AssertionError) as error:
            raise FindingError(f"{self.step}: nothing can be taken back: {error!r}") from error

    async def _check(self) -> None:
        self._checks += 1
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                async with await AsyncWireClient.connect(*self.broker.bootstrap) as client:
                    now = self.clock.now_ms()
                    await Checked(Talk(client), str(self._checks), now, self._advance).every_api()
        except (OSError, EOFError, TimeoutError, AssertionError) as error:
            raise FindingError(f"{self.step}, then a sound request: {error!r}") from error
        self._nothing_escaped()

    def _memory_is_back(self) -> None:
        grown = held_bytes() - self._memory_before - self.disk.held_bytes
        if grown > MEMORY_BOUND_BYTES:
            raise FindingError(f"{self.step}: {grown >> 20} MiB more are in use than before")
        account = self.broker.services.memory
        held = {str(kind): account.used(kind) for kind in MemoryClass}
        if max(held.values()) > ACCOUNT_BOUND_BYTES:
            raise FindingError(f"{self.step}: the account of memory says {held}")


def _internal_batch(now_ms: int, key: bytes, value: bytes | None) -> bytearray:
    from protocol.records.builder import build_batch

    return build_batch([(now_ms, key, value)])


async def _without_settings(talk: Talk) -> None:
    for name in ("", "1"):
        one: dict[str, Any] = {"resource_type": 4, "resource_name": name}
        told = (await talk.ask("DescribeConfigs", 4, resources=[one])).results[0]
        stored = [each.name for each in told.configs if each.config_source in {2, 3}]
        one["configs"] = [{"name": each, "config_operation": 1} for each in stored]
        if stored:
            await talk.ask("IncrementalAlterConfigs", 1, resources=[one])
    told = await talk.ask("DescribeClientQuotas", 1, components=[])
    entries = [
        {
            "entity": [
                {"entity_type": part.entity_type, "entity_name": part.entity_name}
                for part in each.entity
            ],
            "ops": [{"key": value.key, "value": 0.0, "remove": True} for value in each.values],
        }
        for each in told.entries or []
    ]
    await talk.ask("AlterClientQuotas", 1, entries=entries)


async def _without_topics(talk: Talk) -> None:
    every = await talk.ask("Metadata", 12, topics=None)
    gone = [{"name": each.name} for each in every.topics if not each.is_internal]
    told = await talk.ask("DeleteTopics", 6, topics=gone, timeout_ms=5000)
    codes = {each.name: each.error_code for each in told.responses if each.error_code}
    assert not codes, f"topics that cannot be deleted: {codes}"
