"""A fleet as the data directory of a broker that stands alone: its back-up, and the way back.

No broker is asked, and none is disturbed: rows and objects say all. Each partition is as of one
moment, those of groups and transactions first, so that no group is ahead of its records.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from broker.fleet.bodies import BodyGone, CommittedBodies
from broker.fleet.catalog.port import FleetCatalog
from broker.fleet.catalog.rows import PartitionRow, Topics
from broker.fleet.committer import CommitStore
from broker.fleet.exchange.files import FILES
from broker.fleet.image import SETTINGS
from broker.fleet.local_logs import append_missing
from broker.fleet.segment_parts import SegmentParts, keys_of
from broker.topics.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from config.store import ConfigStore
from storage.directory.log_manager import LogManager
from storage.directory.producer_ids_file import FILE_NAME as IDS_FILE
from storage.directory.producer_ids_file import render as render_ids
from storage.directory.topics_file import FILE_NAME as TOPICS_FILE
from storage.directory.topics_file import CatalogState, TopicEntry, render
from storage.env import Env
from storage.files.layout import META_PROPERTIES_FILE
from storage.files.meta_properties import MetaProperties, write_meta_properties
from storage.log.log import Log
from storage.tier.marked_directory import marked_directory
from storage.tier.port import ObjectMissing, ObjectStore
from storage.tier.restore import RestoreProgress

FIRST = (CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE)
NODE_ID = 1
TRIES = 5


class Exported(NamedTuple):
    """Result of an export."""

    topics: int
    partitions: int
    records_end: int
    """Sum of all end offsets."""


class ExportSource(NamedTuple):
    """The fleet, and the stores of its commits and segments."""

    catalog: FleetCatalog
    commits: CommitStore
    segments: ObjectStore


class FleetExport:
    """One export at work, into a directory that is made."""

    def __init__(self, source: ExportSource, env: Env, log_dir: str) -> None:
        """Nothing is asked."""
        self._catalog = source.catalog
        self._bodies = CommittedBodies(source.catalog, source.commits)
        self._env = env
        self._log_dir = log_dir
        self._config = ConfigStore()
        self._logs = LogManager(env, log_dir, self._config.topic_config)
        self._parts = SegmentParts(self._logs, source.segments, env)

    async def run(self, progress: RestoreProgress) -> Exported:
        """All of it.

        RestoreRefused when the directory is not empty; CatalogError, CorruptFrame, CorruptLog,
        StorageError: no broker starts on the directory, and the next run begins again.
        """
        facts = await self._catalog.facts()
        documents = {each.name: each.content for each in await self._catalog.documents({})}
        if SETTINGS in documents:
            self._config.restore(documents[SETTINGS].decode())
        with marked_directory(self._env.fs, self._log_dir):
            await self._partitions(progress)
            topics = await self._catalog.topics()
            done = await asyncio.to_thread(self._kept, topics)
            await asyncio.to_thread(self._write_ids, await self._catalog.producer_ids_end())
            await asyncio.to_thread(self._write_top, topics, documents, facts.cluster_id)
        return done

    async def _partitions(self, progress: RestoreProgress) -> None:
        rows = await self._rows()
        progress.partitions(len(rows))
        for row in rows:
            progress.partition(keys_of(row))
            await self._brought(row)

    def _kept(self, topics: Topics) -> Exported:
        """Leaves out what was deleted meanwhile: a broker would take its directories for topics."""
        there = {each.topic_id for each in topics.topics}
        for (name, number), log in self._logs.logs.items():
            if log.topic_id not in there:
                self._logs.delete_log(name, number)
        logs = self._logs.logs
        end = sum(each.snapshot.log_end_offset for each in logs.values())
        self._logs.close()
        return Exported(len({name for name, _ in logs}), len(logs), end)

    async def _rows(self) -> Sequence[PartitionRow]:
        facts = await self._catalog.facts()
        rows = await self._catalog.partitions(range(facts.shards))
        return sorted(rows, key=lambda each: (each.topic not in FIRST, each.partition))

    async def _brought(self, row: PartitionRow) -> None:
        """One that changes while it is read is read once more; one that goes is left out."""
        now: PartitionRow | None = row
        for left in reversed(range(TRIES)):
            if now is None:
                return
            try:
                await self._once(now)
            except (BodyGone, ObjectMissing):
                now = await self._again(now)
                if now is not None and not left:
                    raise
            else:
                return

    async def _again(self, row: PartitionRow) -> PartitionRow | None:
        """The partition as it is by now; None when it was deleted."""
        topic, number = row.topic, row.partition.number
        if (topic, number) in self._logs.logs:
            await asyncio.to_thread(self._logs.delete_log, topic, number)
        rows = await self._catalog.partitions([row.shard_id])
        return next((each for each in rows if each.partition == row.partition), None)

    async def _once(self, row: PartitionRow) -> None:
        parts = self._parts
        manifest = await asyncio.to_thread(parts.manifest_of, row)
        if manifest.segments:
            log = await asyncio.to_thread(parts.whole, row, manifest)
        else:
            log = await asyncio.to_thread(self._empty, row)
        for committed in row.spans:
            if committed.span.end_offset > log.snapshot.log_end_offset:
                batches = await self._bodies.batches_of(committed)
                await asyncio.to_thread(append_missing, log, batches)
        await asyncio.to_thread(_finish, log, row.log_start_offset)

    def _empty(self, row: PartitionRow) -> Log:
        topic_id, number = row.partition
        config = self._config.topic_config(row.topic)
        return self._logs.create_log(row.topic, number, topic_id, config, row.first_offset)

    def _write_ids(self, end: int) -> None:
        """Also ids that no log has count as given out: their producers may come again."""
        self._env.fs.write_atomically(f"{self._log_dir}/{IDS_FILE}", render_ids(end))

    def _write_top(self, topics: Topics, documents: Mapping[str, bytes], cluster_id: str) -> None:
        """Files at the top; the directory's identity comes last."""
        fs, logs = self._env.fs, self._logs.logs
        there = {name for name, _ in logs}
        entries = {
            each.name: TopicEntry(each.topic_id, len(each.shards))
            for each in topics.topics
            if each.name in there
        }
        fs.write_atomically(f"{self._log_dir}/{TOPICS_FILE}", render(CatalogState(entries)))
        for name, content in documents.items():
            if name in FILES:
                fs.write_atomically(f"{self._log_dir}/{FILES[name]}", content)
        meta = MetaProperties(cluster_id, NODE_ID, self._env.rng.uuid())
        path = f"{self._log_dir}/{META_PROPERTIES_FILE}"
        write_meta_properties(fs, path, meta, self._env.clock.now_ms())


def _finish(log: Log, log_start_offset: int) -> None:
    end_offset = log.snapshot.log_end_offset
    log.mark_durable(log.sync())
    log.durability.committed(end_offset)
    if log.snapshot.log_start_offset < log_start_offset:
        log.delete_records(log_start_offset)
