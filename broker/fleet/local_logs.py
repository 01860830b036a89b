"""The partitions of a node's shards as real logs: loaded from what is committed, read for commits.

What the disk has already is kept as far as it is committed, by the epochs; the rest is cut off, and
what is missing comes from commits of whoever owned the shard before.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from broker.fleet.catalog.rows import OwnedShard, PartitionKey, PartitionRow
from broker.fleet.frame import ArrivedBatch, CorruptFrame, StoredBatch
from broker.fleet.host import BytesOf, OwnedLog, WriteCommits
from broker.fleet.segment_parts import SegmentParts, begun, ranges_of
from broker.runtime.lanes import DiskLane, Turn
from config.topic import TopicConfig
from protocol.errors import DecodeError
from protocol.records.batch import read_header
from storage.cleaner.cleanable_logs import is_compacted
from storage.directory.log_manager import LogManager
from storage.errors import LogOffline
from storage.log.following import (
    EpochRange,
    agreed_end,
    append_committed,
    batches_between,
    has_unwritten_epoch,
)
from storage.log.log import Log
from storage.tier.manifests.local_state import LocalState
from storage.tier.manifests.manifest import Manifest
from storage.tier.remote_logs import RemoteLogs
from storage.validation.dirty_timestamps import TimeRules

T = TypeVar("T")


class LocalLog:
    """The `OwnedLog` of a log in this directory."""

    def __init__(
        self,
        partition: PartitionKey,
        shard: OwnedShard,
        log: Log,
        durable_offset: int,
        on_committed: "Callable[[LocalLog], None]",
    ) -> None:
        """All that it has below `durable_offset` is committed."""
        self.partition = partition
        self.shard = shard
        self.log = log
        self._on_committed = on_committed
        self.durable_offset = durable_offset

    @property
    def start_offset(self) -> int:
        """As the port has it."""
        return self.log.snapshot.log_start_offset

    @property
    def end_offset(self) -> int:
        """As the port has it."""
        return self.log.snapshot.log_end_offset

    @property
    def takes_records(self) -> bool:
        """As the port has it."""
        return self.log.fault is None

    def batches(self, begin: int, end: int, max_bytes: int) -> Sequence[StoredBatch]:
        """As the port has it. StorageError; LogOffline for batches of which it is not known when
        each came: their commits say it.
        """
        kept, found = self.log.arrivals, list[StoredBatch]()
        if kept is not None and begin < kept.begin:
            raise LogOffline(self.log.files.path, f"arrivals are known from {kept.begin} on")
        while begin < end and max_bytes > 0:  # one read ends with its segment
            part = [StoredBatch(*each) for each in batches_between(self.log, begin, end, max_bytes)]
            if not part:
                break
            found += part
            begin = part[-1].last_offset + 1
            max_bytes -= sum(len(each.data) for each in part)
        return found

    def settled(self, offset: int) -> None:
        """As the port has it."""
        if self.log.arrivals is not None:
            self.log.arrivals.forget(offset)

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


class StorePart(NamedTuple):
    """Segments in the store, and the lane of those that ask it."""

    parts: SegmentParts
    remote: RemoteLogs
    lane: DiskLane

    def lead(self, log: Log, manifest: Manifest, epoch: int) -> None:
        """The log reads what the store has, and this node writes manifests of this epoch."""
        start = log.snapshot.local_start_offset if manifest.segments else 0
        self.remote.led(log, LocalState(begun(manifest), start), epoch)


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
        away: StorePart | None = None,
    ) -> None:
        """Nothing is loaded. `topic_config` gives the settings of a topic by name; without `away`
        all is in commits.
        """
        self._logs = logs
        self._lane = lane
        self._topic_config = topic_config
        self._front = front
        self._away = away
        self._disk, self._adopting = Turn(), Turn()
        """One at a time changes what the directory has, and one brings logs from the store."""
        self._coming: dict[tuple[str, int], asyncio.Future[Log]] = {}

    async def load(self, row: PartitionRow, shard: OwnedShard, bytes_of: BytesOf) -> OwnedLog:
        """As the port has it. StorageError; CorruptFrame when a commit does not fit."""
        await self._on_disk(self._end_before, row, shard.epoch)
        if self._away is None:
            log = await self._on_disk(self._agreeing, row)
        else:
            log = await self._led(self._away, row, shard)
        log.durability.counts_commits = True
        log.keep_arrivals()
        have = log.snapshot.log_end_offset
        for committed in row.spans:
            if committed.span.end_offset > have:
                batches = await bytes_of(committed)
                have = await self._on_disk(append_missing, log, batches)
        end = row.end_offset
        if have != end:
            raise CorruptFrame(f"{row.topic}-{row.partition.number} ends at {have}, not at {end}")
        _show(log, end)
        if log.snapshot.log_start_offset < row.log_start_offset:
            await self._on_disk(log.delete_records, row.log_start_offset)
        return LocalLog(row.partition, shard, log, end, self._front.committed)

    def _end_before(self, row: PartitionRow, epoch: int) -> None:
        """On the lane: what an earlier leader here still checks comes to nothing, or is there."""
        log = self._logs.logs.get((row.topic, row.partition.number))
        if log is not None:
            log.end_epochs_before(epoch)

    async def _on_disk(self, work: Callable[..., T], *args: object) -> T:
        return await self._disk.run(self._lane, work, *args)

    async def _led(self, away: StorePart, row: PartitionRow, shard: OwnedShard) -> Log:
        """A log whose part in the store is as the rows have it."""
        parts = away.parts
        late = self._coming.get((row.topic, row.partition.number))
        if late is not None:  # for a load that was given up
            await asyncio.wait([late])
        manifest = await away.lane.run(parts.manifest_of, row)
        log: Log | None
        if manifest.segments:
            log = await self._on_disk(self._agreeing_with, parts, row, manifest)
            if log is None:
                log = await self._adopted(away, row, manifest)
        else:
            log = await self._on_disk(self._agreeing, row)
        await self._on_disk(away.lead, log, manifest, shard.epoch)
        return log

    async def _adopted(self, away: StorePart, row: PartitionRow, manifest: Manifest) -> Log:
        """A log of the store, of which nothing is here."""
        name, config = (row.topic, row.partition.number), self._topic_config(row.topic)
        adopt = partial(away.parts.adopted, row, manifest, is_local=is_compacted(config))
        coming = await self._adopting.begin(away.lane, adopt)
        self._coming[name] = coming
        coming.add_done_callback(lambda _: self._coming.pop(name))
        log = await asyncio.shield(coming)
        log.reconfigure(config)
        return log

    def _agreeing_with(
        self, parts: SegmentParts, row: PartitionRow, manifest: Manifest
    ) -> Log | None:
        """On the lane: as `_agreeing`, for a log that has all that the store has, or goes on from
        there; None for one that does not, or is out of service: it is gone.

        A segment begins where the store's part ends, so that the next one that goes there does.
        """
        topic_id, number = row.partition
        log = self._logs.logs.get((row.topic, number))
        if log is None:
            return None
        log.reconfigure(self._topic_config(row.topic))
        end = manifest.end_offset
        if log.takes_changes and log.topic_id == topic_id:
            begin = _begin_of(log, row)
            ranges = [*ranges_of(manifest, begin), *_ranges(row, max(begin, end))]
            if log.snapshot.local_start_offset <= end <= agreed_end(log, ranges, begin):
                parts.note(log, manifest)
                log = self._cut_to_agreed(log, ranges, begin, end)
                if log.snapshot.log_end_offset == end or _counts(log, ranges, begin):
                    log = self._parted(log, end)
                    if agreed_end(log, ranges, begin) >= end and _is_whole(log, manifest, begin):
                        return log
        self._remove(log, row)
        return None

    def _parted(self, log: Log, offset: int) -> Log:
        begins = {each.base_offset for each in log.snapshot.local_segments}
        if offset not in begins and log.snapshot.log_end_offset >= offset:
            if log.snapshot.log_end_offset > offset:
                log = self._logs.cut(log, offset)
            log.roll()
        return log

    def serve(self, log: OwnedLog, commits: WriteCommits) -> None:
        """As the port has it."""
        self._front.serve(_local(log), commits)
        if self._away is not None:
            self._away.remote.served(_local(log).log)

    def end_writes(self, log: OwnedLog) -> None:
        """As the port has it."""
        self._front.end_writes(_local(log))

    def end(self, log: OwnedLog) -> None:
        """As the port has it."""
        self._front.end(_local(log))
        if self._away is not None:
            self._away.remote.resigned(_local(log).log)

    def remove(self, log: OwnedLog) -> None:
        """As the port has it. Its directory goes with the next one that wants its name."""
        self.end(log)

    def _agreeing(self, row: PartitionRow) -> Log:
        """On the lane: the log with nothing that is not committed."""
        log = self._opened(row)
        begin = _begin_of(log, row)
        ranges = _ranges(row, begin)
        log = self._cut_to_agreed(log, ranges, begin)
        if log.snapshot.log_end_offset > begin and not _counts(log, ranges, begin):
            self._remove(log, row)
        return self._opened(row)  # another one, if nothing of it counts

    def _cut_to_agreed(
        self, log: Log, ranges: Sequence[EpochRange], begin: int, least: int = 0
    ) -> Log:
        """Cuts nothing below `least`, nor where nothing would be left that counts: the log's start
        may be in the middle of a batch.
        """
        while True:  # a cut may leave a zone of which the arrivals are no longer known
            agreed = agreed_end(log, ranges, begin)
            is_all = agreed == log.snapshot.log_end_offset and not has_unwritten_epoch(log)
            is_end = is_all or agreed < least
            if is_end or agreed <= begin < log.snapshot.log_end_offset:
                return log
            log = self._logs.cut(log, agreed)

    def _remove(self, log: Log, row: PartitionRow) -> None:
        """On the lane: what the store has of the same topic stays."""
        if self._away is not None and log.topic_id == row.partition.topic_id:
            self._away.remote.left(log)
        self._logs.delete_log(row.topic, row.partition.number)

    def _opened(self, row: PartitionRow) -> Log:
        topic_id, number = row.partition
        config = self._topic_config(row.topic)
        first = row.first_offset
        log = self._logs.logs.get((row.topic, number))
        if log is not None and log.takes_changes and log.topic_id == topic_id:
            log.reconfigure(config)
            if log.snapshot.log_end_offset >= first and not _is_uncompared(log, row):
                return log
        if log is not None:  # another topic's, or out of service; or nothing that it has counts
            self._remove(log, row)
        return self._logs.create_log(row.topic, number, topic_id, config, first)


def _ranges(row: PartitionRow, begin: int) -> list[EpochRange]:
    """Epochs of what commits have, from `begin` on."""
    return [
        EpochRange(each.span.epoch, max(each.span.base_offset, begin), each.span.end_offset)
        for each in row.spans
        if each.span.end_offset > begin
    ]


def _counts(log: Log, ranges: Sequence[EpochRange], begin: int) -> bool:
    """True of a log that ends with records that are committed."""
    return begin < agreed_end(log, ranges, begin) == log.snapshot.log_end_offset


def _is_whole(log: Log, manifest: Manifest, begin: int) -> bool:
    """True where compaction finds all on the disk: a cut may take all of the first segments."""
    first = max(begin, manifest.segments[0].base_offset)
    return not is_compacted(log.config) or log.snapshot.local_start_offset <= first


def _is_uncompared(log: Log, row: PartitionRow) -> bool:
    """True of a log without records that count, which was compared with nothing: it may end in the
    middle of a batch, of which the first records were deleted, and what it knows of producers may
    never have been committed.
    """
    end = log.snapshot.log_end_offset
    may_be_others = end not in {row.first_offset, row.end_offset} or len(log.producers) > 0
    return end <= _begin_of(log, row) and may_be_others


def _begin_of(log: Log, row: PartitionRow) -> int:
    return max(log.snapshot.log_start_offset, row.log_start_offset)


def append_missing(log: Log, batches: Sequence[ArrivedBatch]) -> int:
    """Appends those behind the end; the new end. Blocks. CorruptFrame, StorageError."""
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
