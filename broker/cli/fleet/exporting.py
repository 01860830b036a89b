"""`horolog fleet export`: the stores are opened, and progress is shown."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from broker.access.store.objects import open_store
from broker.cli.tier.partition_bar import partition_bar
from broker.fleet.catalog.postgres import PostgresCatalog
from broker.fleet.commit_objects import CommitObjects
from broker.fleet.export import Exported, ExportSource, FleetExport
from storage.posix import real_env
from storage.tier.restore import RestoreProgress

T = TypeVar("T")


class _Threads:
    """A lane of whatever threads there are."""

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.to_thread(work, *arguments)


async def exported(url: str, place: str, directory: str, *, allow_http: bool) -> Exported:
    """Makes the directory. CatalogError, TierRefused, CorruptFrame, StorageError."""
    env, catalog = real_env(), PostgresCatalog(url)
    try:
        facts = await catalog.facts()
        segments = open_store(place, allow_http=allow_http)
        commits = CommitObjects(segments, _Threads(), env.rng)
        commits.use(facts.fleet_id)
        source = ExportSource(catalog, commits, segments)
        log_dir = directory.rstrip("/") or "/"
        with partition_bar() as bar:
            progress = RestoreProgress()
            if bar is not None:
                progress = RestoreProgress(bar.partitions, bar.partition, bar.fetched)
            return await FleetExport(source, env, log_dir).run(progress)
    finally:
        await catalog.close()
