"""The tokens of the HTTP port: in a file, a line each, read at start and on SIGHUP.

A line is `ROLE:TOKEN`, with a role of `caller.ROLES`; a token alone is an administrator's. Nobody
but the broker's user and group may read the file.
"""

import hmac
from typing import NamedTuple

from broker.http.port.caller import ROLES, Role
from config.errors import ConfigError
from storage.env import FileSystem
from storage.errors import DiskError

KEY = "horolog.http.token.file"
MIN_LENGTH = 16
MAX_TOKENS = 100


class Token(NamedTuple):
    """One line."""

    role: Role
    secret: bytes

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Token({self.role.name})"


Tokens = tuple[Token, ...]


class HttpTokens:
    """The tokens in force. Replaced by one assignment: a request meets the old or the new ones."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        """Nothing is read. An empty `path`: there is no token."""
        self._fs = fs
        self._path = path
        self.value: Tokens = ()

    def read(self) -> Tokens:
        """The tokens in the file; blocks, ConfigError. Valid once they are assigned."""
        if not self._path:
            return ()
        try:
            text = self._fs.read_text(self._path)
        except DiskError as error:
            advice = "put the tokens there, readable to the broker, or leave the setting out"
            raise ConfigError(KEY, f"{KEY}: {error}: {advice}") from error
        if self._fs.is_open_to_all(self._path):
            raise _refused(
                self._path,
                "every user of this machine can read or write it: chmod 600 the file (a mounted "
                "secret: defaultMode 0400), and put other tokens in",
            )
        return _parsed(self._path, text)

    def role_of(self, given: str) -> Role | None:
        """The role of a token, None when it is none of ours; in a time that tells nothing."""
        sent = given.encode("utf-8", "surrogateescape")
        found: Role | None = None
        for each in self.value:
            if hmac.compare_digest(sent, each.secret):
                found = each.role
        return found


def _parsed(path: str, text: str) -> Tokens:
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    found = tuple(_token(path, number, line) for number, line in lines if line)
    if not found:
        raise _refused(path, "there is no token in it")
    if len(found) > MAX_TOKENS:
        raise _refused(path, f"there are more than {MAX_TOKENS} tokens in it")
    if len({each.secret for each in found}) < len(found):
        raise _refused(path, "a token is there twice")
    return found


def _token(path: str, number: int, line: str) -> Token:
    """Quotes nothing of the line: it may be a secret."""
    word, colon, secret = line.partition(":")
    role = ROLES.get(word) if colon else Role.ADMIN
    if role is None:
        raise _refused(
            path,
            f"what is before the colon of line {number} is no role: {', '.join(ROLES)} (a token "
            "with a colon in it needs its role before it)",
        )
    token = secret if colon else line
    if len(token) < MIN_LENGTH or not (token.isascii() and token.isprintable()) or " " in token:
        raise _refused(
            path,
            f"line {number} must be a token, or ROLE:TOKEN, of at least {MIN_LENGTH} letters, "
            "digits and signs",
        )
    return Token(role, token.encode())


def _refused(path: str, reason: str) -> ConfigError:
    return ConfigError(KEY, f"{KEY}: {path}: {reason}")
