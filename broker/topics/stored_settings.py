"""Settings stored at run time: shown and taken back while no broker runs, and without secrets.

Works on the text of the file without parsing values: the command exists for values that this
version refuses.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from config.errors import ConfigError
from config.names import broker_name
from config.sealed_json import KEY, WrongChecksum, check_seal, sealed
from storage.env import FileSystem
from storage.errors import DirectoryLocked
from storage.files.layout import LOCK_FILE

FILE_NAME = "horolog-config.json"
Place = tuple[str, str]


def stored_lines(fs: FileSystem, directory: str) -> str:
    """The stored settings, one a line, and whether their checksum is wrong.

    ConfigError when the file cannot be read.
    """
    content = _read(fs, directory)
    lines = [
        f"{_where(place)}{name} = {_shown(name, text)}\n"
        for place, settings in _places(content)
        for name, text in settings.items()
    ]
    try:
        check_seal(content)
    except WrongChecksum as error:
        lines.append(f"{directory}/{FILE_NAME}: {error}\n")
    return "".join(lines) or f"{directory}: clients have set nothing\n"


def unset_key(fs: FileSystem, directory: str, key: str, topic: str | None) -> str:
    """Takes back `key` of the broker, for this and for every node, or of a topic; durable.

    ConfigError when a broker is running there, nobody has set the key, or the file's checksum is
    wrong: a new one would vouch for the rest.
    """
    with _held(fs, directory):
        content = _sound(fs, directory)
        removed = [
            f"{_where(place)}{key} = {_shown(key, settings.pop(key))} is taken back\n"
            for place, settings in _places(content)
            if key in settings and (place == ("topics", topic) if topic else place[0] == "brokers")
        ]
        if not removed:
            stored = stored_lines(fs, directory)
            raise ConfigError(
                key, f"{key} is not stored in {directory}; what is:\n{stored}".rstrip()
            )
        fs.write_atomically(f"{directory}/{FILE_NAME}", _text_of(content).encode())
    return "".join(removed)


def without_secrets(text: str) -> str:
    """The stored settings without passwords and private keys; the same text where it has none.

    ConfigError when the text cannot be read, or its checksum is wrong: a new one would vouch for
    the rest.
    """
    content = _object(FILE_NAME, text)
    _check_seal(FILE_NAME, content)
    secrets = [
        (settings, name)
        for _, settings in _places(content)
        for name in settings
        if _is_secret(name)
    ]
    for settings, name in secrets:
        del settings[name]
    return _text_of(content) if secrets else text


@contextmanager
def _held(fs: FileSystem, directory: str) -> Iterator[None]:
    """The directory, while nobody else has it."""
    if not fs.exists(f"{directory}/{FILE_NAME}"):
        raise ConfigError("", f"{directory} holds no settings: --data-dir names the directory")
    try:
        lock = fs.lock(f"{directory}/{LOCK_FILE}")
    except DirectoryLocked as error:
        raise ConfigError(
            "", f"{directory} is in use: stop the broker, or ask it with kafka-configs --delete"
        ) from error
    try:
        yield
    finally:
        lock.release()


def _read(fs: FileSystem, directory: str) -> dict[str, Any]:
    path = f"{directory}/{FILE_NAME}"
    if not fs.exists(path):
        return {}
    return _object(path, fs.read_text(path))


def _object(path: str, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError("", f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError("", f"{path} cannot be read: it holds no object")
    return content


def _sound(fs: FileSystem, directory: str) -> dict[str, Any]:
    content = _read(fs, directory)
    _check_seal(f"{directory}/{FILE_NAME}", content)
    return content


def _check_seal(path: str, content: dict[str, Any]) -> None:
    try:
        check_seal(content)
    except WrongChecksum as error:
        raise ConfigError(KEY, str(error), where=path) from error


def _text_of(content: dict[str, Any]) -> str:
    content = sealed(content) if KEY in content else content
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _places(content: dict[str, Any]) -> Iterator[tuple[Place, dict[str, Any]]]:
    for kind in ("brokers", "topics"):
        of_kind = content.get(kind)
        for name, settings in (of_kind if isinstance(of_kind, dict) else {}).items():
            if isinstance(settings, dict):
                yield (kind, name), settings


def _shown(name: str, text: object) -> object:
    """A value; of a private key or a password that it is hidden."""
    return "[hidden]" if _is_secret(name) else text


def _is_secret(name: str) -> bool:
    """True for settings whose values are shown to nobody."""
    try:
        keys = broker_name(name).keys
    except ConfigError:
        return False  # a topic's, or one that the next start refuses
    return any(key.sensitive for key in keys)


def _where(place: Place) -> str:
    kind, name = place
    if kind == "topics":
        return f"topic {name}: "
    return f"broker {name}: " if name else "every broker: "
