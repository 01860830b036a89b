"""`horolog-topics.json`: which topics exist, at the top of the data directory.

Plain text, one line a topic. Written as a whole and atomically before a change is answered:

    {"format": 1,
     "topics": {"orders": {"id": "bHcxO0eYQqSZr0iYc7Ow5w", "partitions": 3}},
     "deleted": ["2Zs0V3kFTMyRDTJ7aY2lWQ"],
     "checksum": "5be1a9f3"}

`topics` is the truth: a topic in it whose directories are missing gets them at the next start.
`deleted` holds ids whose directories may still have their names; the next start finishes them.
With a tier it also holds those of which the store may have objects, until a sweep finds none.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from config.sealed_json import KEY, check_seal, checksum_of
from storage.errors import CorruptCheckpoint, NewerFormat
from storage.files.topic_name import fault_in_name
from storage.tier.names import PartitionKeys

FILE_NAME = "horolog-topics.json"
FORMAT = 1
MAX_PARTITIONS = 1_000_000  # of one topic; above it the file cannot be meant


@dataclass(frozen=True, slots=True)
class TopicEntry:
    """Entry of one topic in the file."""

    topic_id: UUID
    partition_count: int


@dataclass(frozen=True, slots=True)
class CatalogState:
    """The whole file."""

    topics: Mapping[str, TopicEntry] = field(default_factory=dict)
    deleted: frozenset[UUID] = frozenset()


def render(state: CatalogState) -> bytes:
    """The file's bytes; the same state gives the same bytes."""
    document = {
        "format": FORMAT,
        "topics": {
            name: {"id": id_text(entry.topic_id), "partitions": entry.partition_count}
            for name, entry in sorted(state.topics.items())
        },
        "deleted": sorted(id_text(topic_id) for topic_id in state.deleted),
    }
    return _with_a_line_a_topic({**document, KEY: checksum_of(document)})


def _with_a_line_a_topic(document: dict[str, Any]) -> bytes:
    topics = [
        f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in document["topics"].items()
    ]
    parts = {name: json.dumps(value) for name, value in document.items()}
    if topics:
        parts["topics"] = "{\n" + ",\n".join(topics) + "\n }"
    return ("{" + ",\n ".join(f'"{name}": {text}' for name, text in parts.items()) + "}\n").encode()


def parse(data: bytes) -> CatalogState:
    """Reads what `render` wrote.

    Raises CorruptCheckpoint or NewerFormat: the broker must not start over such a file.
    """
    try:
        document: Any = json.loads(data)
        _check_format(document["format"])
        check_seal(document)
        topics = {
            name: TopicEntry(id_of(entry["id"]), _partition_count(name, entry["partitions"]))
            for name, entry in document["topics"].items()
        }
        return CatalogState(topics, frozenset(_ids(document.get("deleted", ()))))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptCheckpoint(FILE_NAME, f"cannot be read: {error}") from error


def partitions_of(state: CatalogState) -> list[PartitionKeys]:
    """Every partition of every topic, by the names that a tier's objects have."""
    return [
        PartitionKeys(name, entry.topic_id, partition)
        for name, entry in state.topics.items()
        for partition in range(entry.partition_count)
    ]


def partitions_in(files: Mapping[str, str]) -> list[PartitionKeys]:
    """The partitions in the text of files by name; none without this file. As `parse`."""
    text = files.get(FILE_NAME)
    return [] if text is None else partitions_of(parse(text.encode()))


def _check_format(number: int) -> None:
    if number > FORMAT:
        raise NewerFormat(FILE_NAME, f"has format {number}, this version reads up to {FORMAT}")


def _partition_count(name: str, count: object) -> int:
    """The count, if it and the name can be those of a topic: both become directories."""
    fault = fault_in_name(name)
    if fault is not None:
        raise ValueError(fault)
    if not isinstance(count, int) or not 1 <= count <= MAX_PARTITIONS:
        raise ValueError(f"topic {name!r} cannot have {count!r:.40} partitions")
    return count


def id_text(topic_id: UUID) -> str:
    """As Kafka writes ids (partition.metadata, tools): URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def id_of(text: str) -> UUID:
    """The id that `id_text` wrote; ValueError for anything else."""
    try:
        return UUID(bytes=base64.b64decode(text + "==", altchars=b"-_", validate=True))
    except binascii.Error as error:
        raise ValueError(f"{text!r} is not a topic id") from error


def _ids(texts: Iterable[str]) -> Iterable[UUID]:
    return (id_of(text) for text in texts)
