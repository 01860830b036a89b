"""When the disk counts as full, when it has room again, and how soon it is looked at."""

import pytest

from broker.guards.disk_space import DiskSpace
from config.broker import BrokerConfig
from protocol.errors import ErrorCode, KafkaError
from storage.directory.ballast import Ballast
from storage.errors import DiskError
from tests.support.disk.simdisk import SimFileSystem

MIB, GIB = 1 << 20, 1 << 30


class Disk(SimFileSystem):
    """One that others fill."""

    def __init__(self, capacity_bytes: int) -> None:
        super().__init__(capacity_bytes=capacity_bytes)
        self.by_others = 0
        self.is_gone = False

    def free_bytes(self, path: str) -> int:
        if self.is_gone:
            raise DiskError(path, "statvfs", "Stale file handle")
        return super().free_bytes(path) - self.by_others


def space_of(disk: Disk, reserve: int = -1, ballast: int = -1) -> DiskSpace:
    config = BrokerConfig(horolog_disk_reserve_bytes=reserve, horolog_disk_ballast_bytes=ballast)
    space = DiskSpace(disk, "/", lambda: config)
    space.ballast = Ballast(disk, "/horolog-ballast")
    space.look()
    return space


@pytest.mark.parametrize(
    ("capacity", "setting", "reserve"),
    [
        (10 * GIB, -1, GIB // 2),
        (1000 * GIB, -1, GIB),
        (20 * MIB, -1, MIB),
        (GIB, 5000, 5000),
        (GIB, 0, 0),
    ],
)
def test_the_reserve(capacity: int, setting: int, reserve: int) -> None:
    space = space_of(Disk(capacity), reserve=setting)
    assert space.reserve_bytes == reserve
    assert not space.is_low


def test_low_below_the_reserve_and_well_again_a_little_above_it() -> None:
    disk = Disk(GIB)
    space = space_of(disk, reserve=800)
    changes = []
    for free in (801, 800, 799, 800, 899, 900, 800, 799):
        disk.by_others = GIB - free
        space.look()
        changes.append(space.is_low)
    assert changes == [False, False, True, True, True, False, False, True]


def test_who_is_refused_learns_why_and_that_it_passes() -> None:
    disk = Disk(GIB)
    space = space_of(disk, reserve=800)
    space.check_room()
    disk.by_others = GIB - 5
    space.look()
    with pytest.raises(KafkaError, match="5 bytes free, and 800 are kept") as refused:
        space.check_room()
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "horolog.disk.reserve.bytes" in refused.value.message
    assert space.shortage is not None
    assert not space.look(), "nothing has changed"


def taken_in(space: DiskSpace, disk: Disk, size_bytes: int) -> int:
    """How much is taken in until something is refused."""
    taken = 0
    try:
        while True:
            space.admit(size_bytes)
            taken += size_bytes
            disk.by_others += size_bytes
    except KafkaError:
        return taken


def test_no_batch_is_taken_in_that_could_use_the_reserve_up() -> None:
    disk = Disk(2 * GIB)
    space = space_of(disk, reserve=1000)
    tight = [space.is_tight]
    disk.by_others = 2 * GIB - 100_000
    space.look()
    assert [*tight, space.is_tight] == [False, True]
    assert 98_000 <= taken_in(space, disk, 700) < 100_000
    assert space.refused_batches == 1
    disk.by_others = 0
    space.look()
    space.admit(700)


def test_while_it_is_low_it_is_looked_at_more_often() -> None:
    disk = Disk(GIB)
    space = space_of(disk)
    seldom = space.next_look_seconds
    disk.by_others = GIB
    space.look()
    assert space.next_look_seconds < seldom


def test_a_disk_that_cannot_be_asked_changes_nothing() -> None:
    disk = Disk(GIB)
    space = space_of(disk, reserve=800)
    disk.by_others = GIB - 5
    space.look()
    disk.is_gone = True
    disk.by_others = 0
    assert not space.look()
    assert space.is_low
    disk.is_gone = False
    assert space.look()
    assert space.shortage is None


def test_the_ballast_comes_with_room_goes_without_and_comes_back() -> None:
    disk = Disk(GIB)
    space = space_of(disk, reserve=MIB, ballast=4000)
    ballast = space.ballast
    assert ballast is not None
    sizes = []
    for free in (10 * MIB, 1001, 999, 10_000, 10 * MIB):
        disk.by_others = 0
        disk.by_others = disk.free_bytes("/") - free
        space.look()
        space.trim_ballast()
        sizes.append(ballast.size_bytes)
    assert sizes == [4000, 4000, 0, 0, 4000]


def test_the_default_ballast_is_a_hundredth() -> None:
    space = space_of(Disk(200 * MIB))
    space.trim_ballast()
    assert space.ballast is not None
    assert space.ballast.size_bytes == 2 * MIB
