"""Batches that the broker itself makes, ready to be appended: markers, what coordinators remember.

They are made well, so nothing is judged: the walk over their records gathers what indexes need.
"""

from protocol.records.batch import HEADER_BYTES, MAX_INT64, MIN_INT64, NO_TIMESTAMP, read_header
from protocol.records.compression import Codec, inflate
from protocol.records.walk import check_records
from storage.validation.checked_batch import CheckedBatch


def own_batch(batch: bytearray, now_ms: int) -> CheckedBatch:
    """A batch as `build_batch` makes it; `now_ms` is its arrival."""
    records = memoryview(batch)
    header = read_header(records)
    payload = records[HEADER_BYTES:]
    if header.codec is not Codec.NONE:
        payload = memoryview(inflate(header.codec, payload))
    facts = check_records(payload, header.record_count, header.base_timestamp, MIN_INT64, MAX_INT64)
    return CheckedBatch(records, header, facts.max_timestamp, facts, NO_TIMESTAMP, now_ms)
