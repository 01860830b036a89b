"""A topic of the broker's own with one partition, to which it appends rows: an audit.

Internal: clients read it, and neither write nor change it. It is made with its first rows.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.validation.internal_batch import own_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.partitions.partition import Partition
    from broker.runtime.probes import BrokerProbes
    from broker.topics.creation import TopicRules
    from broker.topics.topic_catalog import TopicCatalog
    from storage.env import Clock

ROWS_A_BATCH = 500
ACKS_LEADER = 1
SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": str(7 * 86_400_000),
    "retention.bytes": str(1 << 28),
    "segment.bytes": str(32 << 20),
}
"""Of a topic that the broker makes for it."""


class OwnTopic:
    """One such topic. Used from the event loop only."""

    def __init__(
        self,
        name: str,
        topics: TopicCatalog,
        rules: TopicRules,
        clock: Clock,
        probes: BrokerProbes,
    ) -> None:
        """Touches nothing."""
        self.name = name
        self._topics = topics
        self._rules = rules
        self._clock = clock
        self._probes = probes

    async def append(self, rows: Sequence[tuple[bytes | None, bytes]]) -> None:
        """Appends keys and values, at most `ROWS_A_BATCH`. KafkaError or StorageError."""
        target, now_ms = await self._partition(), self._clock.now_ms()
        batch = build_batch([(now_ms, *row) for row in rows], codec=Codec.LZ4)
        outcome = target.writer.append_own(own_batch(batch, now_ms), ACKS_LEADER)
        if isinstance(outcome, Deferred):
            await wait_for(outcome)
        self._probes.appended(target.topic, len(batch), len(rows), None)
        await asyncio.sleep(0)

    async def _partition(self) -> Partition:
        catalog = self._topics
        async with catalog.changing:
            if self.name not in catalog.image.topics:
                plan = self._rules.plan()
                plan.add(self.name, 1, SETTINGS, own=True)
                await catalog.create(plan.topics)
        return catalog.image.topics[self.name].partitions[0]
