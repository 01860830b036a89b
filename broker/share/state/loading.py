"""Reads share partitions back from a partition of `__share_group_state`. Runs on a lane.

The last snapshot counts, and the updates behind it. A record that cannot be read is counted and
stepped over; a damaged batch ends it with CorruptBatch, because what was read would be wrong.
"""

from dataclasses import dataclass, field

from broker.share.state.key import ShareKey
from broker.share.state.records import ShareUpdate, StoredShare, read_row
from broker.share.state.remembered import SharePartitionState
from broker.state.reading import LeftOut, batches_of
from protocol.records.record import Record, iter_records
from storage.log.log import Log

UNKNOWN = -1


@dataclass(slots=True)
class RememberedShareStates:
    """Share partitions of one state partition."""

    index: int = 0
    """The number of the state partition."""
    end_offset: int = 0
    """The end of the partition as it was read."""
    states: dict[ShareKey, SharePartitionState] = field(default_factory=dict)
    snapshots: dict[ShareKey, int] = field(default_factory=dict)
    """Offset of the first record that each of them is read from."""
    left_out: LeftOut = field(default_factory=LeftOut)
    """Records that could not be read."""


def remembered(log: Log, chunk_bytes: int) -> RememberedShareStates:
    """Reads the share partitions of a partition, in pieces of about `chunk_bytes`. Blocks.

    KafkaError when the disk refuses, CorruptBatch when a batch is damaged.
    """
    found = RememberedShareStates(log.partition, log.snapshot.log_end_offset)
    for data, header in batches_of(log, chunk_bytes):
        if header.is_control:
            continue
        for record in iter_records(data):
            try:
                _read(found, record)
            except Exception as error:  # noqa: BLE001 - whatever it holds, the others count
                found.left_out.add(record.offset, error)
    return found


def _read(found: RememberedShareStates, record: Record) -> None:
    row = read_row(record.key or b"", record.value)
    if row is None:
        return
    apply(row, found.states)
    if row.value is None:
        found.snapshots.pop(row.key, None)
    elif isinstance(row.value, SharePartitionState):
        found.snapshots[row.key] = record.offset
    else:
        found.snapshots.setdefault(row.key, record.offset)


def apply(row: StoredShare, states: dict[ShareKey, SharePartitionState]) -> None:
    """Applies a record to what was read before it."""
    key, value = row
    if value is None:
        states.pop(key, None)
    elif isinstance(value, ShareUpdate):
        before = states.get(key) or _unknown(value)
        states[key] = before.changed(
            value.leader_epoch, value.start_offset, value.finished, value.batches
        )
    else:
        newest = states[key].fenced_below if key in states else 0
        states[key] = value._replace(newest_leader=newest)


def _unknown(update: ShareUpdate) -> SharePartitionState:
    """For an update whose snapshot is missing: as Kafka, all that it says counts."""
    return SharePartitionState(
        update.snapshot_epoch, 0, update.leader_epoch, UNKNOWN, UNKNOWN, [], 0, 0
    )
