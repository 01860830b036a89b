"""Files that settings of clients name: the settings themselves, stores and tokens."""

from broker.access.errors import BadSetting
from broker.access.settings import SECRETS
from config.properties import read_properties
from storage.errors import DiskError
from storage.posix import real_env

MAX_BYTES = 1 << 20


def read_file(key: str, path: str) -> bytes:
    """The bytes of a file that setting `key` names, up to `MAX_BYTES`. BadSetting."""
    try:
        file = real_env().fs.open(path, write=False)
        try:
            return file.read_at(0, MAX_BYTES)
        finally:
            file.close()
    except DiskError as error:
        raise BadSetting(f"{key}: {error}") from error


def read_text(key: str, path: str) -> str:
    """Likewise, as text."""
    try:
        return read_file(key, path).decode()
    except UnicodeDecodeError:
        raise BadSetting(f"{key}: {path} is not text in UTF-8") from None


def read_settings(path: str) -> dict[str, str]:
    """The settings in a file of Java's properties. BadSetting.

    A file with a password or a key must not be readable by every user of the machine.
    """
    text = read_text("the file of settings", path)
    try:
        found = {key: value for key, value, _ in read_properties(text)}
    except ValueError as error:
        raise BadSetting(
            f"{path}: {str(error).partition(':')[0]} is no line of properties"
        ) from None
    secrets = sorted(SECRETS & found.keys())
    if secrets and real_env().fs.is_open_to_all(path):
        raise BadSetting(
            f"{path}: every user of this machine can read {', '.join(secrets)}: chmod 600 {path}"
        )
    return found
