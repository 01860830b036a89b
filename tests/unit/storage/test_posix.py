"""What the machine's file system must do beyond the contract: modes, short writes, error names."""

import errno
import os
import stat
import uuid
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from storage.errors import DirectoryLocked, DiskError, FileMissing, NoSpace
from storage.files.meta_properties import kafka_uuid
from storage.posix import PosixFile, PosixFileSystem, SystemRng, disk_error, real_env


@pytest.fixture
def fs() -> PosixFileSystem:
    return PosixFileSystem()


def test_files_and_directories_are_the_owners_alone(fs: PosixFileSystem, tmp_path: Path) -> None:
    fs.make_dir(f"{tmp_path}/data/t-0")
    fs.open(f"{tmp_path}/data/t-0/a", create=True).close()
    fs.write_atomically(f"{tmp_path}/data/b", b"x")
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "data/t-0").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "data/t-0/a").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data/b").stat().st_mode) == 0o600


def test_the_system_may_write_in_small_pieces(
    fs: PosixFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(data)[:3], at))
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, at: pwrite(fd, b"".join(parts)[:8], at))
    file = fs.open(f"{tmp_path}/a", create=True)
    file.write_at(2, b"0123456789")
    assert file.read_at(2, 20) == b"0123456789"
    parts = [b"abcde", b"", memoryview(b"fghij"), bytearray(b"klmnopqrst")]
    file.write_parts_at(5, parts)
    assert file.read_at(5, 30) == b"abcdefghijklmnopqrst"


def test_the_system_may_read_in_small_pieces(
    fs: PosixFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)
    file.write_at(0, b"0123456789")
    pread, preadv = os.pread, os.preadv
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 3), at))
    monkeypatch.setattr(
        os, "preadv", lambda fd, buffers, at, *flags: preadv(fd, [buffers[0][:4]], at)
    )
    assert file.read_at(1, 100) == b"123456789"
    buffer = bytearray(12)
    assert file.read_into(0, memoryview(buffer)) == 10
    assert buffer == b"0123456789\0\0"


def test_a_disk_that_fills_up_is_no_space(
    fs: PosixFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)
    pwrite = os.pwrite
    calls = []

    def filling(fd: int, data: bytes, at: int) -> int:
        calls.append(at)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(fd, data[:4], at)

    monkeypatch.setattr(os, "pwrite", filling)
    with pytest.raises(NoSpace, match="write failed"):
        file.write_at(0, b"0123456789")
    assert calls == [0, 4]


def test_a_system_that_writes_nothing_is_an_error_not_a_loop(
    fs: PosixFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: 0)
    with pytest.raises(DiskError):
        file.write_at(0, b"x")


def test_bytes_that_are_not_cached_are_not_waited_for(
    fs: PosixFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)
    file.write_at(0, b"0123456789")
    buffer = memoryview(bytearray(8))
    preadv = os.preadv

    def cold(fd: int, buffers: list[memoryview], at: int, flags: int) -> int:
        raise BlockingIOError(errno.EAGAIN, "would block")

    monkeypatch.setattr(os, "preadv", cold)
    assert file.read_into_if_cached(0, buffer) is None
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, at, flags: 3)
    assert file.read_into_if_cached(0, buffer) is None, "a part is cached"
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, at, flags: preadv(fd, buffers, at))
    assert file.read_into_if_cached(6, buffer) == 4, "the end of the file"


def test_a_system_that_cannot_tell_is_asked_once(
    fs: PosixFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)
    file.write_at(0, b"0123456789")
    asked = []

    def refusing(fd: int, buffers: list[memoryview], at: int, flags: int) -> int:
        asked.append(at)
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "preadv", refusing)
    for _ in range(3):
        assert file.read_into_if_cached(0, memoryview(bytearray(4))) is None
    assert len(asked) == 1


def test_an_interrupted_replacement_leaves_the_old_file(
    fs: PosixFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.write_atomically(f"{tmp_path}/a", b"old")

    def failing(fd: int) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "fdatasync", failing)
    with pytest.raises(DiskError, match="sync failed"):
        fs.write_atomically(f"{tmp_path}/a", b"new")
    assert fs.read_bytes(f"{tmp_path}/a") == b"old"


def test_a_replacement_is_synced_before_its_name_and_the_name_after(
    fs: PosixFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []
    for name in ("fsync", "fdatasync"):
        call = getattr(os, name)

        def noting(fd: int, name: str = name, call: Callable[[int], None] = call) -> None:
            there = "new" if (tmp_path / "file").exists() else "old"
            asked.append((os.readlink(f"/proc/self/fd/{fd}"), there))
            call(fd)

        monkeypatch.setattr(os, name, noting)
    fs.write_atomically(str(tmp_path / "file"), b"data")

    assert asked == [(str(tmp_path / "file.tmp"), "old"), (str(tmp_path), "new")]


def test_a_lock_ends_with_its_holder_and_does_not_bind_threads_of_others(
    fs: PosixFileSystem, tmp_path: Path
) -> None:
    lock = fs.lock(f"{tmp_path}/.lock")
    with pytest.raises(DirectoryLocked):
        fs.lock(f"{tmp_path}/.lock")
    lock.release()
    lock.release()
    fs.lock(f"{tmp_path}/.lock").release()


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENOSPC, NoSpace), (errno.EDQUOT, NoSpace), (errno.ENOENT, FileMissing),
     (errno.EIO, DiskError), (errno.EROFS, DiskError)],
)  # fmt: skip
def test_errors_are_named_by_what_they_mean(number: int, expected: type[DiskError]) -> None:
    error = disk_error("/p", "write", OSError(number, os.strerror(number)))
    assert type(error) is expected
    assert (error.path, error.operation, error.errno) == ("/p", "write", number)
    assert os.strerror(number) in str(error)


def test_a_file_has_a_descriptor_to_send_from(fs: PosixFileSystem, tmp_path: Path) -> None:
    file = fs.open(f"{tmp_path}/a", create=True)
    assert isinstance(file, PosixFile)
    descriptor = file.fileno()
    assert descriptor is not None
    assert descriptor >= 0
    file.close()


def test_the_real_environment() -> None:
    env = real_env()
    assert env.clock.now_ms() > 1_600_000_000_000
    first = env.clock.monotonic()
    assert env.clock.monotonic() >= first
    assert 0 <= env.rng.uint64() < 2**64
    assert {env.rng.below(3) for _ in range(200)} == {0, 1, 2}
    assert env.rng.uuid() != env.rng.uuid()


def test_no_id_is_an_option_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """`horolog tokens renew -uxhE…` would be refused: such an id is drawn again."""
    drawn = iter([UUID(bytes=bytes([first]) + bytes(15)) for first in (0xF8, 0xFB, 0xF7, 0xFC)])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(drawn))
    rng = SystemRng()
    assert [kafka_uuid(rng.uuid())[0] for _ in range(2)] == ["9", "_"]
