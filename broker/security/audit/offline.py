"""Changes that commands make while no broker runs: kept in the data directory until one starts.

`horolog-audit.jsonl`, for its owner only, has lines as the security audit has them. The broker that
starts next takes them into its audit, then removes the file.
"""

from typing import TYPE_CHECKING

from broker.security.audit.lines import ADMIN_CHANGE, AdminChange, AuditLine, Who

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.env import Env, FileSystem

FILE_NAME = "horolog-audit.jsonl"
MAX_BYTES = 64 << 20


def leave(
    env: "Env", directory: str, account: str, api: str, changes: "Sequence[AdminChange]"
) -> None:
    """Adds lines; `account` is the system's user that runs the command. Raises StorageError."""
    path, now_ms = f"{directory}/{FILE_NAME}", env.clock.now_ms()
    text = env.fs.read_text(path) if env.fs.exists(path) else ""
    who = Who("", "", "CLI", f"System:{account}")
    for each in changes:
        line = AuditLine(
            ADMIN_CHANGE, who, api, each.operation, each.resource, each.outcome, detail=each.detail
        )
        text += f"{line.text(now_ms)}\n"
    if len(text) > MAX_BYTES:
        text = text[-MAX_BYTES:].partition("\n")[2]
    env.fs.write_atomically(path, text.encode())


def left(fs: "FileSystem", directory: str) -> list[str]:
    """The lines, in their order; blocks."""
    path = f"{directory}/{FILE_NAME}"
    return fs.read_text(path).splitlines() if fs.exists(path) else []


def forget(fs: "FileSystem", directory: str) -> None:
    """They are in the audit; blocks."""
    fs.remove(f"{directory}/{FILE_NAME}")
