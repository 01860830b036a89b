"""Settings stored at run time, shown and taken back while no broker runs.

Works on the text of the file without parsing values: the command exists for values that this
version refuses.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from config.errors import ConfigError
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
        f"{_where(place)}{name} = {text}\n"
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
            f"{_where(place)}{key} = {settings.pop(key)} is taken back\n"
            for place, settings in _places(content)
            if key in settings and (place == ("topics", topic) if topic else place[0] == "brokers")
        ]
        if not removed:
            stored = stored_lines(fs, directory)
            raise ConfigError(
                key, f"{key} is not stored in {directory}; what is:\n{stored}".rstrip()
            )
        text = json.dumps(_resealed(content), indent=1, sort_keys=True) + "\n"
        fs.write_atomically(f"{directory}/{FILE_NAME}", text.encode())
    return "".join(removed)


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
    try:
        content = json.loads(fs.read_text(path))
    except (ValueError, RecursionError) as error:
        raise ConfigError("", f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError("", f"{path} cannot be read: it holds no object")
    return content


def _sound(fs: FileSystem, directory: str) -> dict[str, Any]:
    content = _read(fs, directory)
    try:
        check_seal(content)
    except WrongChecksum as error:
        raise ConfigError(KEY, str(error), where=f"{directory}/{FILE_NAME}") from error
    return content


def _resealed(content: dict[str, Any]) -> dict[str, Any]:
    return sealed(content) if KEY in content else content


def _places(content: dict[str, Any]) -> Iterator[tuple[Place, dict[str, Any]]]:
    for kind in ("brokers", "topics"):
        of_kind = content.get(kind)
        for name, settings in (of_kind if isinstance(of_kind, dict) else {}).items():
            if isinstance(settings, dict):
                yield (kind, name), settings


def _where(place: Place) -> str:
    kind, name = place
    if kind == "topics":
        return f"topic {name}: "
    return f"broker {name}: " if name else "every broker: "
