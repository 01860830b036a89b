"""The secret that changes through the HTTP port ask for: in a file, read at start and on SIGHUP."""

from broker.runtime.event_log import event
from config.errors import ConfigError
from storage.env import FileSystem
from storage.errors import DiskError

KEY = "horolog.http.token.file"
MIN_LENGTH = 16


class HttpToken:
    """The token in force. Replaced by one assignment, so a request meets the old or the new one."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        """Nothing is read. An empty `path`: there is no token."""
        self._fs = fs
        self._path = path
        self.value: str | None = None

    def read(self) -> str | None:
        """The token in the file; blocks, ConfigError. Valid once it is assigned.

        Reports a file that every user may read: any account here could administrate.
        """
        token = _read(self._fs, self._path)
        if token is not None and self._fs.is_open_to_all(self._path):
            event("http_token_exposed", "warning", path=self._path)
        return token


def _read(fs: FileSystem, path: str) -> str | None:
    """The token in the file, blanks around it aside; None when no file is named.

    ConfigError when it cannot be read, or holds no printable text of at least 16 characters.
    """
    if not path:
        return None
    try:
        token = fs.read_text(path).strip()
    except DiskError as error:
        remedy = "put the token there, readable to the broker, or leave the setting out"
        raise ConfigError(KEY, f"{KEY}: {error}: {remedy}") from error
    if len(token) < MIN_LENGTH or not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(
            KEY,
            f"{KEY}: {path} must hold one line of at least {MIN_LENGTH} letters, digits and signs",
        )
    return token
