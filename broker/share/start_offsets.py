"""Start of a share partition that nobody has read, at the first fetch (KIP-932, KIP-1106)."""

from functools import partial

from broker.partitions.partition import Partition
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after
from config.offset_reset import EARLIEST, LATEST, duration_ms
from protocol.errors import KafkaError
from storage.segment.log_snapshot import TimestampOffset


def start_offset(partition: Partition, strategy: str, now_ms: int) -> int | Deferred[int]:
    """The offset; later when the log has to be searched. Fails with KafkaError.

    Where nothing is as young as a duration asks for, it begins with the next record, as Kafka.
    """
    snapshot = partition.log.snapshot
    if strategy == LATEST:
        return snapshot.high_watermark
    if strategy == EARLIEST:
        return snapshot.log_start_offset
    end = snapshot.high_watermark
    found = partition.find_timestamp(now_ms - duration_ms(strategy), end)
    chosen = partial(_offset, end)
    return after(found, chosen, _refuse) if isinstance(found, Deferred) else chosen(found)


def _offset(end: int, found: TimestampOffset | None) -> int:
    return end if found is None else found.offset


def _refuse(error: KafkaError) -> int:
    raise error
