"""The quotas of a broker: set by administrators, durable, enforced while there are any.

A change is checked, written, and then counts; `enforced` is what the request path looks at, and is
None as long as nobody has a limit.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.quotas.arrivals import ArrivalQuota
from broker.quotas.enforcement import Enforcement, Mute, Throttled
from broker.quotas.mutations import Allowance
from broker.quotas.quota_file import FILE_NAME, parse, render
from broker.quotas.table import QuotaTable
from broker.runtime.documents import (
    DecidesDocumentsHere,
    DocumentAuthority,
    keep,
    on_the_newest,
)

if TYPE_CHECKING:
    from broker.runtime.lanes import DiskLane
    from broker.runtime.request_context import RequestContext
    from config.store import ConfigStore
    from storage.env import FileSystem

DOCUMENT = "quotas"
"""Name of the document that they are in a fleet."""
Enforced = Callable[[Enforcement | None], None]


class Quotas:
    """Quotas of users, clients and addresses. Used from the event loop only, but for `load`."""

    def __init__(
        self,
        fs: "FileSystem",
        lane: "DiskLane",
        config: "ConfigStore",
        *,
        monotonic: Callable[[], float],
        mute: Mute,
        on_enforced: Enforced,
    ) -> None:
        """Nothing is known until `load`. `on_enforced` is called when measuring begins and ends."""
        self._fs = fs
        self._lane = lane
        self._config = config
        self._monotonic = monotonic
        self._mute = mute
        self._on_enforced = on_enforced
        self.authority: DocumentAuthority = DecidesDocumentsHere()
        self.changing = asyncio.Lock()
        self.table: QuotaTable = QuotaTable()
        self.throttled = Throttled()
        self.enforced: Enforcement | None = None
        settings = config.broker_config
        self._arrivals = ArrivalQuota(
            windows=settings.quota_window_num,
            window_ms=settings.quota_window_size_seconds * 1000,
            monotonic=monotonic,
            throttled=self.throttled,
        )

    def allowance(self, context: "RequestContext[Any]", *, strict: bool) -> Allowance:
        """The partitions that a request may make or delete; `strict`: it knows of code 89."""
        if self.enforced is None:
            return Allowance()
        return self.enforced.allowance(context, strict=strict)

    def arrival_rest_seconds(self, host: str) -> float:
        """0 for a connection from there that may come in, else for how long it may not."""
        return self._arrivals.rest_ms(host) / 1000 if self._arrivals.is_needed else 0.0

    def load(self) -> None:
        """Before clients may come: what was set when it ran last. Blocks.

        Raises CorruptCheckpoint or NewerFormat when the file cannot be trusted.
        """
        fs, path = self._fs, self._path()
        if fs.exists(path):
            self._publish(parse(path, fs.read_text(path)))

    async def change(self, change: Callable[[QuotaTable], QuotaTable]) -> None:
        """Makes what `change` gives durable, then lets it count. Raises StorageError.

        In a fleet it is asked again when another node was faster.
        """

        async def store() -> None:
            await self.store(change(self.table))

        await on_the_newest(self.authority, self.changing, store)

    async def store(self, table: QuotaTable) -> None:
        """Makes `table` durable, then lets it count. Hold `changing`. Raises StorageError."""
        if table == self.table:
            self.authority.check_known(DOCUMENT)
        else:
            await self.authority.decided(DOCUMENT, render(table))
            await self._use(table)

    async def follow(self, content: bytes) -> None:
        """Has the quotas that an authority has decided. CorruptCheckpoint, NewerFormat."""
        table = parse(DOCUMENT, content.decode())
        async with self.changing:
            await self._use(table)

    async def _use(self, table: QuotaTable) -> None:
        write = partial(self._lane.run, self._write, table)
        await keep(self.authority, DOCUMENT, partial(self._publish, table), write)

    def _publish(self, table: QuotaTable) -> None:
        self.table = table
        self._arrivals.use(table)
        if not table.limits_requests:
            self.enforced = None
        else:
            self.enforced = self.enforced or self._make_enforcement()
            self.enforced.use(table)
        self._on_enforced(self.enforced)

    def _make_enforcement(self) -> Enforcement:
        settings = self._config.broker_config
        saved = settings.controller_quota_window_num * settings.controller_quota_window_size_seconds
        return Enforcement(
            windows=settings.quota_window_num,
            window_ms=settings.quota_window_size_seconds * 1000,
            burst_seconds=saved,
            monotonic=self._monotonic,
            mute=self._mute,
            throttled=self.throttled,
            super_users={each.partition(":")[2] for each in settings.super_users},
        )

    def _write(self, table: QuotaTable) -> None:
        self._fs.write_atomically(self._path(), render(table))

    def _path(self) -> str:
        return f"{self._lane.log_dir}/{FILE_NAME}"
