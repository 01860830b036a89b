"""Memory limit of the process: the least of the setting, its cgroup's limit and RAM.

A control group limits a process together with all groups above it, so each is asked on the way up;
version 2 has one tree, version 1 one for memory. Inside of a container the kernel may give the
host's path, and the tree begins at the container's: the root of the mount is read as well.
"""

import os
from collections.abc import Iterator

from storage.env import FileSystem
from storage.errors import StorageError

USABLE = 0.7
"""Of the limit: the rest is the interpreter, its libraries, and what no account can see."""
OWN_GROUPS = "/proc/self/cgroup"
TREE_OF_VERSION_2, TREE_OF_VERSION_1 = "/sys/fs/cgroup", "/sys/fs/cgroup/memory"
NO_LIMIT = 1 << 60
"""Version 1 has no word for it: a limit of about 2^63, in pages."""


def usable_memory(fs: FileSystem, setting_bytes: int) -> int:
    """Bytes that the account may give away; `setting_bytes` below 1 leaves it to the system."""
    limits = [ram_bytes(), *cgroup_limits(fs)]
    if setting_bytes > 0:
        limits.append(setting_bytes)
    return int(min(limits) * USABLE)


def ram_bytes() -> int:
    """Of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def cgroup_limits(fs: FileSystem) -> list[int]:
    """The limits of the process's control groups, in bytes; none where there are none."""
    found = []
    for path in _limit_files(_read(fs, OWN_GROUPS)):
        text = _read(fs, path).strip()
        if text.isdecimal() and 0 < int(text) < NO_LIMIT:
            found.append(int(text))
    return found


def _limit_files(groups: str) -> Iterator[str]:
    """`groups`: lines of hierarchy, controllers and path."""
    for line in groups.splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0" and not controllers:
            yield from _upwards(TREE_OF_VERSION_2, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _upwards(TREE_OF_VERSION_1, path, "memory.limit_in_bytes")


def _upwards(tree: str, path: str, name: str) -> Iterator[str]:
    parts = [part for part in path.split("/") if part not in {"", ".", ".."}]
    for depth in range(len(parts), -1, -1):
        yield "/".join((tree, *parts[:depth], name))


def _read(fs: FileSystem, path: str) -> str:
    try:
        return fs.read_text(path)
    except (StorageError, OSError):
        return ""
