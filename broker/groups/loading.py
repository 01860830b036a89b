"""Reads groups back from a partition of `__consumer_offsets`. Runs on a lane; changes nothing.

Later records win over earlier ones, a record without a value takes back. Offsets that a transaction
commits count when its marker says so (a Kafka directory may hold such). Records of kinds that are
not served are stepped over; a record of ours that cannot be read is counted and stepped over; a
damaged batch ends it with CorruptBatch, because what was read would be wrong.
"""

from dataclasses import dataclass, field

from broker.groups.consumer.loading import RememberedConsumers, apply
from broker.groups.pending import PendingOffsets
from broker.groups.records.classic import (
    AnyRow,
    GroupMetadataValue,
    GroupRow,
    OffsetCommitValue,
    OffsetRow,
    read_row,
)
from broker.groups.records.consumer import ConsumerRow
from broker.groups.records.share import ShareRow
from broker.groups.records.streams import StreamsRow
from broker.groups.share.loading import RememberedShares, apply_share
from broker.groups.streams.loading import RememberedStreams, apply_streams
from broker.state.reading import LeftOut, batches_of
from protocol.records.batch import BatchHeader
from protocol.records.markers import COMMIT, read_marker
from protocol.records.record import Record, iter_records
from storage.log.log import Log

Place = tuple[str, int]


@dataclass(slots=True)
class RememberedGroups:
    """State of groups in one partition."""

    groups: dict[str, GroupMetadataValue] = field(default_factory=dict)
    consumers: dict[str, RememberedConsumers] = field(default_factory=dict)
    shares: dict[str, RememberedShares] = field(default_factory=dict)
    streams: dict[str, RememberedStreams] = field(default_factory=dict)
    offsets: dict[str, dict[Place, OffsetCommitValue]] = field(default_factory=dict)
    pending: PendingOffsets = field(default_factory=PendingOffsets)
    """Offsets of transactions that have not ended."""
    record_count: int = 0
    left_out: LeftOut = field(default_factory=LeftOut)
    """Records of ours that could not be read."""


class Replay:
    """Applies records in the order of the log."""

    def __init__(self) -> None:
        """Nothing was read."""
        self.remembered = RememberedGroups()

    def batch(self, data: memoryview, header: BatchHeader) -> None:
        """One batch."""
        for record in iter_records(data):
            self.remembered.record_count += 1
            try:
                if header.is_control:
                    self._end(record, header.producer_id)
                else:
                    self._read(record, header)
            except Exception as error:  # noqa: BLE001 - whatever it holds, the others count
                self.remembered.left_out.add(record.offset, error)

    def _read(self, record: Record, header: BatchHeader) -> None:
        row = read_row(record.key, record.value)
        if isinstance(row, OffsetRow):
            self._offset(row, header)
        elif row is not None:
            self._apply(row)

    def _offset(self, row: OffsetRow, header: BatchHeader) -> None:
        pending, group_id = self.remembered.pending, row.key.group
        place = row.key.topic, row.key.partition
        if header.is_transactional and row.value is not None:
            pending.add(header.producer_id, group_id, {place: row.value})
            return
        pending.supersede(group_id, [place])
        self._apply(row)

    def _end(self, record: Record, producer_id: int) -> None:
        marker = read_marker(record)
        commit = marker is not None and marker.kind == COMMIT
        ended = self.remembered.pending.take(producer_id, lambda _: True, commit=commit)
        if commit:
            for group_id, offsets in ended.items():
                if offsets:
                    self.remembered.offsets.setdefault(group_id, {}).update(offsets)

    def _apply(self, row: AnyRow) -> None:
        if isinstance(row, ConsumerRow):
            apply(row, self.remembered.consumers)
            return
        if isinstance(row, ShareRow):
            apply_share(row, self.remembered.shares)
            return
        if isinstance(row, StreamsRow):
            apply_streams(row, self.remembered.streams)
            return
        if isinstance(row, GroupRow):
            if row.value is None:
                self.remembered.groups.pop(row.group, None)
            else:
                self.remembered.groups[row.group] = row.value
            return
        place = row.key.topic, row.key.partition
        offsets = self.remembered.offsets.setdefault(row.key.group, {})
        if row.value is not None:
            offsets[place] = row.value
            return
        offsets.pop(place, None)
        if not offsets:
            del self.remembered.offsets[row.key.group]


def remembered(log: Log, chunk_bytes: int) -> RememberedGroups:
    """Reads the state of groups in a partition, in pieces of about `chunk_bytes`. Blocks.

    KafkaError when the disk refuses, CorruptBatch when a batch is damaged.
    """
    replay = Replay()
    for data, header in batches_of(log, chunk_bytes):
        replay.batch(data, header)
    return replay.remembered
