"""A real file system whose power can be cut: ext4 or XFS on a loop image, and the forced shutdown.

The file system's own call (`shutdown` without a flush of its journal) makes every later write fail
and forgets what was not forced to the image; unmounting and mounting replays the journal, as after
a power cut. Needs root and loop devices.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHUT_DOWN = 0x8004587D  # XFS_IOC_GOINGDOWN, and ext4's EXT4_IOC_SHUTDOWN
WITHOUT_LOG_FLUSH = 2
IMAGE_BYTES = 512 << 20  # sparse; mkfs.xfs takes no less than 300 MiB
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F", "-m", "0"], "xfs": ["mkfs.xfs", "-q", "-f"]}
UNMOUNT_SECONDS = 30


def why_not(kind: str) -> str | None:
    """The reason why no power can be cut here; None if it can."""
    if os.geteuid() != 0:
        return "needs root, to mount images"
    if shutil.which(MAKE[kind][0]) is None:
        return f"{MAKE[kind][0]} is not installed"
    if not Path("/dev/loop-control").exists():
        return "no loop devices"
    return None


class PoweredDisk:
    """One mounted image."""

    def __init__(self, folder: Path, kind: str) -> None:
        """Make the file system in a new image below `folder` and mount it."""
        self.kind = kind
        self._image = folder / f"{kind}.img"
        self.path = folder / kind
        self.path.mkdir()
        with self._image.open("wb") as image:
            image.truncate(IMAGE_BYTES)
        subprocess.run([*MAKE[kind], str(self._image)], check=True)
        self._mount()

    def cut(self) -> None:
        """The power goes: what no sync has forced to the image is lost, later writes fail."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUT_DOWN, struct.pack("I", WITHOUT_LOG_FLUSH))
        finally:
            os.close(descriptor)

    def power_up(self) -> None:
        """Mount again what the cut left; nobody may have a file of it open."""
        self.unmount()
        self._mount()

    def unmount(self) -> None:
        """Let the image go; waits for those who have just ended."""
        until = time.monotonic() + UNMOUNT_SECONDS
        while subprocess.run(
            ["umount", str(self.path)], capture_output=True, check=False
        ).returncode:
            assert time.monotonic() < until, f"{self.path} stays busy"
            time.sleep(0.05)

    def _mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self._image), str(self.path)], check=True)


@contextmanager
def powered_disk(kind: str) -> Iterator[PoweredDisk]:
    """A disk that goes with the block; in memory where the machine has such a file system."""
    memory = "/dev/shm"
    folder = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    try:
        disk = PoweredDisk(folder, kind)
        try:
            yield disk
        finally:
            disk.unmount()
    finally:
        shutil.rmtree(folder)
