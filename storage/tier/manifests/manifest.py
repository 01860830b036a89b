"""Manifest of a partition: which of its segments lie in the store, and what is known of them.

Values only. A manifest is full, or names what changed since the one before it; the newest counts,
together with those down to the last full one (`storage.tier.manifests.chain`). Times are ms.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from storage.errors import CorruptCheckpoint
from storage.files.layout import LOG
from storage.log.compaction_state import CleanPart
from storage.producers.leader_epochs import EpochStart
from storage.segment.segment import UNKNOWN
from storage.tier.sealed import opened, sealed, sealed_list, text_of

FORMAT = 1


class FilePart(NamedTuple):
    """One file of a segment in its object: where it begins, its bytes, their CRC-32C."""

    position: int
    size_bytes: int
    crc: int


class RemoteSegment(NamedTuple):
    """A segment in the store. `unique` tells it from others of the same base offset.

    Times are -1 where no record has one, or where it is not known.
    """

    base_offset: int
    last_offset: int
    """The one before the next segment's base: compaction may have left no record of it."""
    unique: str
    parts: Mapping[str, FilePart]
    """Its files by suffix; that of `.log` is an object of its own, the others share one."""
    max_timestamp: int
    max_timestamp_offset: int
    first_arrival_ms: int
    last_arrival_ms: int
    modified_ms: int
    has_untimed: bool
    """True when some of its records have no time."""
    sums: FilePart | None = None
    """CRC-32C of each block of its `.log`, beside its other files; None: not known."""
    first_timestamp: int = UNKNOWN
    """Of its first batch, what rolling and compaction count from; UNKNOWN: not looked for."""

    @property
    def end_offset(self) -> int:
        """The offset after its last one."""
        return self.last_offset + 1

    @property
    def size_bytes(self) -> int:
        """Size of its `.log`."""
        return self.parts[LOG].size_bytes


class Manifest(NamedTuple):
    """State of one partition in the store."""

    number: int
    topic: str
    topic_id: UUID
    partition: int
    log_start_offset: int = 0
    """All below is gone, though the objects may be there for a while."""
    segments: tuple[RemoteSegment, ...] = ()
    """Ordered by offset, none of them overlapping."""
    epochs: tuple[EpochStart, ...] = ()
    writer: str = ""
    """Random name of the process that wrote it."""
    written_ms: int = 0
    cleaned: CleanPart | None = None
    """None: not known."""

    @property
    def end_offset(self) -> int:
        """The offset after the last segment; the log start without any."""
        return self.segments[-1].end_offset if self.segments else self.log_start_offset

    def last_arrival_before(self, offset: int) -> int:
        """The latest arrival, in ms, in the segments that end at or before `offset`; 0 for none."""
        before = (row for row in self.segments if row.end_offset <= offset)
        return max((row.last_arrival_ms for row in before), default=0)


class Change(NamedTuple):
    """Difference between a manifest and the one before."""

    added: tuple[RemoteSegment, ...] = ()
    removed: frozenset[str] = frozenset()
    """By `unique`."""
    log_start_offset: int = 0
    """Never lower than before."""
    epochs: tuple[EpochStart, ...] | None = None
    """None: as before."""
    cleaned: CleanPart | None = None
    """None: as before."""


def changed(before: Manifest, change: Change, writer: str, now_ms: int) -> Manifest:
    """The next manifest. ValueError when segments would overlap."""
    staying = (each for each in before.segments if each.unique not in change.removed)
    segments = tuple(sorted([*staying, *change.added], key=attrgetter("base_offset")))
    for one, next_one in pairwise(segments):
        if one.end_offset > next_one.base_offset:
            raise ValueError(f"segments {one.base_offset} and {next_one.base_offset} overlap")
    return before._replace(
        number=before.number + 1,
        log_start_offset=max(before.log_start_offset, change.log_start_offset),
        segments=segments,
        epochs=before.epochs if change.epochs is None else change.epochs,
        writer=writer,
        written_ms=now_ms,
        cleaned=before.cleaned if change.cleaned is None else change.cleaned,
    )


class RowTexts:
    """Texts of a manifest's rows, each made once: that of all is written after each copy.

    One thread at a time.
    """

    def __init__(self) -> None:
        """None yet."""
        self._texts: dict[str, tuple[RemoteSegment, bytes]] = {}

    def of(self, segments: Sequence[RemoteSegment]) -> list[bytes]:
        """The text of each; those of others are forgotten."""
        known, self._texts = self._texts, {}
        for each in segments:
            found = known.get(each.unique)
            if found is None or found[0] is not each:
                found = each, text_of(_row(each))
            self._texts[each.unique] = found
        return [text for _, text in self._texts.values()]


def render_full(manifest: Manifest, texts: RowTexts | None = None) -> bytes:
    """A manifest that needs none before it. `texts`: those of the one before it."""
    rows = (texts or RowTexts()).of(manifest.segments)
    return sealed_list(_head(manifest), "segments", rows)


def render_delta(manifest: Manifest, change: Change) -> bytes:
    """A manifest as the difference to the one before it."""
    return sealed(
        {
            **_head(manifest),
            "added": [_row(each) for each in change.added],
            "removed": sorted(change.removed),
        }
    )


def apply(path: str, before: Manifest | None, data: bytes) -> Manifest | None:
    """The state after a stored manifest; None when it needs the one before, which is not given.

    CorruptCheckpoint when it is not what was written; NewerFormat.
    """
    document = opened(path, data, FORMAT, "manifest")
    try:
        if "segments" in document:
            return _with_head(document, tuple(_segment(row) for row in document["segments"]))
        if before is None:
            return None
        change = Change(
            tuple(_segment(row) for row in document["added"]), frozenset(document["removed"])
        )
        return _with_head(document, changed(before, change, "", 0).segments)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptCheckpoint(path, f"no manifest: {error!r}") from error


def written_ms_of(path: str, data: bytes) -> int:
    """Time at which a stored manifest was written, full or not. As `apply`."""
    try:
        return int(opened(path, data, FORMAT, "manifest")["written_ms"])
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptCheckpoint(path, f"no manifest: {error!r}") from error


def _head(manifest: Manifest) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "number": manifest.number,
        "topic": manifest.topic,
        "topic_id": str(manifest.topic_id),
        "partition": manifest.partition,
        "log_start_offset": manifest.log_start_offset,
        "epochs": [list(each) for each in manifest.epochs],
        "writer": manifest.writer,
        "written_ms": manifest.written_ms,
        "cleaned": manifest.cleaned and list(manifest.cleaned),
    }


def _with_head(document: Mapping[str, Any], segments: tuple[RemoteSegment, ...]) -> Manifest:
    cleaned = document.get("cleaned")
    return Manifest(
        int(document["number"]),
        str(document["topic"]),
        UUID(document["topic_id"]),
        int(document["partition"]),
        int(document["log_start_offset"]),
        segments,
        tuple(EpochStart(int(epoch), int(start)) for epoch, start in document["epochs"]),
        str(document["writer"]),
        int(document["written_ms"]),
        CleanPart(*map(int, cleaned)) if cleaned else None,
    )


def _row(segment: RemoteSegment) -> dict[str, Any]:
    row = segment._asdict()
    row["parts"] = {suffix: list(part) for suffix, part in segment.parts.items()}
    row["sums"] = segment.sums and list(segment.sums)
    return row


def _segment(row: Mapping[str, Any]) -> RemoteSegment:
    parts = {str(suffix): _part(part) for suffix, part in row["parts"].items()}
    numbers = {name: int(row[name]) for name in _NUMBERS}
    segment = RemoteSegment(
        unique=str(row["unique"]),
        parts=parts,
        has_untimed=bool(row["has_untimed"]),
        sums=_part(row["sums"]) if row.get("sums") else None,
        first_timestamp=int(row.get("first_timestamp", UNKNOWN)),
        **numbers,
    )
    if LOG not in parts or segment.base_offset > segment.last_offset:
        raise ValueError(f"segment {segment.base_offset} is none")
    return segment


def _part(part: Sequence[Any]) -> FilePart:
    position, size_bytes, crc = part
    return FilePart(int(position), int(size_bytes), int(crc))


_NUMBERS = tuple(
    name
    for name in RemoteSegment._fields
    if name not in {"unique", "parts", "has_untimed", "sums", "first_timestamp"}
)
