"""Segments that nobody appends to end by a timer, so that their records can grow old (time.md 7).

Deadlines are kept in a heap of wall times. A look at a log costs nothing but reading its facts, so
appends need not tell of themselves: a log is looked at when its deadline may have come, at least
once a minute, and at once when its settings have changed.
"""

import asyncio
import heapq
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from broker.runtime.callbacks import failed
from broker.runtime.event_log import event
from broker.runtime.gathering import wait_for
from protocol.errors import KafkaError
from storage.errors import StorageError
from storage.log.lifecycle import knows_roll_deadline, roll_deadline, roll_if_due

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.guards.clock_guard import ClockWatch
    from broker.partitions.partition import Partition
    from broker.runtime.lanes import DiskLane
    from broker.topics.metadata_image import MetadataImage
    from broker.topics.topic_catalog import TopicCatalog
    from storage.env import Clock
    from storage.log.log import Log

    Faults = list[tuple[Partition, Exception]]

CHECK_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 60.0
LOOKS_AT_A_TIME = 256


class Rolling:
    """The heap and the rounds. Used from the event loop."""

    def __init__(
        self,
        topics: "TopicCatalog",
        clock: "Clock",
        clock_watch: "ClockWatch",
        lane: "DiskLane",
        rolled: "Callable[[Log], None]",
    ) -> None:
        """Knows no log. `rolled` receives each log that has a new segment."""
        self._topics = topics
        self._clock = clock
        self._clock_watch = clock_watch
        self._lane = lane
        self._rolled = rolled
        self._heap: list[tuple[float, int, Partition]] = []
        self._numbers = count()
        self._image: MetadataImage | None = None
        self._entries: dict[Partition, int] = {}  # the number of each one's entry that counts
        self.rolled_segments = 0

    def settings_changed(self, topic: str | None) -> None:
        """Look again at the logs of that topic, or at all."""
        now = self._clock.monotonic()
        topics = self._topics.image.topics
        for name in topics if topic is None else [topic]:
            for partition in topics[name].partitions if name in topics else ():
                if partition in self._entries:
                    self._look_at(partition, now)

    async def run(self) -> None:
        """Ends what is due; looks at no more logs than are due to be looked at."""
        self._take_in_new()
        if self._clock_watch.look():
            return
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            await self._look_at_all(self._pop_due(now), now)
            await asyncio.sleep(0)  # others' turn

    def _take_in_new(self) -> None:
        image = self._topics.image
        if image is self._image:
            return
        self._image = image
        present = {partition for topic in image.topics.values() for partition in topic.partitions}
        for gone in self._entries.keys() - present:
            del self._entries[gone]
        now = self._clock.monotonic()
        for partition in present - self._entries.keys():
            self._look_at(partition, now)

    def _pop_due(self, now: float) -> "list[Partition]":
        """Some of the logs to look at; entries that a later one replaced are dropped."""
        due: list[Partition] = []
        while self._heap and self._heap[0][0] <= now and len(due) < LOOKS_AT_A_TIME:
            _, number, partition = heapq.heappop(self._heap)
            if self._entries.get(partition) == number:
                due.append(partition)
        return due

    async def _look_at_all(self, due: "list[Partition]", now: float) -> None:
        """Looks at each; what an error or the end of the round leaves is looked at again."""
        left = dict.fromkeys(due)
        try:
            cold = [each for each in due if self._is_cold(each)]
            if cold:
                self._report(await self._lane.run(_learn, cold))
            for partition in due:
                try:
                    await self._look(partition, now)
                except Exception as error:  # noqa: BLE001 - the other logs are looked at
                    self._report([(partition, error)])
                    self._look_again(partition, now + LOOK_AGAIN_SECONDS)
                del left[partition]
        finally:
            for partition in left:
                self._look_again(partition, now)

    def _is_cold(self, partition: "Partition") -> bool:
        try:
            return not knows_roll_deadline(partition.log)
        except Exception as error:  # noqa: BLE001 - the other logs are looked at
            self._report([(partition, error)])
            return False

    def _report(self, faults: "Faults") -> None:
        for partition, error in faults:
            event("roll_failed", "warning", log=partition, error=repr(error))
            failed("task", error)

    def _look_again(self, partition: "Partition", when: float) -> None:
        if partition in self._entries:
            self._look_at(partition, when)

    async def _look(self, partition: "Partition", now: float) -> None:
        again = now + LOOK_AGAIN_SECONDS
        is_ours = partition.leader_elsewhere is None
        if is_ours and partition.log.takes_changes and knows_roll_deadline(partition.log):
            now_ms = self._clock.now_ms()
            deadline = roll_deadline(partition.log, now_ms)
            if deadline is not None:
                left = (deadline + 1 - now_ms) / 1000  # it is due once the deadline is past
                if left <= 0:
                    await self._roll(partition)
                else:
                    again = min(again, now + left)
        self._look_again(partition, again)

    async def _roll(self, partition: "Partition") -> None:
        log = partition.log
        if self._clock_watch.look():
            return
        now_ms = self._clock.now_ms()
        try:
            rolled = await wait_for(partition.writer.in_turn(partial(roll_if_due, log, now_ms)))
        except KafkaError as error:
            event("roll_failed", "warning", log=partition, error=error)
            return
        if rolled:
            self.rolled_segments += 1
            self._rolled(log)
            event("segment_rolled", log=partition, because="time", base_offset=_base(partition))

    def _look_at(self, partition: "Partition", when: float) -> None:
        number = self._entries[partition] = next(self._numbers)
        heapq.heappush(self._heap, (when, number, partition))


def _base(partition: "Partition") -> int:
    return partition.log.snapshot.active.base_offset


def _learn(partitions: "list[Partition]") -> "Faults":
    """On a lane: the times that a start has not looked up. Damage shows where it is read; returns
    errors that nobody expected.
    """
    faults: Faults = []
    for partition in partitions:
        try:
            roll_deadline(partition.log, now_ms=0)
        except StorageError:
            continue
        except Exception as error:  # noqa: BLE001 - the other logs are looked at
            faults.append((partition, error))
    return faults
