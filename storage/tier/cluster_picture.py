"""Pictures of the cluster in the store: what a restore needs beside the logs.

Each repeats files at the top of a data directory, as they are, and the identity of the broker.
Objects are read by more people than a directory is, so nothing secret goes into one: not the files
of users and tokens, and of the settings not the passwords and private keys (`read_files`). After a
restore these are set again. Those of a back-up have the file of users, unless that is left out. A
picture is put under the next number, only where there is none; the newest counts.

A back-up puts its picture last: it counts with the manifests that are not later than it, and with
no later ones, whatever a back-up that was cut off has put behind it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from storage.env import Clock, FileSystem
from storage.errors import CorruptCheckpoint
from storage.tier.names import CLUSTER, number_of, numbered
from storage.tier.port import ObjectFacts, ObjectStore
from storage.tier.sealed import opened, sealed
from storage.tier.single_writer import LatePut, SingleWriter

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
USERS_FILE = "horolog-users.json"
"""Credentials that log-ins are compared with: in pictures of back-ups alone."""

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
    began_ms: int | None = None
    """Of a back-up: all that was durable by then is in it. None: it is a tier's."""


def read_files(
    fs: FileSystem,
    log_dir: str,
    without_secrets: Callable[[str], str],
    names: Sequence[str] = FILES,
) -> Files:
    """The files of a directory that a picture repeats. `without_secrets`: of the settings' text.

    Each file is replaced as a whole, so one that a broker changes meanwhile is the old or the new
    one. CorruptCheckpoint for one that is no text; DiskError.
    """
    found: dict[str, str] = {}
    for name in names:
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
        self._writer = SingleWriter(store)
        self._pending: Picture | None = None
        self._newest: Picture | None = None
        self._is_loaded = False

    def write_if_changed(self, content: Content) -> bool:
        """Puts a picture unless the newest one shows the same; whether it did.

        StoreError: it may be there all the same, and the next call settles that first. LatePut:
        one of an earlier process came first, the next call looks at it. WriterReplaced: another
        process puts pictures here, too. CorruptCheckpoint, NewerFormat for one that cannot be
        read; asked again, it may be.
        """
        before = self._load()
        is_ours = before is not None and before.began_ms is None
        if is_ours and before is not None and before.content == content:
            return False
        self._put(content, None)
        return True

    def write_backup(self, content: Content, began_ms: int) -> Picture:
        """Puts the picture of a back-up that is complete. As `write_if_changed`."""
        self._load()
        self._put(content, began_ms)
        assert self._newest is not None
        return self._newest

    def _load(self) -> Picture | None:
        self._settle()
        if not self._is_loaded:
            self._newest, self._is_loaded = newest(self._store), True
        return self._newest

    def _put(self, content: Content, began_ms: int | None) -> None:
        number = 1 if self._newest is None else self._newest.number + 1
        self._pending = Picture(number, self._clock.now_ms(), content, began_ms)
        self._settle()

    def _settle(self) -> None:
        """Finds out what became of the last put, if that is open."""
        if self._pending is None:
            return
        key, data = numbered(CLUSTER, self._pending.number), render(self._pending)
        try:
            self._writer.put(key, data, parse)
        except LatePut:
            self._pending, self._is_loaded = None, False
            raise
        self._newest, self._pending = self._pending, None


def newest(store: ObjectStore, at_ms: int | None = None) -> Picture | None:
    """The newest picture, or that of a moment; None without one.

    `at_ms`: only those that were put until then. CorruptCheckpoint for one that is not what was
    put; NewerFormat, StoreError.
    """
    found = pictures(store)
    return next((each for each in found if at_ms is None or each.written_ms <= at_ms), None)


def pictures(store: ObjectStore) -> Iterator[Picture]:
    """All pictures, the newest first, each read when it is asked for. As `newest`."""
    numbers = [number_of(each.key) for each in store.list(CLUSTER)]
    for number in sorted((each for each in numbers if each is not None), reverse=True):
        key = numbered(CLUSTER, number)
        picture = parse(key, store.get(key))
        if picture.number != number:
            raise CorruptCheckpoint(key, f"it is picture {picture.number}")
        yield picture


def past_pictures(
    store: ObjectStore, found: Sequence[ObjectFacts], put_before_ms: int
) -> list[ObjectFacts]:
    """Those among some pictures that come before the last one from back then.

    `put_before_ms`, ms by the store: every moment since then has its picture. Empty where the last
    one has a later time in it, so that an earlier one may count. As `newest`.
    """
    numbered_ones = ((number_of(each.key) or 0, each) for each in found)
    old = sorted(each for each in numbered_ones if each[1].modified_ms <= put_before_ms)
    if len(old) < 2:
        return []
    last = old[-1][1].key
    is_of_then = parse(last, store.get(last)).written_ms <= put_before_ms
    return [each for _, each in old[:-1]] if is_of_then else []


def render(picture: Picture) -> bytes:
    """The object's bytes."""
    content = picture.content
    document = {
        "format": FORMAT,
        "number": picture.number,
        "written_ms": picture.written_ms,
        "cluster_id": content.cluster_id,
        "node_id": content.node_id,
        "files": dict(content.files),
    }
    if picture.began_ms is not None:
        document["backup_began_ms"] = picture.began_ms
    return sealed(document)


def parse(path: str, data: bytes) -> Picture:
    """Reads what `render` gave. CorruptCheckpoint, NewerFormat."""
    document = opened(path, data, FORMAT, "picture of a cluster")
    try:
        files = {name: str(text) for name, text in document["files"].items() if name in _KNOWN}
        content = Content(str(document["cluster_id"]), int(document["node_id"]), files)
        began_ms = document.get("backup_began_ms")
        return Picture(
            int(document["number"]),
            int(document["written_ms"]),
            content,
            None if began_ms is None else int(began_ms),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptCheckpoint(path, f"no picture of a cluster: {error!r}") from error


_KNOWN = frozenset((*FILES, USERS_FILE))
