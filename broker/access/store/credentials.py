"""Credentials of a profile, from the file that Amazon's tools keep them in.

All other sources are the library's: access keys in the environment, which come first, then web
identity, then a container's role; a profile is looked for after these, and an instance's role last.
"""

from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as NoSuchForm
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NotRequired, TypedDict

from broker.access.store.refusals import BadStoreSetting

KEEP = timedelta(minutes=5)
"""A file is read again after that long: keys in it are renewed by other programs."""
FIRST = (
    "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)  # fmt: skip
"""Variables that name other credentials: with one of them, no profile is looked for."""


class AccessKeys(TypedDict):
    """Keys in the library's own form."""

    access_key_id: str
    secret_access_key: str
    token: NotRequired[str | None]
    expires_at: datetime | None


class ProfileCredentials:
    """Access keys of one profile. Called by the library whenever those it has are too old."""

    def __init__(self, path: Path, profile: str) -> None:
        """Nothing is read."""
        self._path = path
        self._profile = profile

    def __call__(self) -> AccessKeys:
        """The keys as the file has them. BadStoreSetting."""
        keys = self._section()
        try:
            return {
                "access_key_id": keys["aws_access_key_id"],
                "secret_access_key": keys["aws_secret_access_key"],
                "token": keys.get("aws_session_token"),
                "expires_at": datetime.now(UTC) + KEEP,
            }
        except KeyError as missing:
            raise self._bad(f"has no {missing.args[0]}") from None

    def _section(self) -> Mapping[str, str]:
        parser = ConfigParser(interpolation=None, default_section="")
        try:
            parser.read_string(self._path.read_text())
        except (OSError, UnicodeDecodeError, NoSuchForm):  # the last one's text has lines of it
            raise BadStoreSetting(f"{self._path} cannot be read") from None
        if self._profile not in parser:
            raise self._bad("is not there")
        return parser[self._profile]

    def _bad(self, what: str) -> BadStoreSetting:
        return BadStoreSetting(f"{self._path}: profile {self._profile} {what}")


def profile_credentials(environment: Mapping[str, str]) -> ProfileCredentials | None:
    """Keys of the profile that the environment names, or of the default one where its file is.

    None: the library finds credentials without. BadStoreSetting for a profile without keys.
    """
    if any(environment.get(name) for name in FIRST) or _is_anonymous(environment):
        return None
    named = environment.get("AWS_PROFILE"), environment.get("AWS_SHARED_CREDENTIALS_FILE")
    path = Path(named[1] or "~/.aws/credentials").expanduser()
    if not any(named) and not path.exists():
        return None
    found = ProfileCredentials(path, named[0] or "default")
    found()
    return found


def _is_anonymous(environment: Mapping[str, str]) -> bool:
    return environment.get("AWS_SKIP_SIGNATURE", "").lower() in {"1", "true", "yes", "on", "y"}
