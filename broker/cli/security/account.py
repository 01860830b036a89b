"""Traces of commands that change a data directory: they are for the security audit."""

import os
import pwd
from collections.abc import Sequence

from broker.security.audit.lines import AdminChange
from broker.security.audit.offline import leave
from storage.env import Env


def leave_trace(
    env: Env, directory: str, command: str, operation: str, *, resource: str, detail: str
) -> None:
    """Tells the broker that starts next what a command has changed. Raises StorageError."""
    leave_traces(env, directory, command, [AdminChange(operation, resource, detail)])


def leave_traces(env: Env, directory: str, command: str, changes: Sequence[AdminChange]) -> None:
    """As `leave_trace`, for several changes."""
    leave(env, directory, _account(), command, changes)


def _account() -> str:
    """The account of the system that runs the command; behind sudo, with the one that asked."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    asked = os.environ.get("SUDO_USER", "")
    return f"{name} (sudo by {asked})" if asked else name
