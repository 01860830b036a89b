"""The ballast gives way to what must be written on a full disk, and to nothing else."""

import pytest

from storage.directory.ballast import Ballast
from storage.errors import DiskError, NoSpace
from tests.support.disk.simdisk import SimFileSystem

PATH = "/horolog-ballast"
DISK, SIZE = 10_000, 4_000


@pytest.fixture
def fs() -> SimFileSystem:
    return SimFileSystem(capacity_bytes=DISK)


@pytest.fixture
def ballast(fs: SimFileSystem) -> Ballast:
    ballast = Ballast(fs, PATH)
    ballast.keep(SIZE)
    return ballast


def fill(fs: SimFileSystem) -> None:
    fs.open("/others", create=True).write_at(0, bytes(fs.free_bytes("/")))


def test_it_takes_its_space_durably_and_is_found_again(fs: SimFileSystem, ballast: Ballast) -> None:
    assert fs.free_bytes("/") == DISK - SIZE
    fs.sync_dir("/")
    again = Ballast(fs.after_crash(1), PATH)
    again.find()
    assert again.size_bytes == ballast.size_bytes == SIZE


def test_on_a_full_disk_it_makes_room_once(fs: SimFileSystem, ballast: Ballast) -> None:
    fill(fs)
    ballast.making_room(lambda: fs.write_atomically("/small", bytes(100)))
    assert fs.read_bytes("/small") == bytes(100)
    assert not fs.exists(PATH)
    assert ballast.size_bytes == 0
    with pytest.raises(NoSpace):
        ballast.making_room(lambda: fs.write_atomically("/large", bytes(DISK)))


def test_other_faults_leave_it_where_it_is(fs: SimFileSystem, ballast: Ballast) -> None:
    fs.inject("rename", error="eio")
    with pytest.raises(DiskError):
        ballast.making_room(lambda: fs.write_atomically("/small", b"x"))
    assert ballast.size_bytes == SIZE
    assert fs.exists(PATH)


@pytest.mark.parametrize("wanted", [0, 1, SIZE - 1, SIZE + 1, 2 * SIZE])
def test_it_follows_the_setting(fs: SimFileSystem, ballast: Ballast, wanted: int) -> None:
    ballast.keep(wanted)
    assert ballast.size_bytes == wanted
    assert fs.free_bytes("/") == DISK - wanted


def test_one_that_does_not_fit_leaves_nothing_behind(fs: SimFileSystem) -> None:
    ballast = Ballast(fs, PATH)
    with pytest.raises(NoSpace):
        ballast.keep(DISK + 1)
    assert ballast.size_bytes == 0
    assert not fs.exists(PATH)
