"""The rows of open transactions as plain Python, beside those of `ModelCatalog`.

One contract suite holds it and PostgreSQL to the same answers.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broker.fleet.catalog.ledger import (
    EndedPartition,
    OrderAnswer,
    TransactionOrder,
    answer_to,
)
from broker.fleet.catalog.rows import Incarnation, PartitionKey
from tests.support.fleet.model_catalog import ModelCatalog


@dataclass(frozen=True, slots=True)
class Row:
    """A row of `txn_part`."""

    epoch: int
    coordinator_epoch: int
    number: int
    commits: bool | None = None


class LedgerRows:
    """The rows, which all nodes share."""

    def __init__(self, catalog: ModelCatalog) -> None:
        self.catalog = catalog
        self.newest: dict[int, tuple[int, int, int]] = {}
        """By producer: epoch and number of its newest order, and the coordinator's shard."""
        self.parts: dict[tuple[int, PartitionKey], Row] = {}
        self.events: list[asyncio.Event] = []

    def note(self) -> None:
        """Everybody hears of a change."""
        for each in self.events:
            each.set()


class ModelLedger:
    """The calls of the port, by one node."""

    def __init__(self, rows: LedgerRows) -> None:
        self._rows = rows
        self._changed = asyncio.Event()
        self._changed.set()
        rows.events.append(self._changed)

    async def order(self, order: TransactionOrder) -> OrderAnswer:
        there = self._rows.catalog.parts.keys() & set(order.partitions)
        return answer_to(order, self._ordered(order), len(there))

    def _ordered(self, order: TransactionOrder) -> OrderAnswer:
        catalog, me, shard = self._rows.catalog, order.incarnation, order.shard
        node = catalog.node_rows.get(me.node_id)
        if node is None or node.is_fenced or node.incarnation != me:
            return OrderAnswer.FENCED
        if not catalog.owns(me, shard):
            return OrderAnswer.STALE
        mine = shard.epoch, order.number, shard.shard_id
        newest = self._rows.newest.get(order.producer_id, (0, 0, 0))
        if newest[:2] >= mine[:2]:
            return OrderAnswer.ALREADY if newest == mine else OrderAnswer.LATE
        self._rows.newest[order.producer_id] = mine
        self._apply(order)
        return OrderAnswer.OK

    def _apply(self, order: TransactionOrder) -> None:
        parts = self._rows.parts
        row = Row(order.producer_epoch, order.shard.epoch, order.number, order.commits)
        if order.commits is not None:
            for place in parts:
                if place[0] == order.producer_id:
                    parts[place] = row
            self._rows.note()
            return
        for key in order.partitions:
            before = parts.get((order.producer_id, key))
            if key in self._rows.catalog.parts and (before is None or before.commits is None):
                parts[order.producer_id, key] = row

    async def joined(
        self, producer_id: int, keys: Sequence[PartitionKey]
    ) -> Mapping[PartitionKey, int]:
        found = {key: self._there().get((producer_id, key)) for key in keys}
        return {key: row.epoch for key, row in found.items() if row and row.commits is None}

    async def ended(self, me: Incarnation, at_most: int) -> Sequence[EndedPartition]:
        catalog = self._rows.catalog
        return [
            EndedPartition(
                producer_id, key, row.epoch, row.coordinator_epoch, row.number, row.commits
            )
            for (producer_id, key), row in self._there().items()
            if row.commits is not None
            and catalog.shard_rows[catalog.parts[key].shard_id].owner == me
        ][:at_most]

    async def marked(self, rows: Sequence[EndedPartition]) -> None:
        for each in rows:
            row = self._there().get((each.producer_id, each.partition))
            mine = each.coordinator_epoch, each.number
            if row and row.commits is not None and (row.coordinator_epoch, row.number) == mine:
                del self._rows.parts[each.producer_id, each.partition]
        self._rows.note()

    async def unmarked(self, producer_ids: Sequence[int]) -> frozenset[int]:
        ended = {each for (each, _), row in self._there().items() if row.commits is not None}
        return frozenset(ended & set(producer_ids))

    async def forget(self) -> None:
        raise NotImplementedError("the model has no days")

    async def changed(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    def _there(self) -> dict[tuple[int, PartitionKey], Row]:
        """Those of partitions that are there: what was deleted has none."""
        there, parts = self._rows.catalog.parts, self._rows.parts
        for place in [each for each in parts if each[1] not in there]:
            del parts[place]
        return parts
