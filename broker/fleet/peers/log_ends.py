"""Ends of partitions that other nodes of the fleet lead, for the lag of groups: asked by
ListOffsets, of each node at once, and remembered for a second.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

from broker.fleet.peers.peers import PeerSilent, PeerUnreached
from broker.partitions.leadership import NOBODY
from broker.partitions.partition import Partition
from protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

FRESH_SECONDS = 1.0
MOST_PARTITIONS = 1000
"""In one request."""
NO_REPLICA, READ_UNCOMMITTED, LATEST = -1, 0, -1


class _Known(NamedTuple):
    end: int
    at: float
    leader_epoch: int


class PeerLogEnds:
    """High watermarks of partitions, wherever they are led. Used from the event loop."""

    def __init__(
        self, ask: Callable[[int, Any], Awaitable[Any]], monotonic: Callable[[], float]
    ) -> None:
        """Nobody was asked."""
        self._ask = ask
        self._monotonic = monotonic
        self._known: dict[Partition, _Known] = {}

    async def of(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """Ends by partition; those whose leader does not answer, or is nobody, are left out."""
        found: dict[Partition, int] = {}
        missing: dict[int, list[Partition]] = {}
        self._forget()
        for each in partitions:
            elsewhere = each.leader_elsewhere
            known = self._known.get(each)
            if elsewhere is None:
                found[each] = each.log.snapshot.high_watermark
            elif known is not None and known.leader_epoch == elsewhere.epoch:
                found[each] = known.end
            elif elsewhere.node_id != NOBODY:
                missing.setdefault(elsewhere.node_id, []).append(each)
        for answers in await asyncio.gather(*(self._of_node(*each) for each in missing.items())):
            found.update(answers)
        return found

    def _forget(self) -> None:
        old = self._monotonic() - FRESH_SECONDS
        for partition in [each for each, known in self._known.items() if known.at < old]:
            del self._known[partition]

    async def _of_node(self, node_id: int, partitions: list[Partition]) -> dict[Partition, int]:
        found: dict[Partition, int] = {}
        for at in range(0, len(partitions), MOST_PARTITIONS):
            some = partitions[at : at + MOST_PARTITIONS]
            try:
                answer = await self._ask(node_id, _request(some))
            except (PeerSilent, PeerUnreached):
                break
            found.update(self._remembered(some, answer))
        return found

    def _remembered(self, asked: list[Partition], answer: Any) -> dict[Partition, int]:
        by_place = {(each.topic, each.index): each for each in asked}
        now, found = self._monotonic(), dict[Partition, int]()
        for topic in answer.topics:
            for each in topic.partitions:
                partition = by_place.get((topic.name, each.partition_index))
                if partition is not None and not each.error_code:
                    found[partition] = each.offset
                    self._known[partition] = _Known(each.offset, now, partition.leader_epoch)
        return found


def _request(partitions: list[Partition]) -> ListOffsetsRequest:
    by_topic: dict[str, list[ListOffsetsPartition]] = {}
    for each in partitions:
        wanted = ListOffsetsPartition(partition_index=each.index, timestamp=LATEST)
        by_topic.setdefault(each.topic, []).append(wanted)
    topics = [ListOffsetsTopic(name=name, partitions=wanted) for name, wanted in by_topic.items()]
    return ListOffsetsRequest(
        replica_id=NO_REPLICA, isolation_level=READ_UNCOMMITTED, topics=topics
    )
