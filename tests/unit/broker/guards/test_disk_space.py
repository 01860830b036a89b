"""When the disk counts as full, when it has room again, and how soon it is looked at."""

import pytest

from broker.guards.disk_space import DiskSpace
from config.broker import BrokerConfig
from protocol.errors import ErrorCode, KafkaError
from storage.directory.ballast import Ballast
from tests.support.disk.filled_disk import FilledDisk as Disk

MIB, GIB = 1 << 20, 1 << 30


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
        disk.leave(free)
        space.look()
        space.trim_ballast()
        sizes.append(ballast.size_bytes)
    assert sizes == [4000, 4000, 0, 0, 4000]


def test_the_default_ballast_is_a_hundredth() -> None:
    space = space_of(Disk(200 * MIB))
    space.trim_ballast()
    assert space.ballast is not None
    assert space.ballast.size_bytes == 2 * MIB


def short_of(free_of_margin: float, disk: Disk) -> DiskSpace:
    """A disk of which this part of the margin is free."""
    space = space_of(disk, reserve=MIB)
    disk.leave(space.reserve_bytes + int(space.margin_bytes * free_of_margin))
    space.look()
    return space


@pytest.mark.parametrize(
    ("capacity", "margin"), [(40 * MIB, 10 * MIB), (4 * GIB, GIB), (1000 * GIB, GIB)]
)
def test_space_is_scarce_within_a_margin_above_the_reserve(capacity: int, margin: int) -> None:
    disk = Disk(capacity)
    assert short_of(1.0, disk).margin_bytes == margin
    found = [short_of(part, disk) for part in (1.01, 1.0, 0.99, 0.0, -0.001)]
    assert [each.is_scarce for each in found] == [False, False, True, True, True]
    assert [each.is_low for each in found] == [False, False, False, False, True]


def test_producers_may_send_less_the_less_of_the_margin_is_left() -> None:
    disk = Disk(400 * MIB)
    rates = [short_of(part, disk).bytes_per_second for part in (0, 0.1, 0.5, 0.9, 0.999, 1.0, 2.0)]
    assert rates[0] == 0
    assert rates == sorted(rates)
    assert rates[2] == pytest.approx(25 * MIB, rel=0.01), "half of it, for a quarter a second"
    assert rates[4] > 1000 * MIB
    assert rates[5:] == [float("inf")] * 2
    assert short_of(-0.5, disk).bytes_per_second == 0


@pytest.mark.parametrize("relief", [MIB, 20 * MIB, 60 * MIB])
def test_a_producer_that_is_too_fast_comes_to_the_rate_at_which_room_is_made(relief: int) -> None:
    """In steps of a look; room is made by segments of 8 MiB. No second passes without records."""
    disk, step = Disk(256 * MIB), 0.25
    space = short_of(1.0, disk)
    waiting, may_leave, by_second = 0.0, 0.0, [0.0] * 60
    for tick in range(240):
        came = min(space.bytes_per_second, 150 * MIB) * step
        by_second[int(tick * step)] += came
        waiting += came
        may_leave = min(may_leave + relief * step, waiting)
        gone = int(may_leave) // (8 * MIB) * 8 * MIB
        waiting, may_leave = waiting - gone, may_leave - gone
        disk.by_others += int(came) - gone
        space.look()
        assert not space.is_low
    late = by_second[30:]
    assert sum(late) / 30 == pytest.approx(relief, rel=0.3)
    assert min(late) > relief / 8


def test_the_nearer_the_reserve_the_more_often_it_is_looked_at() -> None:
    disk = Disk(40 * MIB)
    waits = [short_of(part, disk).next_look_seconds for part in (0.5, -0.01)]
    assert waits == [0.25, 0.1]
    assert space_of(Disk(100 * GIB)).next_look_seconds == 1.0
