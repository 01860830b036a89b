"""Identity of a directory: `meta.properties`, `partition.metadata`, the clean-shutdown mark.

Formats of Kafka 4 (semantics.md 9.1, 9.2), byte for byte. `meta.properties` is a Java properties
file: comments, the date of writing, `key=value` lines with Java's escapes.
"""

from typing import NamedTuple
from uuid import UUID

from storage.env import FileSystem
from storage.errors import CorruptCheckpoint, FileMissing, NewerFormat

_KEYS = {"version", "node.id", "broker.id", "cluster.id", "directory.id"}
_LATEST_VERSION = 1
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = str.maketrans({c: f"\\{c}" for c in "\\:=#!"})


class MetaProperties(NamedTuple):
    """The identity of a data directory. None: an older Kafka did not write it."""

    cluster_id: str | None
    node_id: int | None
    directory_id: UUID | None


def kafka_uuid(value: UUID) -> str:
    """A UUID as Kafka writes it: 22 characters of url-safe base64."""
    import base64

    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def parse_kafka_uuid(text: str) -> UUID:
    """The UUID that Kafka wrote; ValueError if it is none."""
    import base64

    bare = text.removesuffix("==")
    raw = base64.b64decode(bare + "==", altchars=b"-_", validate=True)
    if len(bare) != 22:
        raise ValueError(f"{text[:40]!r} is not a UUID of Kafka's")
    return UUID(bytes=raw)


def encode_meta_properties(meta: MetaProperties, now_ms: int) -> bytes:
    """The file's bytes, keys in the order in which Kafka's own writer puts them."""
    lines = ["#", f"#{_java_date(now_ms)}"]
    if meta.node_id is not None:
        lines.append(f"node.id={meta.node_id}")
    if meta.directory_id is not None:
        lines.append(f"directory.id={kafka_uuid(meta.directory_id)}")
    lines.append(f"version={_LATEST_VERSION}")
    if meta.cluster_id is not None:
        lines.append(f"cluster.id={meta.cluster_id.translate(_ESCAPED)}")
    return "".join(f"{line}\n" for line in lines).encode()


def read_meta_properties(fs: FileSystem, path: str) -> MetaProperties | None:
    """The identity, or None if there is no file.

    CorruptCheckpoint if it makes no sense, NewerFormat if its version is above 1: both mean that
    the directory must not be touched.
    """
    try:
        found = _properties(fs.read_text(path))
    except FileMissing:
        return None
    if not found.keys() & _KEYS:
        raise CorruptCheckpoint(path, "it says neither whose directory this is nor its version")
    version = found.get("version", "0")
    if version not in ("0", "1"):
        raise NewerFormat(path, f"version {version[:20]!r}; this release knows 0 and 1")
    try:
        node = found.get("node.id", found.get("broker.id"))
        directory = found.get("directory.id")
        return MetaProperties(
            found.get("cluster.id"),
            None if node is None else int(node),
            None if directory is None else parse_kafka_uuid(directory),
        )
    except ValueError as error:
        raise CorruptCheckpoint(path, str(error)) from error


def write_meta_properties(fs: FileSystem, path: str, meta: MetaProperties, now_ms: int) -> None:
    """Replace the file, durably."""
    fs.write_atomically(path, encode_meta_properties(meta, now_ms))


def encode_partition_metadata(topic_id: UUID) -> bytes:
    """The bytes of `partition.metadata`."""
    return f"version: 0\ntopic_id: {kafka_uuid(topic_id)}".encode()


def read_partition_metadata(fs: FileSystem, path: str) -> UUID | None:
    """The topic's id, None if there is no file; CorruptCheckpoint or NewerFormat as above."""
    try:
        lines = fs.read_text(path).split("\n")
    except FileMissing:
        return None
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    version, topic_id = fields.get("version", ""), fields.get("topic_id", "")
    if version.isdigit() and int(version) > 0:
        raise NewerFormat(path, f"version {version}; this release knows 0")
    if version != "0":
        raise CorruptCheckpoint(path, f"version {version[:20]!r} is not known")
    try:
        return parse_kafka_uuid(topic_id.strip())
    except ValueError as error:
        raise CorruptCheckpoint(path, str(error)) from error


def write_partition_metadata(fs: FileSystem, path: str, topic_id: UUID) -> None:
    """Replace the file, durably."""
    fs.write_atomically(path, encode_partition_metadata(topic_id))


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """The bytes of the clean-shutdown mark; its presence is what counts."""
    return b'{"version":0,"brokerEpoch":%d}' % broker_epoch


def read_clean_shutdown(fs: FileSystem, path: str) -> int | None:
    """The broker epoch of the mark, -1 if an older Kafka wrote it empty; None: no mark."""
    import json

    try:
        text = fs.read_text(path)
    except FileMissing:
        return None
    try:
        epoch = json.loads(text)["brokerEpoch"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return -1
    return epoch if isinstance(epoch, int) else -1


def _properties(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        if line.strip() and line.lstrip()[0] not in "#!":
            key, _, value = line.partition("=")
            found[key.strip()] = _unescape(value.strip())
    return found


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    import re

    def meaning(match: re.Match[str]) -> str:
        what = match[1]
        return chr(int(what[1:], 16)) if len(what) > 1 else _CONTROLS.get(what, what)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", meaning, text)


def _java_date(now_ms: int) -> str:
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(now_ms / 1000, UTC)
    return moment.strftime("%a %b %d %H:%M:%S UTC %Y")
