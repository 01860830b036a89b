"""Result of a back-up, for people and for programs."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from broker.cli.tables import TablePage
from config.quantities import counted, instant, instant_or_none, number, second, size, span

if TYPE_CHECKING:
    from storage.backup.run import Backup, PartitionCopy
    from storage.backup.sweep import Swept

COLUMNS = ("topic", ">partitions", ">segments sent", ">sent")


def print_json(done: "Backup", swept: "Swept") -> None:
    """One object."""
    picture = done.picture
    oldest = swept.oldest
    content: dict[str, Any] = {
        "cluster_id": picture.content.cluster_id,
        "node_id": picture.content.node_id,
        "began": instant_or_none(picture.began_ms),
        "ended": instant(picture.written_ms),
        "partitions": [
            {
                "topic": each.keys.topic,
                "partition": each.keys.partition,
                "segments_sent": each.sent.segments,
                "bytes_sent": each.sent.size_bytes,
                "damage": each.damage or None,
            }
            for each in done.partitions
        ],
        "removed_objects": swept.objects,
        "removed_bytes": swept.size_bytes,
        "oldest_kept": instant_or_none(None if oldest is None else oldest.written_ms),
        "unreadable": list(swept.unreadable),
    }
    click.echo(json.dumps(content))


def print_backup(done: "Backup", swept: "Swept") -> None:
    """A table of the topics of which something was sent, and what the place has now."""
    page = TablePage()
    topics: dict[str, list[PartitionCopy]] = {}
    for each in done.partitions:
        topics.setdefault(each.keys.topic, []).append(each)
    sent = {
        name: found for name, found in topics.items() if any(each.sent.segments for each in found)
    }
    if sent:
        page.table(COLUMNS, (_row(name, found) for name, found in sent.items()))
    for line in _lines(done, swept):
        page.line(line)


def _row(name: str, found: "list[PartitionCopy]") -> tuple[str, ...]:
    return (
        name,
        number(len(found)),
        number(sum(each.sent.segments for each in found)),
        size(sum(each.sent.size_bytes for each in found)),
    )


def _lines(done: "Backup", swept: "Swept") -> Iterator[str]:
    picture = done.picture
    began = picture.began_ms or picture.written_ms
    yield (
        f"What was on the disk at {second(began)} is backed up, of "
        f"{counted(len(done.partitions), 'partition')}, in {span(picture.written_ms - began)}."
    )
    for each in done.partitions:
        if each.damage:
            name = f"{each.keys.topic}-{each.keys.partition}"
            yield f"{name}: not copied, what the place had of it stays: {each.damage}"
    if swept.objects:
        what = f"{counted(swept.objects, 'object')}, {size(swept.size_bytes)}"
        yield f"Removed: {what}, of back-ups that are not kept, or were cut off."
    if swept.oldest is not None:
        yield f"restore --at goes back to {second(swept.oldest.written_ms)}."
    for line in swept.unreadable:
        yield f"Nothing was removed of {line}"
