"""`horolog tier verify`: the proof that the tier's store is whole. No broker is asked."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from broker.cli.tier.places import place_to_read
from broker.runtime.exit_status import CORRUPT, NOT_USABLE

if TYPE_CHECKING:
    from storage.tier.names import PartitionKeys
    from storage.tier.port import ObjectStore
    from storage.tier.verify_store import TierFinding, VerifiedPartition

COLUMNS = ("topic", ">partitions", ">segments", ">size", ">unnamed", "damaged objects")


@click.command("verify", short_help="Prove that the store has what its manifests name.")
@click.argument("topic", required=False)
@click.option(
    "--from", "url", metavar="PLACE", required=True,
    help="A tier or a back-up: s3://bucket/prefix, with credentials from AWS_…; or a back-up's "
    "directory.",
)  # fmt: skip
@click.option("--deep", is_flag=True, help="Read all objects and compare their checksums.")
@click.option("--allow-http", is_flag=True, help="As horolog.tier.allow.http: without TLS, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(topic: str | None, url: str, *, deep: bool, allow_http: bool, as_json: bool) -> int:
    """Prove that the store has what the manifests name, of all topics or of TOPIC.

    Manifests form a chain, each named object is there and has its size. With --deep each is read
    as well, and its CRC-32C compared with the one that was taken when it was copied: that costs
    the reading of all bytes. Nothing is changed, no broker is needed, and one may be at work.

    Exit status: 0 when everything is whole, 3 when something is not, 2 when the store cannot be
    read.
    """
    from broker.access.store.refusals import TierRefused
    from storage.errors import StorageError
    from storage.posix import real_env
    from storage.tier.verify_store import verify_partition

    try:
        store = place_to_read(real_env(), url, allow_http=allow_http)
        partitions = _partitions(store, topic)
        done = [verify_partition(store, keys, deep=deep) for keys in partitions]
    except (TierRefused, StorageError) as error:
        click.echo(f"horolog tier verify: {error}", err=True)
        return NOT_USABLE
    if as_json:
        click.echo(json.dumps(_content(done, deep=deep)))
    else:
        _show(done, deep=deep)
    return CORRUPT if any(each.findings for each in done) else 0


def _partitions(store: "ObjectStore", topic: str | None) -> "Sequence[PartitionKeys]":
    """Those of the topics in the newest picture. StorageError."""
    from storage.directory.topics_file import FILE_NAME, parse, partitions_of
    from storage.tier.card import NoTier, cluster_of
    from storage.tier.cluster_picture import newest
    from storage.tier.names import CLUSTER, TOPICS

    cluster_of(store)
    picture = newest(store)
    text = None if picture is None else picture.content.files.get(FILE_NAME)
    if text is None:
        raise NoTier(CLUSTER, "the store has no list of topics")
    found = partitions_of(parse(text.encode()))
    chosen = [each for each in found if topic in {None, each.topic}]
    if topic is not None and not chosen:
        raise NoTier(f"{TOPICS}{topic}", "the store has no such topic")
    return chosen


def _show(done: "Sequence[VerifiedPartition]", *, deep: bool) -> None:
    from broker.cli.tables import show_proof
    from config.quantities import counted

    topics: dict[str, list[VerifiedPartition]] = {}
    for each in done:
        topics.setdefault(each.keys.topic, []).append(each)
    proof = "and its checksums" if deep else "with its size; --deep reads its bytes"
    show_proof(
        COLUMNS,
        (_row(name, partitions) for name, partitions in topics.items()),
        [(_line(finding), finding.fault) for each in done for finding in each.findings],
        f"Each named object of {counted(len(done), 'partition')} is there, {proof}.",
    )


def _row(topic: str, partitions: "list[VerifiedPartition]") -> tuple[str, ...]:
    from config.quantities import number, size

    return (
        topic,
        number(len(partitions)),
        number(sum(each.segments for each in partitions)),
        size(sum(each.size_bytes for each in partitions)),
        number(sum(each.unnamed for each in partitions)),
        number(sum(len(each.findings) for each in partitions)),
    )


def _line(finding: "TierFinding") -> str:
    keys, base = finding.keys, finding.base_offset
    segment = "" if base is None else f", segment {base}"
    kind = finding.fault.name.lower()
    return f"{keys.topic}-{keys.partition}{segment}: {kind} {finding.key}: {finding.detail}"


def _content(done: "Sequence[VerifiedPartition]", *, deep: bool) -> dict[str, Any]:
    return {
        "deep": deep,
        "partitions": [
            {
                "topic": each.keys.topic,
                "partition": each.keys.partition,
                "segments": each.segments,
                "size_bytes": each.size_bytes,
                "unnamed_objects": each.unnamed,
                "findings": [
                    {
                        "fault": finding.fault.name.lower(),
                        "segment": finding.base_offset,
                        "object": finding.key,
                        "detail": finding.detail,
                        "advice": finding.fault.value,
                    }
                    for finding in each.findings
                ],
            }
            for each in done
        ],
    }
