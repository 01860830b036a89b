"""What every `FileSystem` keeps, the machine's and the simulated one alike."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from storage.env import File, FileSystem, parent_of
from storage.errors import DirectoryLocked, DiskError, FileMissing
from storage.posix import PosixFileSystem
from tests.support.disk.simdisk import SimFileSystem


@dataclass
class Disk:
    """A file system, and a directory in it that is ours."""

    fs: FileSystem
    root: str

    def __truediv__(self, name: str) -> str:
        return f"{self.root}/{name}"

    def write(self, name: str, data: bytes) -> File:
        file = self.fs.open(self / name, create=True)
        file.write_at(0, data)
        return file


@pytest.fixture(params=["posix", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    fs: FileSystem = PosixFileSystem() if request.param == "posix" else SimFileSystem()
    root = str(tmp_path / "data") if request.param == "posix" else "/data"
    fs.make_dir(root)
    return Disk(fs, root)


def test_a_write_is_read_back_where_it_was_written(disk: Disk) -> None:
    file = disk.write("a", b"0123456789")
    file.write_at(3, memoryview(b"abc"))
    file.write_at(9, bytearray(b"xyz"))
    assert file.read_at(0, 100) == b"012abc678xyz"
    assert file.size() == 12


def test_parts_are_written_one_after_the_other(disk: Disk) -> None:
    file = disk.write("a", b"--")
    parts = [bytes([n % 256]) * (n % 7) for n in range(1200)]
    file.write_parts_at(2, parts)
    assert file.read_at(2, 10_000) == b"".join(parts)


def test_a_write_past_the_end_leaves_zeros_between(disk: Disk) -> None:
    file = disk.write("a", b"x")
    file.write_at(4, b"y")
    assert file.read_at(0, 10) == b"x\0\0\0y"


def test_reads_are_short_only_at_the_end(disk: Disk) -> None:
    file = disk.write("a", b"0123456789")
    buffer = bytearray(6)
    assert file.read_at(8, 5) == b"89"
    assert file.read_at(10, 5) == b""
    assert file.read_at(99, 5) == b""
    assert file.read_into(7, memoryview(buffer)) == 3
    assert buffer == b"789\0\0\0"


def test_a_cached_read_gives_the_same_bytes_or_says_it_might_wait(disk: Disk) -> None:
    file = disk.write("a", b"0123456789")
    buffer = bytearray(4)
    assert file.read_into_if_cached(2, memoryview(buffer)) in (4, None)
    count = file.read_into_if_cached(8, memoryview(buffer))
    assert count in (2, None)
    assert count is None or buffer[:2] == b"89"


def test_truncating_cuts_and_extends(disk: Disk) -> None:
    file = disk.write("a", b"0123456789")
    file.truncate(4)
    assert file.read_at(0, 10) == b"0123"
    file.truncate(6)
    assert file.read_at(0, 10) == b"0123\0\0"


def test_an_absent_name_is_missing(disk: Disk) -> None:
    calls: list[Callable[[], object]] = [
        lambda: disk.fs.open(disk / "none"),
        lambda: disk.fs.read_bytes(disk / "none"),
        lambda: disk.fs.remove(disk / "none"),
        lambda: disk.fs.rename(disk / "none", disk / "b"),
        lambda: disk.fs.list_dir(disk / "none"),
        lambda: disk.fs.sync_dir(disk / "none"),
        lambda: disk.fs.set_mtime(disk / "none", 1),
        lambda: disk.fs.open(disk / "none/file", create=True),
    ]
    for call in calls:
        with pytest.raises(FileMissing):
            call()
    assert not disk.fs.exists(disk / "none")


def test_errors_name_the_path_and_the_operation(disk: Disk) -> None:
    with pytest.raises(DiskError, match="open failed") as caught:
        disk.fs.open(disk / "none")
    assert caught.value.path == disk / "none"
    assert caught.value.errno


def test_opening_with_create_keeps_what_is_there(disk: Disk) -> None:
    disk.write("a", b"kept").close()
    assert disk.fs.open(disk / "a", create=True).read_at(0, 10) == b"kept"


def test_a_file_opened_for_reading_refuses_writes(disk: Disk) -> None:
    disk.write("a", b"kept").close()
    file = disk.fs.open(disk / "a", write=False)
    with pytest.raises(DiskError):
        file.write_at(0, b"no")
    assert file.read_at(0, 10) == b"kept"


def test_a_closed_file_refuses_everything_but_closing(disk: Disk) -> None:
    file = disk.write("a", b"x")
    file.close()
    file.close()
    with pytest.raises(DiskError):
        file.read_at(0, 1)
    with pytest.raises(DiskError):
        file.write_at(0, b"y")
    with pytest.raises(DiskError):
        file.sync()


def test_a_directory_tells_what_lies_in_it(disk: Disk) -> None:
    disk.write("a", b"123").close()
    disk.fs.make_dir(disk / "sub")
    disk.fs.set_mtime(disk / "a", 1_234_567)
    entries = {entry.name: entry for entry in disk.fs.list_dir(disk.root)}
    assert set(entries) == {"a", "sub"}
    assert (entries["a"].is_dir, entries["a"].size_bytes) == (False, 3)
    assert entries["a"].mtime_ms == 1_234_567
    assert entries["sub"].is_dir


def test_directories_are_made_with_their_parents_and_again(disk: Disk) -> None:
    disk.fs.make_dir(disk / "x/y/z")
    disk.fs.make_dir(disk / "x/y/z")
    assert disk.fs.exists(disk / "x/y/z")
    disk.write("file", b"").close()
    with pytest.raises(DiskError):
        disk.fs.make_dir(disk / "file")


def test_renaming_replaces_a_file_and_open_handles_follow(disk: Disk) -> None:
    file = disk.write("new", b"new")
    disk.write("old", b"old").close()
    disk.fs.rename(disk / "new", disk / "old")
    assert not disk.fs.exists(disk / "new")
    assert disk.fs.read_bytes(disk / "old") == b"new"
    file.write_at(0, b"NEW")
    assert disk.fs.read_bytes(disk / "old") == b"NEW"


def test_a_directory_is_renamed_with_everything_in_it(disk: Disk) -> None:
    disk.fs.make_dir(disk / "t-0")
    disk.write("t-0/a", b"inside").close()
    disk.fs.rename(disk / "t-0", disk / "t-0.deadbeef-delete")
    assert disk.fs.read_bytes(disk / "t-0.deadbeef-delete/a") == b"inside"
    assert not disk.fs.exists(disk / "t-0")


def test_a_removed_file_stays_readable_for_those_who_hold_it(disk: Disk) -> None:
    file = disk.write("a", b"held")
    disk.fs.remove(disk / "a")
    assert not disk.fs.exists(disk / "a")
    assert file.read_at(0, 10) == b"held"


def test_a_tree_goes_whole_and_its_absence_is_fine(disk: Disk) -> None:
    disk.fs.make_dir(disk / "x/y")
    disk.write("x/y/a", b"1").close()
    disk.fs.remove_tree(disk / "x")
    disk.fs.remove_tree(disk / "x")
    assert not disk.fs.exists(disk / "x")


def test_a_file_is_replaced_whole(disk: Disk) -> None:
    disk.fs.write_atomically(disk / "a", b"a long first text")
    disk.fs.write_atomically(disk / "a", b"short")
    assert disk.fs.read_text(disk / "a") == "short"
    assert [entry.name for entry in disk.fs.list_dir(disk.root)] == ["a"]


def test_text_that_is_not_text_is_still_read(disk: Disk) -> None:
    disk.write("a", b"ok \xff\xfe").close()
    assert disk.fs.read_text(disk / "a").startswith("ok ")


def test_one_lock_a_directory(disk: Disk) -> None:
    lock = disk.fs.lock(disk / ".lock")
    with pytest.raises(DirectoryLocked):
        disk.fs.lock(disk / ".lock")
    lock.release()
    disk.fs.lock(disk / ".lock").release()


def test_the_free_space_is_a_number_of_bytes(disk: Disk) -> None:
    assert disk.fs.free_bytes(disk.root) > 0


def test_syncing_files_and_directories_is_allowed_at_any_time(disk: Disk) -> None:
    file = disk.write("a", b"x")
    file.sync()
    file.sync()
    disk.fs.sync_dir(disk.root)


@pytest.mark.parametrize(
    ("path", "parent"), [("/a/b", "/a"), ("/a", "/"), ("a", "."), ("a/b/", "a"), ("/a/b/", "/a")]
)
def test_the_parent_of_a_path(path: str, parent: str) -> None:
    assert parent_of(path) == parent
