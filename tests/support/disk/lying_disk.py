"""A real ext4 or XFS whose next writes to one file fail on request. Needs root and Linux.

The file system is in a file on a small tmpfs. Room is reserved for the file, the place of that
room is punched out of the image, and the tmpfs is filled up: writes that go there come to nothing.
"""

import contextlib
import ctypes
import fcntl
import gc
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.disk.mounts import SmallDisk, tmpfs

IMAGE_BYTES = 320 << 20
ROOM_BYTES = 1 << 20
KEEP_SIZE, PUNCH_HOLE = 1, 2
FIEMAP = 0xC020660B
EXTENT_BYTES = 56
GOING_DOWN, NO_LOG_FLUSH = 0x8004587D, 2
MAKE = {
    "ext4": ("-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
    "xfs": ("-K",),
}


class LyingDisk:
    """The mounted file system at `path`."""

    def __init__(self, kind: str, holder: SmallDisk, path: Path) -> None:
        self.path = path
        self._kind = kind
        self._holder = holder
        self._image = holder.path / "image"

    def make(self) -> None:
        """Make and mount it."""
        with self._image.open("wb") as image:
            os.posix_fallocate(image.fileno(), 0, IMAGE_BYTES)
        _run(f"mkfs.{self._kind}", "-q", *MAKE[self._kind], str(self._image))
        with self._image.open("r+b") as image:
            os.posix_fallocate(image.fileno(), 0, IMAGE_BYTES)
        self.path.mkdir()
        self._mount()

    def let_writes_fail(self, path: str) -> None:
        """Makes writes behind the end of that file fail from now on.

        The end must be a page's: of a write that begins well a loop device says that it went well.
        """
        with Path(path).open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            assert not end % 4096
            _fallocate(file.fileno(), KEEP_SIZE, end, ROOM_BYTES)
            os.fsync(file.fileno())
            with self._image.open("r+b") as image:
                for logical, physical, size in _extents(file.fileno()):
                    skip = max(0, end - logical)
                    if skip < size:
                        _fallocate(
                            image.fileno(), KEEP_SIZE | PUNCH_HOLE, physical + skip, size - skip
                        )
        self._holder.fill()

    def heal(self) -> None:
        """All writes come through again."""
        self._holder.free()

    def cut_power(self) -> None:
        """Nothing more reaches the disk, not even from the cache; mounted again after."""
        with contextlib.closing(_Directory(self.path)) as directory:
            fcntl.ioctl(directory.fd, GOING_DOWN, struct.pack("=I", NO_LOG_FLUSH))
        gc.collect()  # files close when nobody holds them
        _run("umount", str(self.path))
        self._mount()

    def _mount(self) -> None:
        _run("mount", "-t", self._kind, "-o", "loop", str(self._image), str(self.path))

    def unmount(self) -> None:
        """Take it away, with its loop device."""
        gc.collect()
        subprocess.run(["umount", "-l", str(self.path)], check=False, capture_output=True)


class _Directory:
    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_RDONLY)

    def close(self) -> None:
        os.close(self.fd)


@contextlib.contextmanager
def lying_disk(tmp_path: Path, kind: str) -> Iterator[LyingDisk]:
    """An `ext4` or `xfs`; the test is skipped, with a notice, where it cannot be made."""
    with tmpfs(tmp_path / "holder", "400m") as holder:
        disk = LyingDisk(kind, holder, tmp_path / "disk")
        try:
            disk.make()
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no {kind} can be made and mounted here ({error})")
        try:
            yield disk
        finally:
            disk.unmount()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _fallocate(fd: int, mode: int, position: int, size: int) -> None:
    call = ctypes.CDLL(None, use_errno=True).fallocate
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if call(fd, mode, position, size):
        raise OSError(ctypes.get_errno(), "fallocate")


def _extents(fd: int) -> list[tuple[int, int, int]]:
    """Extents: position in the file, position on the disk, bytes."""
    question = struct.pack("=QQLLLL", 0, 2**64 - 1, 0, 0, 64, 0) + bytes(EXTENT_BYTES * 64)
    answer = bytearray(question)
    fcntl.ioctl(fd, FIEMAP, answer)
    (count,) = struct.unpack_from("=L", answer, 20)
    return [struct.unpack_from("=QQQ", answer, 32 + EXTENT_BYTES * each) for each in range(count)]
