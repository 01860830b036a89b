"""`horolog-users.json`: credentials of users, at the top of the data directory, for its owner only.

Written as a whole and atomically before a change is answered. `secret` makes the answers to
unknown users. Binary values are base64:

    {"format": 1, "secret": "...", "users": [{"name": "alice", "mechanism": "SCRAM-SHA-256",
     "salt": "...", "iterations": 4096, "stored_key": "...", "server_key": "..."}],
     "checksum": "0c4e7f21"}
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from broker.security.credentials import BY_SASL_NAME, Credential, CredentialKey
from config.sealed_json import check_seal, sealed
from storage.errors import CorruptCheckpoint, NewerFormat

if TYPE_CHECKING:
    from storage.env import FileSystem, Rng

FILE_NAME = "horolog-users.json"
FORMAT = 1
MIN_SECRET_BYTES = 16
SECRET_NUMBERS = 4  # of 64 bits


@dataclass(frozen=True, slots=True)
class UserTable:
    """The content of the file."""

    secret: bytes = field(repr=False)
    rows: dict[CredentialKey, Credential]

    def with_rows(self, rows: Mapping[CredentialKey, Credential]) -> "UserTable":
        """The same with other users."""
        return UserTable(self.secret, dict(rows))


class UsersFile:
    """The file of one data directory. Its calls block."""

    def __init__(self, fs: "FileSystem", directory: str, rng: "Rng") -> None:
        """Touches nothing."""
        self._fs = fs
        self._path = f"{directory}/{FILE_NAME}"
        secret = b"".join(rng.uint64().to_bytes(8, "big") for _ in range(SECRET_NUMBERS))
        self.empty = UserTable(secret, {})
        """The table of a directory without the file."""

    def read(self) -> UserTable:
        """The users. Raises CorruptCheckpoint or NewerFormat when they cannot be trusted."""
        fs, path = self._fs, self._path
        return parse(path, fs.read_text(path)) if fs.exists(path) else self.empty

    def write(self, table: UserTable) -> None:
        """Durable when it returns. Raises StorageError."""
        self._fs.write_atomically(self._path, render(table))


def render(table: UserTable) -> bytes:
    """The file's bytes."""
    document = {
        "format": FORMAT,
        "secret": _text(table.secret),
        "users": [_written(key, each) for key, each in table.rows.items()],
    }
    return (json.dumps(sealed(document), indent=1) + "\n").encode()


def parse(path: str, text: str) -> UserTable:
    """Reads what `render` wrote.

    Raises CorruptCheckpoint or NewerFormat: users that were added must not silently be gone.
    """
    try:
        document: Any = json.loads(text)
        number = document["format"]
        if number == FORMAT:
            check_seal(document)
            return _table(document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptCheckpoint(path, f"users cannot be read: {error}") from error
    raise NewerFormat(path, f"has format {number}, this version reads {FORMAT}")


def _table(document: Any) -> UserTable:
    secret = _bytes(document["secret"])
    if len(secret) < MIN_SECRET_BYTES:
        raise ValueError("the secret is too short")
    rows = dict(map(_row, document["users"]))
    if len(rows) < len(document["users"]):
        raise ValueError("a user is named twice")
    return UserTable(secret, rows)


def _written(key: CredentialKey, credential: Credential) -> dict[str, object]:
    return {
        "name": key.user,
        "mechanism": key.mechanism.sasl_name,
        "salt": _text(credential.salt),
        "iterations": credential.iterations,
        "stored_key": _text(credential.stored_key),
        "server_key": _text(credential.server_key),
    }


def _row(row: Any) -> tuple[CredentialKey, Credential]:
    mechanism, name, iterations = BY_SASL_NAME[row["mechanism"]], row["name"], row["iterations"]
    if not isinstance(name, str) or not name:
        raise ValueError("a user has no name")
    if not isinstance(iterations, int) or iterations < 1:
        raise ValueError(f"{name}: iterations are {iterations!r}")
    stored_key, server_key = _bytes(row["stored_key"]), _bytes(row["server_key"])
    if {len(stored_key), len(server_key)} != {mechanism.key_bytes}:
        raise ValueError(f"{name}: a key has the wrong length")
    credential = Credential(_bytes(row["salt"]), iterations, stored_key, server_key)
    return CredentialKey(name, mechanism), credential


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
