"""Proof that the rows and the store of a fleet have all that is committed.

No broker is asked, and they may run: a partition in which something seems to be wrong is looked at
once more if its rows have changed meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from broker.fleet.bodies import BodyGone, CommittedBodies
from broker.fleet.catalog.rows import CommittedSpan, PartitionRow
from broker.fleet.exchange.export import ExportSource
from broker.fleet.frame import ArrivedBatch, CorruptFrame
from broker.fleet.segment_parts import keys_of, named_manifest
from protocol.records.batch import read_header
from storage.errors import CorruptCheckpoint, NewerFormat
from storage.tier.manifests.manifest import Manifest
from storage.tier.names import PartitionKeys
from storage.tier.port import ObjectMissing
from storage.tier.side_files import side_bytes
from storage.tier.verify_store import damaged_segments

TRIES = 5


class FleetFault(Enum):
    """Kinds of damage, each with its consequence and what to do."""

    MANIFEST = (
        "no node can load the partition: bring the object back from a version or a copy of the "
        "bucket"
    )
    SEGMENT = (
        "reads of these offsets fail, unless the leader's disk has them: bring the object back "
        "from a version or a copy of the bucket"
    )
    COMMIT = (
        "the next leader cannot load the partition; stop no broker that leads it, and bring the "
        "object or the row back from a copy"
    )
    GAP = (
        "offsets that nothing has: the database is older than the store, or was changed by hand; "
        "bring it back from a copy"
    )


class FleetFinding(NamedTuple):
    """Damage in a partition."""

    keys: PartitionKeys
    fault: FleetFault
    name: str
    """Key of an object, or place in the rows."""
    detail: str


class VerifiedRows(NamedTuple):
    """Result for one partition."""

    keys: PartitionKeys
    segments: int
    commits: int
    """Spans of commits."""
    size_bytes: int
    end_offset: int
    findings: tuple[FleetFinding, ...]


class FleetProof:
    """One look at all partitions."""

    def __init__(self, source: ExportSource, *, deep: bool) -> None:
        """Nothing is asked. `deep`: reads all bytes."""
        self._catalog, self._commits, self._store = source
        self._bodies = CommittedBodies(source.catalog, source.commits)
        self._deep = deep
        self._objects: frozenset[str] = frozenset()

    async def run(self, topic: str | None = None) -> AsyncIterator[VerifiedRows]:
        """Partitions one after the other, of one topic or of all.

        CatalogError, StoreError: nothing is proven.
        """
        facts = await self._catalog.facts()
        rows = await self._catalog.partitions(range(facts.shards))
        self._objects = frozenset(key for key, _ in await self._commits.all())
        for row in sorted(rows, key=lambda each: (each.topic, each.partition.number)):
            if topic in {None, row.topic}:
                yield await self._settled(row)

    async def _settled(self, row: PartitionRow) -> VerifiedRows:
        done = await self._verified(row)
        for _ in range(TRIES):
            if not done.findings:
                break
            rows = await self._catalog.partitions([row.shard_id])
            now = next((each for each in rows if each.partition == row.partition), None)
            if now is None or now == row:
                return done._replace(findings=() if now is None else done.findings)
            row, done = now, await self._verified(now)
        return done

    async def _verified(self, row: PartitionRow) -> VerifiedRows:
        keys = keys_of(row)
        manifest, findings = await asyncio.to_thread(self._segments, row)
        findings += [each async for each in self._damaged_commits(row)]
        if manifest is not None:
            findings += _gaps(row, manifest)
        segments = () if manifest is None else manifest.segments
        size_bytes = sum(each.size_bytes + side_bytes(each) for each in segments)
        size_bytes += sum(each.span.size_bytes for each in row.spans)
        return VerifiedRows(
            keys, len(segments), len(row.spans), size_bytes, row.end_offset, tuple(findings)
        )

    def _segments(self, row: PartitionRow) -> tuple[Manifest | None, list[FleetFinding]]:
        keys = keys_of(row)
        try:
            manifest = named_manifest(self._store, row)
        except (CorruptCheckpoint, NewerFormat, ObjectMissing) as error:
            return None, [FleetFinding(keys, FleetFault.MANIFEST, error.path, error.message)]
        if not manifest.segments:
            return manifest, []
        found = {each.key: each for each in self._store.list(keys.prefix)}
        damage = damaged_segments(self._store, keys, manifest.segments, found, deep=self._deep)
        return manifest, [
            FleetFinding(keys, FleetFault.SEGMENT, each.key, each.detail) for each in damage
        ]

    async def _damaged_commits(self, row: PartitionRow) -> AsyncIterator[FleetFinding]:
        for each in row.spans:
            detail = await self._fault(each)
            if detail:
                name = each.object_key or str(each.commit_id)
                yield FleetFinding(keys_of(row), FleetFault.COMMIT, name, detail)

    async def _fault(self, committed: CommittedSpan) -> str:
        if not self._deep and (
            committed.object_key is None or committed.object_key in self._objects
        ):
            return ""
        try:
            return _fault_in(committed, await self._bodies.batches_of(committed))
        except ObjectMissing:
            return "it is not there"
        except (BodyGone, CorruptFrame) as error:
            return str(error)


def _fault_in(committed: CommittedSpan, batches: Sequence[ArrivedBatch]) -> str:
    span, at = committed.span, committed.span.base_offset
    for each in batches:
        header = read_header(memoryview(each.data))
        if header.base_offset != at:
            return f"a batch begins at {header.base_offset}, not at {at}"
        at = header.last_offset + 1
    return "" if at == span.end_offset else f"its records end before {at}, not {span.end_offset}"


def _gaps(row: PartitionRow, manifest: Manifest) -> Iterator[FleetFinding]:
    at = manifest.end_offset if manifest.segments else row.log_start_offset
    for begin, end in [
        *((each.span.base_offset, each.span.end_offset) for each in row.spans),
        (row.end_offset, row.end_offset),
    ]:
        if begin > at:
            place = f"offsets {at} to {begin - 1}"
            yield FleetFinding(keys_of(row), FleetFault.GAP, place, "nothing has them")
        at = max(at, end)
