"""The secret that changes through the HTTP port ask for: read from a file, at start."""

from config.errors import ConfigError
from storage.env import FileSystem
from storage.errors import DiskError

KEY = "horolog.http.token.file"
MIN_LENGTH = 16


def read_token(fs: FileSystem, path: str) -> str | None:
    """The token in the file, blanks around it aside; None when no file is named.

    ConfigError when it cannot be read, or holds no printable text of at least 16 characters.
    """
    if not path:
        return None
    try:
        token = fs.read_text(path).strip()
    except DiskError as error:
        raise ConfigError(KEY, f"{KEY}: {error}") from error
    if len(token) < MIN_LENGTH or not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(
            KEY,
            f"{KEY}: {path} must hold one line of at least {MIN_LENGTH} letters, digits and signs",
        )
    return token
