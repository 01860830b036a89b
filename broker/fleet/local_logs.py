"""The partitions of a node's shards as real logs: loaded from what is committed, read for commits.

What the disk has already is kept as far as it is committed, by the epochs; the rest is cut off, and
what is missing comes from commits of whoever owned the shard before.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from broker.fleet.catalog.rows import OwnedShard, PartitionKey, PartitionRow
from broker.fleet.frame import ArrivedBatch, CorruptFrame, StoredBatch
from broker.fleet.host import BytesOf, OwnedLog, WriteCommits
from broker.runtime.lanes import DiskLane
from config.topic import TopicConfig
from protocol.errors import DecodeError
from protocol.records.batch import read_header
from storage.directory.log_manager import LogManager
from storage.log.following import (
    EpochRange,
    agreed_end,
    append_committed,
    batches_between,
    has_unwritten_epoch,
)
from storage.log.log import Log
from storage.validation.dirty_timestamps import TimeRules


class LocalLog:
    """The `OwnedLog` of a log in this directory."""

    def __init__(
        self,
        partition: PartitionKey,
        shard: OwnedShard,
        log: Log,
        on_committed: "Callable[[LocalLog], None]",
    ) -> None:
        """All that it has is committed."""
        self.partition = partition
        self.shard = shard
        self.log = log
        self._on_committed = on_committed
        self.durable_offset = log.snapshot.log_end_offset

    @property
    def start_offset(self) -> int:
        """As the port has it."""
        return self.log.snapshot.log_start_offset

    @property
    def end_offset(self) -> int:
        """As the port has it."""
        return self.log.snapshot.log_end_offset

    def batches(self, begin: int, end: int, max_bytes: int) -> Sequence[StoredBatch]:
        """As the port has it. StorageError."""
        found = list[StoredBatch]()
        while begin < end and max_bytes > 0:  # one read ends with its segment
            part = [StoredBatch(*each) for each in batches_between(self.log, begin, end, max_bytes)]
            if not part:
                break
            found += part
            begin = part[-1].last_offset + 1
            max_bytes -= sum(len(each.data) for each in part)
        return found

    def mark_durable(self, offset: int) -> None:
        """As the port has it: readers see it from now on."""
        self.durable_offset = max(self.durable_offset, offset)
        _show(self.log, self.durable_offset)
        self._on_committed(self)


class Front(Protocol):
    """Clients' side of the logs."""

    def serve(self, log: LocalLog, commits: WriteCommits) -> None:
        """It may be written and read from now on; `commits` has what is written count."""

    def committed(self, log: LocalLog) -> None:
        """More of it may be seen."""

    def end_writes(self, log: LocalLog) -> None:
        """It may be read only; writes that wait go on waiting."""

    def end(self, log: LocalLog) -> None:
        """Neither, and what waits is answered with NOT_LEADER_OR_FOLLOWER."""


class LocalLogs:
    """The `ShardHost` of a data directory. Used from the event loop; blocking work is on the lane.

    The directory's logs are open, and nobody but this makes, cuts or removes any.
    """

    def __init__(
        self,
        logs: LogManager,
        lane: DiskLane,
        topic_config: Callable[[str], TopicConfig],
        front: Front,
    ) -> None:
        """Nothing is loaded. `topic_config` gives the settings of a topic by name."""
        self._logs = logs
        self._lane = lane
        self._topic_config = topic_config
        self._front = front

    async def load(self, row: PartitionRow, shard: OwnedShard, bytes_of: BytesOf) -> OwnedLog:
        """As the port has it. StorageError; CorruptFrame when a commit does not fit."""
        log = await self._lane.run(self._agreeing, row)
        log.durability.counts_commits = True
        have = log.snapshot.log_end_offset
        for committed in row.spans:
            if committed.span.end_offset > have:
                batches = await bytes_of(committed)
                have = await self._lane.run(_append, log, batches)
        end = row.spans[-1].span.end_offset if row.spans else row.log_start_offset
        if have != end:
            raise CorruptFrame(f"{row.topic}-{row.partition.number} ends at {have}, not at {end}")
        _show(log, end)
        if log.snapshot.log_start_offset < row.log_start_offset:
            await self._lane.run(log.delete_records, row.log_start_offset)
        return LocalLog(row.partition, shard, log, self._front.committed)

    def serve(self, log: OwnedLog, commits: WriteCommits) -> None:
        """As the port has it."""
        self._front.serve(_local(log), commits)

    def end_writes(self, log: OwnedLog) -> None:
        """As the port has it."""
        self._front.end_writes(_local(log))

    def end(self, log: OwnedLog) -> None:
        """As the port has it."""
        self._front.end(_local(log))

    def remove(self, log: OwnedLog) -> None:
        """As the port has it. Its directory goes with the next one that wants its name."""
        self._front.end(_local(log))

    def _agreeing(self, row: PartitionRow) -> Log:
        """On the lane: the log with nothing that is not committed."""
        log = self._opened(row)
        begin = max(log.snapshot.log_start_offset, row.log_start_offset)
        ranges = [
            EpochRange(each.span.epoch, max(each.span.base_offset, begin), each.span.end_offset)
            for each in row.spans
            if each.span.end_offset > begin
        ]
        while True:  # a cut may leave a zone of which the arrivals are no longer known
            agreed = agreed_end(log, ranges, begin)
            if agreed == log.snapshot.log_end_offset and not has_unwritten_epoch(log):
                return log
            log = self._logs.cut(log, agreed)

    def _opened(self, row: PartitionRow) -> Log:
        topic_id, number = row.partition
        config = self._topic_config(row.topic)
        first = row.spans[0].span.base_offset if row.spans else row.log_start_offset
        log = self._logs.logs.get((row.topic, number))
        if log is not None and not log.is_closed and log.topic_id == topic_id:
            log.reconfigure(config)
            if log.snapshot.log_end_offset >= first:
                return log
        if log is not None:  # another topic had the name; or all that it has was removed elsewhere
            self._logs.delete_log(row.topic, number)
        return self._logs.create_log(row.topic, number, topic_id, config, first)


def _append(log: Log, batches: Sequence[ArrivedBatch]) -> int:
    """On the lane: those that are missing; the end of the log."""
    rules, end = TimeRules(log.config), log.snapshot.log_end_offset
    try:
        for each in batches:
            if read_header(memoryview(each.data)).base_offset >= end:
                end = append_committed(log, each.data, each.arrival_ms, rules)
    except DecodeError as error:
        raise CorruptFrame(str(error)) from error
    return end


def _show(log: Log, end: int) -> None:
    log.durability.committed(end)
    log.mark_durable(end)  # its readers see it


def _local(log: OwnedLog) -> LocalLog:
    assert isinstance(log, LocalLog)
    return log
