"""The share partitions in memory: each from its first fetch until its group has no session left,
and no record of it waits for its next delivery.
"""

from collections.abc import Iterable
from uuid import UUID

from broker.partitions.partition import Partition
from broker.share.served_partition import ServedPartition, ShareParts
from broker.share.state.key import ShareKey
from protocol.errors import ErrorCode, KafkaError

MAX_SERVED = 10_000


class ServedPartitions:
    """All share partitions that are served. Used from the event loop only."""

    def __init__(self, parts: ShareParts) -> None:
        """Nobody reads."""
        self._parts = parts
        self._by_group: dict[str, dict[ShareKey, ServedPartition]] = {}
        self.count: int = 0
        """Number of share partitions in memory."""

    def serve(self, key: ShareKey, partition: Partition) -> ServedPartition:
        """A share partition; one that is not in memory is being loaded. Raises KafkaError."""
        served = self._by_group.get(key.group, {}).get(key)
        if served is not None:
            if served.is_current and served.partition is partition:
                served.when_idle = None
                return served
            self._drop(key)
            if served.error is not None:
                raise served.error
        if self.count >= MAX_SERVED:
            text = f"{MAX_SERVED} share partitions are served already"
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text)
        return self._load(key, partition)

    def _load(self, key: ShareKey, partition: Partition) -> ServedPartition:
        served = ServedPartition(key, partition, self._parts)
        self._by_group.setdefault(key.group, {})[key] = served
        self.count += 1
        served.load()
        if served.error is not None:
            self._drop(key)
            raise served.error
        return served

    def find(self, key: ShareKey) -> ServedPartition | None:
        """A share partition that is in memory; None when there is none, or it is out of date."""
        served = self._by_group.get(key.group, {}).get(key)
        return served if served is not None and served.is_current else None

    @property
    def in_flight(self) -> int:
        """Records from the first unfinished one of each to the last that was given out."""
        return sum(each.in_flight for each in self.all())

    def at_place(self, group: str, topic: str, index: int) -> ServedPartition | None:
        """A share partition that is in memory, by names; from any thread."""
        for key, served in list(self._by_group.get(group, {}).items()):
            if key.partition == index and served.partition.topic == topic:
                return served
        return None

    def all(self) -> list[ServedPartition]:
        """Every one of them; from any thread."""
        groups = list(self._by_group.values())
        return [each for group in groups for each in list(group.values())]

    def of_group(self, group: str) -> list[ServedPartition]:
        """Share partitions of a group."""
        return list(self._by_group.get(group, {}).values())

    def leave_group(self, group: str) -> None:
        """Forgets the share partitions of a group whose last session has ended, each as soon as
        none of its records waits for the next delivery.
        """
        for served in self.of_group(group):
            if served.is_waiting:
                served.when_idle = self._idle
            else:
                self._drop(served.key)

    def _idle(self, served: ServedPartition) -> None:
        if self._by_group.get(served.key.group, {}).get(served.key) is served:
            self._drop(served.key)

    def topics_deleted(self, topic_ids: Iterable[UUID]) -> None:
        """Forgets share partitions of topics that are gone."""
        gone = set(topic_ids)
        keys = [key for group in self._by_group.values() for key in group if key.topic_id in gone]
        for key in keys:
            self._drop(key)

    def led_no_more(self, partition: Partition) -> None:
        """Forgets what members read in a partition that another node leads: its leader reads the
        states, and goes on.
        """
        for served in self.all():
            if served.partition is partition:
                self._drop(served.key)
                served.wake()

    def _drop(self, key: ShareKey) -> None:
        of_group = self._by_group[key.group]
        of_group.pop(key).leave()
        self.count -= 1
        if not of_group:
            del self._by_group[key.group]
