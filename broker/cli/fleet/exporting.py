"""`horolog fleet export` and `import`: the stores are opened, and progress is shown."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TypeVar

from broker.access.store.objects import open_store
from broker.cli.tier.partition_bar import partition_bar, progress_of
from broker.fleet.catalog.postgres import PostgresCatalog
from broker.fleet.catalog.rows import ImportAnswer, TopicImport
from broker.fleet.catalog.schema import NewFleet, migrate
from broker.fleet.commit_objects import CommitObjects
from broker.fleet.exchange.export import Exported, ExportSource, FleetExport
from broker.fleet.exchange.import_directory import DirectoryImport, ImportRefused
from broker.transactions.loading import producer_ids_in
from protocol.errors import KafkaError
from protocol.records.batch import CorruptBatch
from storage.files.layout import partition_dir_name
from storage.files.meta_properties import kafka_uuid
from storage.log.log import Log
from storage.posix import real_env
from storage.tier.card import claim

T = TypeVar("T")
CHUNK_BYTES = 1 << 20


class _Threads:
    """A lane of whatever threads there are."""

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.to_thread(work, *arguments)


def _transaction_ids(log: Log) -> Iterator[int]:
    """ImportRefused for a partition that cannot be read: it may have ids that are in use."""
    try:
        yield from producer_ids_in(log, CHUNK_BYTES)
    except (CorruptBatch, KafkaError) as error:
        name = partition_dir_name(log.topic, log.partition)
        raise ImportRefused(name, f"{error}: horolog verify says what is damaged") from error


@asynccontextmanager
async def opened_source(url: str, place: str, *, allow_http: bool) -> AsyncIterator[ExportSource]:
    """A fleet to read. CatalogError, TierRefused, StorageError."""
    catalog = PostgresCatalog(url, only_reads=True)
    try:
        facts = await catalog.facts()
        segments = open_store(place, allow_http=allow_http)
        commits = CommitObjects(segments, _Threads(), real_env().rng)
        commits.use(facts.fleet_id)
        yield ExportSource(catalog, commits, segments)
    finally:
        await catalog.close()


async def exported(url: str, place: str, directory: str, *, allow_http: bool) -> Exported:
    """Makes the directory. CatalogError, TierRefused, CorruptFrame, StorageError."""
    log_dir = directory.rstrip("/") or "/"
    async with opened_source(url, place, allow_http=allow_http) as source:
        with partition_bar() as bar:
            return await FleetExport(source, real_env(), log_dir).run(progress_of(bar))


async def imported(
    url: str, place: str, directory: str, *, allow_http: bool
) -> tuple[ImportAnswer, int]:
    """The answer, and how many partitions there are. As `exported`; ImportRefused, ConfigError."""
    env = real_env()
    segments = open_store(place, allow_http=allow_http)
    work = DirectoryImport(env, segments, directory.rstrip("/") or "/", _transaction_ids)
    identity = work.identity()
    await migrate(url, NewFleet(env.rng.uuid(), identity.cluster_id or kafka_uuid(env.rng.uuid())))
    catalog = PostgresCatalog(url)
    try:
        facts = await catalog.facts()
        if identity.cluster_id not in {None, facts.cluster_id}:
            raise ImportRefused(
                directory, f"its cluster is {identity.cluster_id}, the fleet's {facts.cluster_id}"
            )
        claim(segments, facts.cluster_id)
        work.open(identity)
        try:
            with partition_bar() as bar:
                order = await asyncio.to_thread(work.copied, facts.shards, progress_of(bar))
        finally:
            work.close()
        answer = await catalog.import_topics(order)
        if answer is ImportAnswer.DOCUMENTS:
            raise ImportRefused(directory, await _what_is_set(catalog, order))
        return answer, len(order.partitions)
    finally:
        await catalog.close()


async def _what_is_set(catalog: PostgresCatalog, order: TopicImport) -> str:
    """The documents that a fleet has otherwise, and what to do."""
    there = [each for each in await catalog.documents({}) if each.version]
    others = sorted(each.name for each in there if order.documents.get(each.name) != each.content)
    return (
        f"the fleet is not empty: it has {' and '.join(others)} of its own, in whose place those "
        "of the directory would not come. Give --url a database that no node has used"
    )
