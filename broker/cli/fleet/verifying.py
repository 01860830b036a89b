"""`horolog fleet verify`: the look at a fleet, and its result as a table or as JSON."""

import json
from collections.abc import Sequence
from typing import Any

import click

from broker.cli.fleet.exporting import opened_source
from broker.cli.tables import show_proof
from broker.fleet.exchange.verify import FleetFinding, FleetProof, VerifiedRows
from config.quantities import counted, number, size

COLUMNS = ("topic", ">partitions", ">segments", ">commits", ">size", ">damage")


async def verified(
    url: str, place: str, topic: str | None, *, deep: bool, allow_http: bool
) -> Sequence[VerifiedRows]:
    """Results of all partitions. CatalogError, TierRefused, StorageError."""
    async with opened_source(url, place, allow_http=allow_http) as source:
        return [each async for each in FleetProof(source, deep=deep).run(topic)]


def show(done: Sequence[VerifiedRows], *, deep: bool) -> None:
    """A table by topic, and each finding in a line."""
    topics: dict[str, list[VerifiedRows]] = {}
    for each in done:
        topics.setdefault(each.keys.topic, []).append(each)
    proof = "their checksums are right" if deep else "--deep reads their bytes"
    show_proof(
        COLUMNS,
        (_row(name, partitions) for name, partitions in topics.items()),
        [(_line(finding), finding.fault) for each in done for finding in each.findings],
        f"All that {counted(len(done), 'partition')} have is there; {proof}.",
    )


def show_json(done: Sequence[VerifiedRows], *, deep: bool) -> None:
    """One JSON object."""
    content = {"deep": deep, "partitions": [_content(each) for each in done]}
    click.echo(json.dumps(content))


def _row(name: str, partitions: Sequence[VerifiedRows]) -> tuple[str, ...]:
    return (
        name,
        number(len(partitions)),
        number(sum(each.segments for each in partitions)),
        number(sum(each.commits for each in partitions)),
        size(sum(each.size_bytes for each in partitions)),
        number(sum(len(each.findings) for each in partitions)),
    )


def _line(finding: FleetFinding) -> str:
    keys, kind = finding.keys, finding.fault.name.lower()
    return f"{keys.topic}-{keys.partition}: {kind} {finding.name}: {finding.detail}"


def _content(done: VerifiedRows) -> dict[str, Any]:
    return {
        "topic": done.keys.topic,
        "partition": done.keys.partition,
        "segments": done.segments,
        "commits": done.commits,
        "size_bytes": done.size_bytes,
        "end_offset": done.end_offset,
        "findings": [
            {
                "fault": each.fault.name.lower(),
                "name": each.name,
                "detail": each.detail,
                "advice": each.fault.value,
            }
            for each in done.findings
        ],
    }
