"""Refusals of a start: exit status and advice, in one line each.

The statuses are those of `broker.cli.main`. A text ends with advice, because it is read by an
operator whose broker does not run.
"""

import errno
from typing import NamedTuple

from broker.runtime.exit_status import BAD_SETTINGS, CORRUPT, NOT_USABLE, WRONG_CLOCK
from broker.server.server import ListenError
from config.errors import ConfigError
from storage.env import Clock
from storage.errors import (
    CorruptCheckpoint,
    CorruptLog,
    DirectoryLocked,
    DiskError,
    NewerFormat,
    StorageError,
)

EARLIEST_MS = 1_767_225_600_000
"""The begin of 2026: this program did not exist before, so an earlier clock is wrong."""


class WrongClock(Exception):  # noqa: N818 - the state it found
    """The machine's clock shows a time that cannot be."""


class Refusal(NamedTuple):
    """End of the process. `advice` is empty where the error's own text has advice."""

    status: int
    advice: str


def check_clock(clock: Clock) -> None:
    """WrongClock at a time before this program was written: every record would be dated wrong."""
    now_ms = clock.now_ms()
    if now_ms < EARLIEST_MS:
        from config.quantities import iso

        raise WrongClock(f"the clock of this machine says {iso(now_ms) or now_ms}")


def refusal_of(error: Exception) -> Refusal:
    """The refusal for an error at the start."""
    match error:
        case ConfigError():
            return Refusal(BAD_SETTINGS, "")
        case ListenError():
            return Refusal(NOT_USABLE, _LISTEN.get(error.errno, _ANOTHER_ADDRESS))
        case WrongClock():
            return Refusal(WRONG_CLOCK, "set it (NTP does that), then start again")
        case CorruptLog():
            return Refusal(CORRUPT, "horolog verify DIRECTORY tells how much is damaged")
        case StorageError():
            return Refusal(NOT_USABLE, _advice_of_storage(error))
    return Refusal(NOT_USABLE, "")


def _advice_of_storage(error: StorageError) -> str:
    match error:
        case DirectoryLocked():
            return "stop the other broker, or give this one a directory of its own (log.dirs)"
        case NewerFormat():
            return "start the version that wrote it, or a newer one"
        case CorruptCheckpoint():
            return "bring the file back from a backup, or move it away if it can be rebuilt"
        case DiskError():
            return _DISK.get(error.errno, "look at the disk, and at the system's log")
    return "give the broker another directory (log.dirs), or the settings that belong to this one"


_ANOTHER_ADDRESS = "choose another address (--listen, --http, listeners)"
_LISTEN = {
    errno.EADDRINUSE: f"another program has that port: stop it, or {_ANOTHER_ADDRESS}",
    errno.EADDRNOTAVAIL: f"this machine has no such address: {_ANOTHER_ADDRESS}",
    errno.EACCES: f"this user may not take that port: {_ANOTHER_ADDRESS} with a port above 1023",
}
_OTHER_USER = (
    "the user that runs the broker must be able to write there (chown), or choose log.dirs"
)
_DISK = {
    errno.EACCES: _OTHER_USER,
    errno.EPERM: _OTHER_USER,
    errno.EROFS: "mount it writable, or choose another directory (log.dirs)",
    errno.ENOSPC: "make room on the disk: nothing can be started without a few blocks",
    errno.EDQUOT: "make room in the quota: nothing can be started without a few blocks",
    errno.ENOTDIR: "a file is in the way: choose another directory (log.dirs)",
    errno.EMFILE: "allow more open files (ulimit -n)",
}
