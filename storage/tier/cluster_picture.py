"""Pictures of the cluster in the store: what a restore needs beside the logs.

Each repeats files at the top of a data directory, as they are, and the identity of the broker.
Objects are read by more people than a directory is, so nothing secret goes into one: not the files
of users and tokens, and of the settings not the passwords and private keys (`read_files`). After a
restore these are set again. A picture is put under the next number, only where there is none; the
newest counts.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from storage.env import Clock, FileSystem
from storage.errors import CorruptCheckpoint
from storage.tier.names import CLUSTER, number_of, numbered
from storage.tier.port import ObjectStore
from storage.tier.sealed import opened, sealed
from storage.tier.single_writer import put_next

FORMAT = 1
TOPICS_FILE = "horolog-topics.json"
SETTINGS_FILE = "horolog-config.json"
FILES = (
    TOPICS_FILE,
    SETTINGS_FILE,
    "horolog-quotas.json",
    "horolog-acls.json",
    "horolog-producer-ids.json",
)
"""Files that a picture repeats, where they exist."""

Files = Mapping[str, str]
"""Text of files by name."""


class Content(NamedTuple):
    """Files and identity in a picture."""

    cluster_id: str
    node_id: int
    files: Files


class Picture(NamedTuple):
    """One picture."""

    number: int
    written_ms: int
    content: Content


def read_files(fs: FileSystem, log_dir: str, without_secrets: Callable[[str], str]) -> Files:
    """The files of a directory that a picture repeats. `without_secrets`: of the settings' text.

    Each file is replaced as a whole, so one that a broker changes meanwhile is the old or the new
    one. CorruptCheckpoint for one that is no text; DiskError.
    """
    found: dict[str, str] = {}
    for name in FILES:
        path = f"{log_dir}/{name}"
        if fs.exists(path):
            text = _text_of(path, fs.read_bytes(path))
            found[name] = without_secrets(text) if name == SETTINGS_FILE else text
    return found


def _text_of(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(path, f"it is no text: {error}") from error


class PictureWriter:
    """Puts pictures of one broker. One thread at a time; every call blocks."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        """Nothing is read."""
        self._store = store
        self._clock = clock
        self._pending: Picture | None = None
        self._newest: Picture | None = None
        self._is_loaded = False

    def write_if_changed(self, content: Content) -> bool:
        """Puts a picture unless the newest one shows the same; whether it did.

        StoreError: it may be there all the same, and the next call settles that first.
        WriterReplaced: another process puts pictures here, too. CorruptCheckpoint, NewerFormat for
        one that cannot be read; asked again, it may be.
        """
        self._settle()
        if not self._is_loaded:
            self._newest, self._is_loaded = newest(self._store), True
        before = self._newest
        if before is not None and before.content == content:
            return False
        number = 1 if before is None else before.number + 1
        self._pending = Picture(number, self._clock.now_ms(), content)
        self._settle()
        return True

    def _settle(self) -> None:
        """Finds out what became of the last put, if that is open."""
        if self._pending is None:
            return
        key, data = numbered(CLUSTER, self._pending.number), render(self._pending)
        put_next(self._store, key, data, parse)
        self._newest, self._pending = self._pending, None


def newest(store: ObjectStore, at_ms: int | None = None) -> Picture | None:
    """The newest picture, or that of a moment; None without one.

    `at_ms`: only those that were put until then. CorruptCheckpoint for one that is not what was
    put; NewerFormat, StoreError.
    """
    numbers = [number_of(each.key) for each in store.list(CLUSTER)]
    for number in sorted((each for each in numbers if each is not None), reverse=True):
        key = numbered(CLUSTER, number)
        picture = parse(key, store.get(key))
        if picture.number != number:
            raise CorruptCheckpoint(key, f"it is picture {picture.number}")
        if at_ms is None or picture.written_ms <= at_ms:
            return picture
    return None


def render(picture: Picture) -> bytes:
    """The object's bytes."""
    content = picture.content
    return sealed(
        {
            "format": FORMAT,
            "number": picture.number,
            "written_ms": picture.written_ms,
            "cluster_id": content.cluster_id,
            "node_id": content.node_id,
            "files": dict(content.files),
        }
    )


def parse(path: str, data: bytes) -> Picture:
    """Reads what `render` gave. CorruptCheckpoint, NewerFormat."""
    document = opened(path, data, FORMAT, "picture of a cluster")
    try:
        files = {name: str(text) for name, text in document["files"].items() if name in FILES}
        content = Content(str(document["cluster_id"]), int(document["node_id"]), files)
        return Picture(int(document["number"]), int(document["written_ms"]), content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptCheckpoint(path, f"no picture of a cluster: {error!r}") from error
