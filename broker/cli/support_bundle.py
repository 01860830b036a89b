"""Contents of a support bundle: facts about a broker, without secrets and without record data.

Each fact is one file of the archive. A fact that cannot be collected is replaced by the reason, so
a bundle of a broker that does not answer is useful, too. Sizes are bounded; every text is
redacted."""

import io
import json
import os
import platform
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from broker.cli.admin_client import AdminError, AdminPort, in_path
from broker.cli.redaction import Redactor
from config.errors import ConfigError

MAX_FILE_BYTES = 32 * 1024 * 1024
LOG_TAIL_BYTES = 1024 * 1024
MAX_TOPICS = 200
MAX_NAMES = 100_000
QUESTIONS = {
    "config.json": "/api/config",
    "clock.json": "/api/clock",
    "topics.json": "/api/topics",
    "groups.json": "/api/groups",
    "dirty.json": "/api/dirty",
    "scrub.json": "/api/scrub",
    "starts.json": "/api/starts",
}
TEXTS = {"metrics.txt": "/metrics", "readyz.txt": "/readyz?verbose"}
LIBRARIES = ("horolog", "uvloop", "aiohttp", "construct", "crc32c", "click", "rich")


class Bundle:
    """An archive that is being written."""

    def __init__(self, archive: tarfile.TarFile, top: str, redactor: Redactor) -> None:
        """`top` is the directory of all files."""
        self._archive = archive
        self._top = top
        self._redactor = redactor
        self.files = 0
        self.missing: list[str] = []
        """Facts that could not be collected, with the reason."""

    def add(self, name: str, make: Callable[[], str]) -> None:
        """One file; when its text cannot be had, the reason stands in its place."""
        try:
            text = make()
        except (AdminError, ConfigError, OSError, ValueError) as error:
            text = f"not to be had: {error}\n"
            self.missing.append(f"{name}: {error}")
        data = self._redactor.hide(text).encode()[:MAX_FILE_BYTES]
        entry = tarfile.TarInfo(f"{self._top}/{name}")
        entry.size, entry.mode = len(data), 0o600
        entry.mtime = datetime.now(UTC).timestamp()
        self._archive.addfile(entry, io.BytesIO(data))
        self.files += 1


@contextmanager
def written(path: Path, redactor: Redactor) -> Iterator[Bundle]:
    """A new archive (owner only); it is there when the block ends well. OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with (
            os.fdopen(descriptor, "wb") as file,
            tarfile.open(fileobj=file, mode="w:gz") as archive,
        ):
            yield Bundle(archive, path.name.removesuffix(".tar.gz"), redactor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def add_facts(bundle: Bundle, port: AdminPort) -> None:
    """Adds what a running broker reports about itself."""
    bundle.add("about.json", about)
    for name, path in QUESTIONS.items():
        bundle.add(name, lambda path=path: as_json(port.get(path)))  # type: ignore[misc]
    for name, path in TEXTS.items():
        bundle.add(name, lambda path=path: port.text(path))  # type: ignore[misc]
    for topic in _topics(port):
        where = f"/api/topics/{in_path(topic)}/segments"
        bundle.add(f"segments/{topic}.json", lambda where=where: as_json(port.get(where)))  # type: ignore[misc]


def about() -> str:
    """Versions and the machine."""
    return as_json(
        {
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {name: _version(name) for name in LIBRARIES},
            "python": platform.python_version(),
            "system": platform.platform(),
            "cpus": os.cpu_count(),
        }
    )


def log_tail(path: str) -> str:
    """The end of a log file. OSError."""
    with Path(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LOG_TAIL_BYTES))
        return file.read().decode(errors="replace")


def listing(directory: str) -> str:
    """Names, sizes and times of the files of a data directory; nothing of what is in them."""
    rows = []
    for parent, _, names in os.walk(directory):
        for name in sorted(names):
            path = Path(parent, name)
            stat = path.stat(follow_symlinks=False)
            when = datetime.fromtimestamp(stat.st_mtime, UTC).isoformat(timespec="seconds")
            rows.append(f"{when} {stat.st_size:>12} {path.relative_to(directory)}")
            if len(rows) >= MAX_NAMES:
                return "\n".join([*rows, "... and more"])
    return "\n".join(sorted(rows, key=lambda row: row.split(maxsplit=2)[2])) + "\n"


def settings(file: str | None) -> str:
    """The settings with their sources, as a broker started now would read them. ConfigError."""
    from config.sources import load
    from config.store import ConfigStore

    loaded = load(file=file)
    store = ConfigStore(loaded.layers)
    lines = [
        f"{entry.name} = {entry.value}    [{'default' if entry.is_default else entry.where}]"
        for entry in store.describe_broker()
    ]
    return "\n".join([*lines, *map(str, loaded.ignored)]) + "\n"


def as_json(content: object) -> str:
    """As people read it."""
    return json.dumps(content, indent=2) + "\n"


def _topics(port: AdminPort) -> list[str]:
    try:
        answer = port.get("/api/topics", limit=MAX_TOPICS)
    except AdminError:
        return []
    return [str(each["topic"]) for each in answer["topics"]]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
