"""Result of a restore, for people and for programs."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from broker.cli.tables import TablePage
from config.quantities import instant, instant_or_none, number, second, span

if TYPE_CHECKING:
    from storage.tier.restore import Restored, RestoredPartition

MOST_NAMED = 10
"""Partitions that a list in the report names; of the others it has the number."""
COLUMNS = ("topic", ">partitions", ">offsets", "segments", "last copy")


def content_of(done: "Restored") -> dict[str, Any]:
    """For `--json`."""
    return {
        "cluster_id": done.picture.content.cluster_id,
        "node_id": done.picture.content.node_id,
        "settings_of": instant(done.picture.written_ms),
        "backup_began": instant_or_none(done.picture.began_ms),
        "partitions": [_partition(each) for each in done.partitions],
    }


def print_restored(done: "Restored", url: str, now_ms: int) -> None:
    """A table of the topics, how old all is, and what is to be done next."""
    page = TablePage()
    page.table(COLUMNS, map(_row, _by_topic(done.partitions)))
    for line in _lines(done, url, now_ms):
        page.line(line)


def _partition(each: "RestoredPartition") -> dict[str, Any]:
    manifest = each.manifest
    return {
        "topic": each.keys.topic,
        "partition": each.keys.partition,
        "log_start_offset": 0 if manifest is None else manifest.log_start_offset,
        "log_end_offset": 0 if manifest is None else manifest.end_offset,
        "copied": instant_or_none(None if manifest is None else manifest.written_ms),
        "is_downloaded": each.is_local,
        "knows_producers": each.knows_producers,
        "starts_later": each.starts_later,
        "is_later": each.is_later,
    }


def _by_topic(partitions: "Iterable[RestoredPartition]") -> "list[list[RestoredPartition]]":
    topics: dict[str, list[RestoredPartition]] = {}
    for each in partitions:
        topics.setdefault(each.keys.topic, []).append(each)
    return list(topics.values())


def _row(partitions: "list[RestoredPartition]") -> tuple[str, ...]:
    manifests = [each.manifest for each in partitions if each.manifest is not None]
    offsets = sum(each.end_offset - each.log_start_offset for each in manifests)
    place = "in the directory" if partitions[0].is_local else "in the store"
    return (
        partitions[0].keys.topic,
        number(len(partitions)),
        number(offsets),
        place if manifests else "none",
        second(max((each.written_ms for each in manifests), default=None)),
    )


def _lines(done: "Restored", url: str, now_ms: int) -> Iterator[str]:
    written = done.picture.written_ms
    yield f"Topics and settings are of {second(written)}, {span(now_ms - written)} ago."
    began = done.picture.began_ms
    if began is not None:
        yield f"What was on the disk at {second(began)}, when the back-up began, is in it."
    never = sum(each.manifest is None for each in done.partitions)
    if never:
        yield f"Of {number(never)} partitions nothing was copied: they begin without records."
    yield from _not_of_then(done.partitions)
    for each in done.partitions:
        if not each.knows_producers:
            yield (
                f"{each.keys.topic}-{each.keys.partition}: the store has no producers of its end: "
                "a batch that one of them sends again is not noticed."
            )
    if any(each.manifest is not None and not each.is_local for each in done.partitions):
        yield (
            "The broker needs remote.log.storage.system.enable=true and "
            f"horolog.tier.url={url}, node.id={done.picture.content.node_id}."
        )


def _not_of_then(partitions: "Iterable[RestoredPartition]") -> Iterator[str]:
    """Partitions of which the store no longer has all of the moment that was asked for."""
    found = [(each, each.manifest) for each in partitions if each.manifest is not None]
    late = [(each, number(of.log_start_offset)) for each, of in found if each.starts_later]
    if late:
        yield (
            f"Of {number(len(late))} partitions retention or DeleteRecords removed records since "
            "then. They begin later, at offset:"
        )
        yield from _named(late)
    newer = [(each, second(of.written_ms)) for each, of in found if each.is_later]
    if newer:
        yield (
            f"Of {number(len(newer))} partitions compaction replaced segments since then, which "
            "are gone. They are of a later time:"
        )
        yield from _named(newer)
        yield (
            "To go back further another time, set file.delete.delay.ms of compacted topics as high "
            "as that, and log.segment.delete.delay.ms for the broker's own topics."
        )


def _named(partitions: "list[tuple[RestoredPartition, str]]") -> Iterator[str]:
    for each, what in partitions[:MOST_NAMED]:
        yield f"  {each.keys.topic}-{each.keys.partition}: {what}"
    if len(partitions) > MOST_NAMED:
        yield f"  and {number(len(partitions) - MOST_NAMED)} more"
