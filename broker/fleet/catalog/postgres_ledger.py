"""The rows of open transactions in PostgreSQL."""

import asyncio
from collections.abc import Mapping, Sequence

from broker.fleet.catalog.ledger import (
    EndedPartition,
    OrderAnswer,
    TransactionOrder,
    answer_to,
)
from broker.fleet.catalog.line import LIMITS, Line, LineLimits
from broker.fleet.catalog.listener import ChangeListener
from broker.fleet.catalog.rows import Incarnation, PartitionKey

ORDER = """
SELECT order_transaction_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10), (SELECT count(*)
  FROM part JOIN (SELECT DISTINCT * FROM unnest($9::uuid[], $10::int[])) u(t, p)
    ON part.topic_id = u.t AND part.part = u.p)
"""
JOINED = """
SELECT x.topic_id, x.part, x.producer_epoch
  FROM txn_part x JOIN unnest($2::uuid[], $3::int[]) u(t, p) ON x.topic_id = u.t AND x.part = u.p
  WHERE x.producer_id = $1 AND x.commits IS NULL
"""
# In no order: those that cannot be marked now do not hold up the others.
ENDED = """
SELECT x.* FROM txn_part x JOIN part USING (topic_id, part) JOIN shard s USING (shard_id)
  WHERE x.commits IS NOT NULL AND s.owner = $1 AND s.incarnation = $2 ORDER BY random() LIMIT $3
"""
MARKED = "SELECT marked_v1($1, $2, $3, $4, $5)"
UNMARKED = """
SELECT DISTINCT producer_id FROM txn_part WHERE producer_id = ANY ($1) AND commits IS NOT NULL
"""
FORGET = """
DELETE FROM txn WHERE ordered < clock_timestamp() - interval '1 day'
  AND NOT EXISTS (SELECT FROM txn_part x WHERE x.producer_id = txn.producer_id)
"""


class PostgresLedger:
    """The `TransactionLedger` of a database. Used from one event loop."""

    def __init__(self, url: str, node_id: int, limits: LineLimits = LIMITS) -> None:
        """Nothing is connected."""
        self._orders, self._others = Line(url, limits), Line(url, limits)
        self._listener = ChangeListener(url, [f"horolog_transactions_{node_id}"], limits)

    async def close(self) -> None:
        """Waits a while for what is under way, and ends the connections."""
        self._listener.close()
        await asyncio.gather(self._orders.close(), self._others.close())

    async def order(self, order: TransactionOrder) -> OrderAnswer:
        """As the port has it."""
        [row] = await self._orders.ask(
            ORDER, *order.incarnation, *order.shard, order.producer_id, order.number,
            order.producer_epoch, order.commits, *_columns(order.partitions),
        )  # fmt: skip
        return answer_to(order, OrderAnswer(row[0]), row[1])

    async def joined(
        self, producer_id: int, keys: Sequence[PartitionKey]
    ) -> Mapping[PartitionKey, int]:
        """As the port has it."""
        rows = await self._others.ask(JOINED, producer_id, *_columns(keys))
        return {
            PartitionKey(each["topic_id"], each["part"]): each["producer_epoch"] for each in rows
        }

    async def ended(self, me: Incarnation, at_most: int) -> Sequence[EndedPartition]:
        """As the port has it."""
        return [
            EndedPartition(
                each["producer_id"],
                PartitionKey(each["topic_id"], each["part"]),
                each["producer_epoch"],
                each["coordinator_epoch"],
                each["number"],
                each["commits"],
            )
            for each in await self._others.ask(ENDED, *me, at_most)
        ]

    async def marked(self, rows: Sequence[EndedPartition]) -> None:
        """As the port has it."""
        await self._others.ask(
            MARKED,
            [each.producer_id for each in rows],
            *_columns([each.partition for each in rows]),
            [each.coordinator_epoch for each in rows],
            [each.number for each in rows],
        )

    async def unmarked(self, producer_ids: Sequence[int]) -> frozenset[int]:
        """As the port has it."""
        rows = await self._others.ask(UNMARKED, producer_ids)
        return frozenset(each["producer_id"] for each in rows)

    async def forget(self) -> None:
        """As the port has it."""
        await self._others.ask(FORGET)

    async def changed(self, seconds: float) -> bool:
        """As the port has it."""
        return await self._listener.wait(seconds)


def _columns(keys: Sequence[PartitionKey]) -> list[list[object]]:
    return [[each.topic_id for each in keys], [each.number for each in keys]]
