"""A batch that another leader has stored, as a log takes it over: not a byte changes.

Offset, epoch and stamp are in its bytes, its arrival comes with it. What the zone map says of its
times is found by the rules of the topic, as the other leader found it.
"""

from protocol.records.batch import (
    HEADER_BYTES,
    MAX_INT64,
    MIN_INT64,
    NO_TIMESTAMP,
    CorruptBatch,
    crc_matches,
    read_header,
)
from protocol.records.compression import Codec, inflate
from protocol.records.markers import marker_of
from protocol.records.walk import RecordFacts, check_records
from storage.validation.checked_batch import CheckedBatch
from storage.validation.dirty_timestamps import Buffer, TimeRules, look_over, zone_flags


def committed_batch(data: bytearray, arrival_ms: int, rules: TimeRules) -> CheckedBatch:
    """The batch as it is appended. CorruptBatch when its bytes are not what they were."""
    records = memoryview(data)
    header = read_header(records)
    if header.size_bytes != len(data) or not crc_matches(records, 0, header):
        raise CorruptBatch(f"the batch at offset {header.base_offset} is damaged")
    if header.is_control and header.producer_id >= 0 and marker_of(records) is None:
        raise CorruptBatch(f"the control batch at offset {header.base_offset} has no marker")
    payload: Buffer = records[HEADER_BYTES:]
    if header.codec is not Codec.NONE:
        payload = inflate(header.codec, payload)
    facts = check_records(payload, header.record_count, header.base_timestamp, MIN_INT64, MAX_INT64)
    stamp, flags = header.max_timestamp, 0
    if not header.is_log_append_time:
        stamp = NO_TIMESTAMP
        flags = _flags(
            payload, header.record_count, header.base_timestamp, facts, rules, arrival_ms
        )
    return CheckedBatch(
        records, header, header.max_timestamp, facts, stamp, arrival_ms, flags, is_committed=True
    )


def _flags(  # noqa: PLR0917 - private, called by position
    payload: Buffer,
    count: int,
    base_timestamp: int,
    facts: RecordFacts,
    rules: TimeRules,
    arrival_ms: int,
) -> int:
    limits = rules.limits(arrival_ms)
    if facts.min_timestamp >= limits.oldest and facts.max_timestamp <= limits.latest:
        return 0
    _, edges = look_over(payload, count, base_timestamp, limits, rules.action)
    return zone_flags(facts.min_timestamp, facts.max_timestamp, limits, edges)
