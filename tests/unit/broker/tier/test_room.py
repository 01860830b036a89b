"""A broker whose disk runs short of space while segments go to the store."""

from collections.abc import Iterator
from math import inf
from typing import Any

import pytest

from broker.tier.copier.process import CopierPlace, CopierProcess
from broker.tier.pace import Pace
from broker.tier.room import RoomParts, TierRoom
from broker.tier.standing import TierOwner, TierStanding
from broker.tier.store_account import StoreAccount
from broker.tier.tally import TierTally
from broker.tier.tier import Tier
from broker.tier.tiering import Tiering, TierParts
from broker.tier.trash import Trash
from config.tier.url import TierUrl
from storage.env import Buffer
from storage.files.layout import DELETED
from storage.log.log import Log
from storage.tier.object_cache import ObjectCache
from storage.tier.orphans import OrphanSweep
from storage.tier.port import StoreError
from storage.tier.remote_logs import RemoteLogs
from storage.tier.remote_object import Reach
from tests.support.disk.filled_disk import FilledDisk
from tests.support.records.logs import make_durable
from tests.support.tier.memory_store import MemoryStore
from tests.support.worlds.handler_world import LOG_DIR, World

MIB = 1 << 20
DISK_BYTES = 160 * MIB
SETTINGS = {
    "remote_log_storage_system_enable": "true",
    "horolog_tier_url": "s3://bucket/prefix",
    "horolog_disk_reserve_bytes": str(8 * MIB),
}
MARGIN_BYTES = DISK_BYTES // 4
SCARCE, LOW, PLENTY = 20 * MIB, 4 * MIB, 100 * MIB
TOPIC = {
    "remote_storage_enable": "true",
    "segment_bytes": str(8 * MIB),
    "local_retention_bytes": "1",
    "retention_ms": "-1",
}


class WatchedStore(MemoryStore):
    """Knows the local start of the log at each upload of records."""

    def __init__(self) -> None:
        super().__init__()
        self.log: Log | None = None
        self.local_starts: list[int] = []
        self.is_away = False

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        if self.is_away:
            raise StoreError(key, "put_file", "away")
        if key.endswith(".log") and self.log is not None:
            self.local_starts.append(self.log.snapshot.local_start_offset)
        super().put_file(key, parts, size_bytes)


class ShortWorld(World):
    """Its disk has 160 MiB: 8 are the reserve, 40 above that the margin."""

    def __init__(self, disk_bytes: int = DISK_BYTES) -> None:
        self.disk = FilledDisk(disk_bytes)
        super().__init__(self.disk, **SETTINGS)
        self.store = WatchedStore()
        self.hastened: list[float] = []
        self.slowed: list[bool] = []
        broker = self.broker
        tier = self.tier = self._tier()
        standing = TierStanding(TierOwner(tier, broker.logs, self.env, broker.lane, 1))
        self.tiering = Tiering(
            TierParts(
                broker.topics, broker.logs, broker.config, self.clock, broker.clock_watch,
                broker.lane, tier, standing, make_durable, broker.disk_space,
            )
        )  # fmt: skip
        self.room = TierRoom(
            RoomParts(
                broker.disk_space, tier, broker.logs, broker.lane, self.clock.monotonic,
                lambda: self.hastened.append(self.clock.monotonic()), self.slowed.append,
            )
        )  # fmt: skip

    def _tier(self) -> Tier:
        clock, store = self.clock, self.store
        cache = ObjectCache(self.fs, "/cache", 1 << 40)
        cache.open()
        pace = Pace(lambda: inf)
        remote = RemoteLogs(Reach(store, cache), self.env)
        lane: Any = self.lanes
        reads: Any = None
        return Tier(
            store, cache, remote, reads, lane, pace, pace, Trash(store, clock.monotonic),
            TierTally(), OrphanSweep(store, clock, remote.find), StoreAccount(clock.monotonic),
            CopierProcess(CopierPlace(TierUrl("none"), allow_http=False), clock.monotonic),
        )  # fmt: skip

    @property
    def log(self) -> Log:
        return self.partition().log

    async def write(self, mebibytes: int) -> None:
        """So much, and it is on the disk."""
        for _ in range(mebibytes * 4):
            answer = await self.produce(b"x" * (MIB // 4 - 200))
            assert answer.error_code == 0
        make_durable(self.log)

    async def look(self, free_bytes: int) -> None:
        self.disk.leave(free_bytes)
        self.broker.disk_space.look()
        await self.room.looked()

    @property
    def deleted(self) -> list[str]:
        """Files that have left and are still on the disk."""
        names = [each.name for each in self.fs.list_dir(f"{LOG_DIR}/t-0")]
        return [name for name in names if name.endswith(DELETED)]


@pytest.fixture
async def world() -> ShortWorld:
    world = ShortWorld()
    await world.make_topic("t", **TOPIC)
    world.store.log = world.log
    return world


async def test_a_segment_leaves_before_the_next_one_is_copied(world: ShortWorld) -> None:
    await world.write(33)
    bases = [each.base_offset for each in world.log.snapshot.segments]
    assert len(bases) == 5
    await world.tiering.run()
    assert world.store.local_starts == bases[:4]
    assert world.log.snapshot.local_start_offset == bases[4]


async def test_files_that_the_store_has_go_at_once_while_space_is_scarce(
    world: ShortWorld,
) -> None:
    await world.write(20)
    await world.tiering.run()
    await world.look(PLENTY)
    assert len(world.deleted) > 4, "for readers, for a minute"
    await world.look(SCARCE)
    assert world.deleted == []


async def test_files_of_removed_records_keep_their_delay_until_nothing_is_taken_in(
    world: ShortWorld,
) -> None:
    await world.write(20)
    log = world.log
    world.broker.logs.remove_segments(log, log.snapshot.segments[1].base_offset)
    await world.look(SCARCE)
    assert world.deleted


async def test_the_round_is_hastened_once_a_second_while_space_is_scarce(
    world: ShortWorld,
) -> None:
    await world.look(PLENTY)
    assert world.hastened == []
    for _ in range(12):
        await world.look(SCARCE)
        world.clock.advance(250)
    assert len(world.hastened) == 3


async def test_producers_are_measured_where_a_moment_may_make_space_scarce() -> None:
    world = ShortWorld(1 << 34)
    for free_bytes in (1 << 33, 1 << 30, SCARCE, 1 << 33):
        await world.look(free_bytes)
    assert world.slowed == [False, True, True, False]


async def test_a_store_that_fails_is_asked_less_often(world: ShortWorld) -> None:
    await world.write(20)
    world.store.is_away = True
    await world.tiering.run()
    for _ in range(40):
        await world.look(SCARCE)
        world.clock.advance(250)
    assert len(world.hastened) == 2
    world.store.is_away = False
    await world.tiering.run()
    world.clock.advance(5000)
    before = len(world.hastened)
    for _ in range(8):
        await world.look(SCARCE)
        world.clock.advance(250)
    assert len(world.hastened) == before + 2


@pytest.mark.parametrize(
    ("free_bytes", "written", "ends"),
    [
        (PLENTY, 7, False),
        (SCARCE, 7, True),
        (SCARCE, 4, False),
        (LOW, 4, True),
    ],
)
async def test_a_large_active_segment_ends_when_nothing_else_can_leave(
    world: ShortWorld, free_bytes: int, written: int, ends: bool
) -> None:
    """An eighth of the margin is large, 5 MiB; while nothing is taken in, 1 MiB is."""
    await world.write(written)
    await world.look(free_bytes)
    await world.tiering.run()
    assert (world.log.snapshot.end_position == 0) == ends
    await world.tiering.run()
    snapshot = world.log.snapshot
    assert (snapshot.local_start_offset == snapshot.log_end_offset) == ends


async def test_it_does_not_end_while_others_wait_for_their_copy(world: ShortWorld) -> None:
    await world.write(15)
    await world.look(SCARCE)
    world.store.is_away = True
    await world.tiering.run()
    assert world.log.snapshot.end_position > 6 * MIB
    world.store.is_away = False
    await world.tiering.run()
    assert world.log.snapshot.end_position == 0


@pytest.mark.parametrize("limit", ["local_retention_bytes", "remote_storage_enable"])
async def test_it_does_not_end_where_that_would_make_no_room(limit: str) -> None:
    world = ShortWorld()
    value = {"local_retention_bytes": "-2", "remote_storage_enable": "false"}
    settings = {**TOPIC, limit: value[limit]}
    await world.make_topic("t", **settings)
    await world.write(7)
    await world.look(SCARCE)
    await world.tiering.run()
    assert world.log.snapshot.end_position > 6 * MIB


async def test_while_space_is_scarce_no_more_stays_than_the_local_limit(
    world: ShortWorld,
) -> None:
    """Else the segment stays with which the limit is crossed, as in Kafka."""
    configs = {"local_retention_bytes": str(12 * MIB)}
    await world.make_topic("u", **{**TOPIC, **configs})
    world.store.log = log = world.partition("u").log
    for _ in range(33 * 4):
        await world.produce(b"x" * (MIB // 4 - 200), topic="u")
    make_durable(log)
    left = []
    for free_bytes in (PLENTY, SCARCE):
        await world.look(free_bytes)
        await world.tiering.run()
        left.append(sum(each.size_bytes for each in log.snapshot.local_segments))
    assert left[0] > 12 * MIB
    assert 0 < left[1] <= 12 * MIB


async def test_the_cache_leaves_the_disk_to_the_logs(world: ShortWorld) -> None:
    await world.look(140 * MIB)
    cache = world.tier.cache
    for key in range(60):
        cached = cache.make(str(key), MIB)
        cache.fill(cached, 0, bytes(MIB))
    wanted = 8 * MIB + 2 * MARGIN_BYTES
    assert wanted <= world.disk.free_bytes("/") < wanted + MIB
    await world.look(world.disk.free_bytes("/") - 3 * MIB)
    assert wanted <= world.disk.free_bytes("/") < wanted + MIB
