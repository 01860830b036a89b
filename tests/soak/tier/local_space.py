"""The local space of the run: a file system of its own, or a directory that is measured."""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

LOOK_SECONDS = 0.05


class LocalSpace(NamedTuple):
    """A place for the data directory and the cache beside it."""

    path: Path
    is_own: bool
    """True when it is a file system that has no more than the limit."""
    used_bytes: Callable[[], int]


@contextmanager
def local_space(scratch: Path, size_bytes: int) -> Iterator[LocalSpace]:
    """An ext4 of that size in a file, where root may mount one; else a directory."""
    place = scratch / "local"
    place.mkdir()
    if not _mount(scratch / "local.ext4", place, size_bytes):
        yield LocalSpace(place, False, lambda: _bytes_below(place))
        return
    try:
        empty = _used(place)
        yield LocalSpace(place, True, lambda: _used(place) - empty)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def _mount(image: Path, place: Path, size_bytes: int) -> bool:
    if os.geteuid():
        return False
    with image.open("wb") as file:
        file.truncate(size_bytes)
    commands = (
        ["mkfs.ext4", "-q", "-F", "-m", "0", str(image)],
        ["mount", "-o", "loop", str(image), str(place)],
    )
    try:
        return all(
            not subprocess.run(each, capture_output=True, check=False).returncode
            for each in commands
        )
    except FileNotFoundError:
        return False


def _used(place: Path) -> int:
    """Bytes that the file system has given away."""
    facts = os.statvfs(place)
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize


def _bytes_below(place: Path) -> int:
    """Bytes of blocks of all files, as far as they stay while they are counted."""
    total = 0
    for folder, _, names in os.walk(place):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
    return total


@contextmanager
def peak_of(used_bytes: Callable[[], int]) -> Iterator[list[int]]:
    """The most bytes that were used meanwhile, in the one element of a list."""
    most, ended = [used_bytes()], threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            most[0] = max(most[0], used_bytes())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()
