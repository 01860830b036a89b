"""Segments in the store of the partitions that are led here: the rows name their manifests."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol
from weakref import WeakKeyDictionary

from broker.fleet.catalog.port import CatalogError
from broker.fleet.host import OwnedLog
from storage.errors import LogOffline, StorageError
from storage.log.log import Log
from storage.tier.names import epoch_of
from storage.tier.tiered_log import TieredLog

NAMED_SECONDS = 15.0


class NotNamed(StorageError):  # noqa: N818 - what happened
    """The rows do not have it yet, or did not say so in time."""


class RowsOfLogs(Protocol):
    """The rows, as an incarnation changes them for logs that it owns. CatalogError."""

    async def name_manifest(self, log: OwnedLog, number: int, end_offset: int) -> bool:
        """True when the manifest counts; False when the log is another's."""

    async def trim(self, log: OwnedLog) -> bool:
        """True when the rows have the log's start; False when the log is another's."""


class LedSegments:
    """The parts in the store of a node's logs, as far as it leads them. Used from the loop."""

    def __init__(
        self, owned: Callable[[Log], OwnedLog | None], rows: Callable[[], RowsOfLogs | None]
    ) -> None:
        """`owned`: a log as it is led here, None for others; `rows`: None between two lives."""
        self._owned = owned
        self._rows = rows
        self._named: WeakKeyDictionary[TieredLog, int] = WeakKeyDictionary()

    def is_led(self, log: Log) -> bool:
        """True for a log that this node may copy from."""
        return self._owned(log) is not None

    async def named(self, tiered: TieredLog) -> None:
        """Its present manifest counts. LogOffline: the log is another's, or led here in another
        epoch by now, whose manifests have numbers of their own; NotNamed.
        """
        owned = self._owned(tiered.log)
        if owned is not None and owned.shard.epoch != epoch_of(tiered.keys):
            raise LogOffline(tiered.log.files.path, "it is led here once more")
        manifest = tiered.manifest
        number, end_offset = manifest.number, manifest.end_offset
        if number and self._named.get(tiered, 0) < number:
            await self._asked(
                tiered.log, lambda rows, log: rows.name_manifest(log, number, end_offset)
            )
            self._named[tiered] = number
            tiered.named(manifest)

    async def start_named(self, log: Log) -> None:
        """The rows have the log's start: what is before it may go. As `named`."""
        await self._asked(log, lambda rows, owned: rows.trim(owned))

    async def _asked(
        self, log: Log, ask: Callable[[RowsOfLogs, OwnedLog], Awaitable[bool]]
    ) -> None:
        owned, rows = self._owned(log), self._rows()
        if owned is None or rows is None:
            raise LogOffline(log.files.path, "another node leads it")
        try:
            async with asyncio.timeout(NAMED_SECONDS):
                is_done = await ask(rows, owned)
        except (CatalogError, TimeoutError) as error:
            raise NotNamed(log.files.path, f"the fleet's catalog: {error}") from error
        if not is_done:
            raise LogOffline(log.files.path, "another node leads it")
