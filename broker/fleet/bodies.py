"""Bytes of committed spans: out of the catalog's rows or out of objects, the last ones kept."""

import asyncio
from collections import OrderedDict
from weakref import WeakValueDictionary

from broker.fleet.catalog.port import CatalogError, FleetCatalog
from broker.fleet.catalog.rows import CommitId, CommittedSpan
from broker.fleet.committer import CommitStore
from broker.fleet.frame import ArrivedBatch, CorruptFrame, read_part


class BodyGone(CatalogError):  # noqa: N818 - what happened
    """The bytes are elsewhere by now: the rows have changed since they were read."""


class CommittedBodies:
    """Bodies of commits, as a take-over reads them: a body has parts of many partitions."""

    def __init__(
        self, catalog: FleetCatalog, store: CommitStore | None, kept_bytes: int = 64 * 1024 * 1024
    ) -> None:
        """Nothing is read."""
        self._catalog = catalog
        self._store = store
        self._kept_bytes = kept_bytes
        self._bodies: OrderedDict[CommitId, bytes] = OrderedDict()
        self._turns = WeakValueDictionary[CommitId, asyncio.Lock]()

    async def batches_of(self, committed: CommittedSpan) -> list[ArrivedBatch]:
        """Batches of a span. CatalogError, StoreError; CorruptFrame."""
        span = committed.span
        body = await self._body(committed)
        end = span.position + span.size_bytes
        if end > len(body):
            raise CorruptFrame(f"{committed.commit_id} ends at {len(body)}, before {end}")
        return read_part(memoryview(body)[span.position : end])

    async def _body(self, committed: CommittedSpan) -> bytes:
        commit_id = committed.commit_id
        async with self._turns.setdefault(commit_id, asyncio.Lock()):  # one reads, others have it
            body = self._bodies.get(commit_id)
            if body is None:
                body = await self._read(committed)
                self._keep(commit_id, body)
            self._bodies.move_to_end(commit_id)
            return body

    def _keep(self, commit_id: CommitId, body: bytes) -> None:
        self._bodies[commit_id] = body
        while sum(map(len, self._bodies.values())) > self._kept_bytes and len(self._bodies) > 1:
            self._bodies.popitem(last=False)

    async def _read(self, committed: CommittedSpan) -> bytes:
        if committed.object_key is None:
            body = await self._catalog.body(committed.commit_id)
            if body is None:
                raise BodyGone(f"{committed.commit_id} has no bytes any more")
            return body
        if self._store is None:
            raise CorruptFrame(f"{committed.object_key} is in a store, and there is none")
        return await self._store.get(committed.object_key)
