"""Records that a change of settings would delete, reported before it applies (time.md 5).

A request with `validate_only` changes nothing, so its answer can warn: error NONE, and a message
when the change would remove more than the present settings. Decided by the same function as the
preview of the admin API.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from broker.topics.retention_preview import Leaving, preview
from config.quantities import instant, size
from config.resources.kinds import ResourceKind
from config.store import SettingsChange
from config.topic import TopicConfig
from storage.cleaner.cleanable_logs import is_compacted
from storage.errors import StorageError
from storage.log.lifecycle import learn_times, limits_of

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from broker.runtime.lanes import DiskLane
    from broker.topics.topic_catalog import TopicCatalog
    from config.store import ConfigStore
    from storage.env import Clock

LOGS_AT_A_TIME = 16
SEGMENTS_LOOKED_UP = 4  # of each log, in one visit to the lane
SHOWN_LOGS = 3


class Loss(NamedTuple):
    """Loss of one log."""

    partition: "Partition"
    leaving: Leaving


class RemovalForecast:
    """Forecast of the records that a change of settings would remove."""

    def __init__(
        self, topics: "TopicCatalog", config: "ConfigStore", clock: "Clock", lane: "DiskLane"
    ) -> None:
        """Judges the logs that exist when it is asked; reads on `lane`."""
        self._topics = topics
        self._config = config
        self._clock = clock
        self._lane = lane

    async def loss_warning(self, change: SettingsChange) -> str:
        """Records that `change` would remove, at the next pass or by compaction; empty for none."""
        if change.kind not in (ResourceKind.BROKER, ResourceKind.TOPIC):
            return ""
        return await self.removal_warning(change) or self.compaction_warning(change)

    async def removal_warning(self, change: SettingsChange) -> str:
        """Records that `change` would remove beyond the present settings; empty for none."""
        affected = list(self._affected(change))
        losses: list[Loss] = []
        for begin in range(0, len(affected), LOGS_AT_A_TIME):
            logs = affected[begin : begin + LOGS_AT_A_TIME]
            while not await self._lane.run(_learn, [each for each, _ in logs]):
                pass
            now_ms = self._clock.now_ms()
            losses += await self._lane.run(_losses, logs, now_ms)
        return warning_text(losses)

    def compaction_warning(self, change: SettingsChange) -> str:
        """Partitions with records that would be compacted from now on; empty for none."""
        begun = [
            str(each)
            for name, topic in self._topics.image.topics.items()
            if self._begins_compaction(change, name)
            for each in topic.partitions
            if each.log.snapshot.log_end_offset > each.log.snapshot.log_start_offset
        ]
        if not begun:
            return ""
        more = f" and {len(begun) - SHOWN_LOGS} more" if len(begun) > SHOWN_LOGS else ""
        return f"would begin to compact {', '.join(begun[:SHOWN_LOGS])}{more}"

    def _begins_compaction(self, change: SettingsChange, topic: str) -> bool:
        config = self._config
        return is_compacted(config.topic_config_after(change, topic)) and not is_compacted(
            config.topic_config(topic)
        )

    def _affected(self, change: SettingsChange) -> "Iterator[tuple[Partition, TopicConfig]]":
        """The logs in service for which retention would mean something else, and their settings."""
        topics = self._topics.image.topics
        for name in topics if change.topic is None else [change.topic]:
            if name not in topics:
                continue
            after = self._config.topic_config_after(change, name)
            if limits_of(after) != limits_of(self._config.topic_config(name)):
                for each in topics[name].partitions:
                    if each.log.takes_changes:
                        yield each, after


def warning_text(losses: list[Loss]) -> str:
    """One sentence for all logs, with the offsets and times of the first few."""
    if not losses:
        return ""
    segments = sum(loss.leaving.segments for loss in losses)
    removed = size(sum(loss.leaving.size_bytes for loss in losses))
    shown = "; ".join(_log_text(loss) for loss in losses[:SHOWN_LOGS])
    more = len(losses) - SHOWN_LOGS
    rest = f"; and of {more} more partitions" if more > 0 else ""
    plural = "" if segments == 1 else "s"
    return f"would remove {segments} segment{plural}, {removed}, at the next pass: {shown}{rest}"


def _log_text(loss: Loss) -> str:
    leaving = loss.leaving
    until = "" if leaving.newest_ms is None else instant(leaving.newest_ms)["iso"] or ""
    times = f", records until {until}" if until else ""
    return f"offsets {leaving.first_offset}-{leaving.start_offset - 1} of {loss.partition}{times}"


def _learn(partitions: "list[Partition]") -> bool:
    """On a lane: whether the times of all segments are known now, or cannot be."""
    all_known = True
    for each in partitions:
        try:
            all_known = learn_times(each.log, SEGMENTS_LOOKED_UP) and all_known
        except StorageError:
            continue  # the round of retention says what is wrong with it
    return all_known


def _losses(logs: "list[tuple[Partition, TopicConfig]]", now_ms: int) -> list[Loss]:
    found = []
    for partition, after in logs:
        if not _knows(partition):
            continue
        would = preview(partition.log, after, now_ms)
        if would.segments > preview(partition.log, partition.log.config, now_ms).segments:
            found.append(Loss(partition, would))
    return found


def _knows(partition: "Partition") -> bool:
    try:
        return learn_times(partition.log, 0)
    except StorageError:
        return False
