"""Small file systems of their own, to be filled up or made read-only. Needs root and Linux."""

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

BLOCK = b"\0" * 65536


class SmallDisk:
    """One mounted tmpfs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        """Takes every last byte, in one file."""
        with (self.path / "ballast").open("ab", buffering=0) as ballast:
            for size in (len(BLOCK), 4096, 512, 1):
                with contextlib.suppress(OSError):
                    while True:
                        ballast.write(BLOCK[:size])

    def free(self) -> None:
        """Gives it back."""
        (self.path / "ballast").unlink()

    def remount(self, *options: str) -> None:
        """Changes the options, for example to read-only."""
        joined = ",".join(("remount", *options))
        subprocess.run(["mount", "-o", joined, str(self.path)], check=True)


@contextlib.contextmanager
def tmpfs(path: Path, size: str = "24m") -> Iterator[SmallDisk]:
    """A file system of `size`; the test is skipped, with a notice, where we may not mount."""
    path.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)],
            capture_output=True,
            check=False,
        ).returncode
    )
    if not mounted:
        pytest.skip(f"mounting is not permitted here ({os.strerror(errno.EPERM)})")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=False)
