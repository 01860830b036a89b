"""The columns of the pipeline, as data: Arrow schemas, and the same as Spark's DDL.

The first seven columns of a record are those of Spark's own Kafka connector, with its names and
types. Sources give them in this order; transforms and sinks select from them by name.
"""

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

CREATE_TIME, LOG_APPEND_TIME, NO_TIMESTAMP_TYPE = 0, 1, -1
"""Values of `timestampType`; the last one is format 0's, which had no times."""

EXACT, BOUNDED, UNKNOWN = "exact", "bounded", "unknown"
"""Values of `appendTimeBound`. Bounded: the record came at `appendTime` or a little before."""

RECORDS = pa.schema([
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", TIMESTAMP),
    pa.field("timestampType", pa.int32()),
])  # fmt: skip
"""Times before the year -290308 or after 294247 do not fit microseconds and become the nearest."""

HEADER_COLUMN = pa.schema([pa.field("headers", HEADERS)])
"""Null for a record without headers, as in Spark's connector."""

METADATA = pa.schema([
    pa.field("timestampMs", pa.int64()),  # of `timestamp`, exact; -1: none
    pa.field("createTimeMs", pa.int64()),  # what the producer claimed, whatever the topic's type
    pa.field("createTime", TIMESTAMP),
    pa.field("appendTime", TIMESTAMP),  # null where nothing says when the record came
    pa.field("appendTimeBound", pa.string()),
    pa.field("producerId", pa.int64()),
    pa.field("producerEpoch", pa.int32()),
    pa.field("sequence", pa.int32()),  # of the record; -1 without
    pa.field("leaderEpoch", pa.int32()),
    pa.field("batchBaseOffset", pa.int64()),
    pa.field("codec", pa.string()),
    pa.field("segment", pa.int64()),  # base offset; null over the wire
    pa.field("position", pa.int64()),  # of the batch in its segment; null over the wire
])  # fmt: skip

ALL_COLUMNS = pa.schema([*RECORDS, *HEADER_COLUMN, *METADATA])

ARRIVED_FROM = pa.field("arrivedFromMs", pa.int64())
"""The record did not come before that time (ms); null where nothing says it, as while the broker's
clock had gone back. Not a column that users ask for: the counterpart of `appendTime`, which is
never too early, for readers that must never get an arrival that is too late."""


def records_schema(*, headers: bool = False, metadata: bool = False) -> pa.Schema:
    """The schema of records with the columns that were asked for."""
    fields = list(RECORDS)
    if headers:
        fields += HEADER_COLUMN
    if metadata:
        fields += METADATA
    return pa.schema(fields)


def _table(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


_PLACE = {"topic": pa.string(), "partition": pa.int32()}

BATCHES = _table(
    **_PLACE,
    segment=pa.int64(),
    position=pa.int64(),
    sizeBytes=pa.int64(),
    baseOffset=pa.int64(),
    lastOffset=pa.int64(),
    recordCount=pa.int32(),
    codec=pa.string(),
    baseTimeMs=pa.int64(),
    maxTimeMs=pa.int64(),
    timestampType=pa.int32(),
    isTransactional=pa.bool_(),
    isControl=pa.bool_(),
    producerId=pa.int64(),
    producerEpoch=pa.int32(),
    baseSequence=pa.int32(),
    leaderEpoch=pa.int32(),
)
"""A row for each record batch, markers of transactions included; every CRC was checked."""

SEGMENTS = _table(
    **_PLACE,
    baseOffset=pa.int64(),
    endOffset=pa.int64(),  # up to where it may be read
    sizeBytes=pa.int64(),
    isActive=pa.bool_(),
    minTimeMs=pa.int64(),  # times by the zone map; null where there is none
    maxTimeMs=pa.int64(),
    firstArrivalMs=pa.int64(),
    lastArrivalMs=pa.int64(),
    isArrivalEstimated=pa.bool_(),
    modifiedMs=pa.int64(),
)
TIME_INDEX = _table(**_PLACE, segment=pa.int64(), timestampMs=pa.int64(), offset=pa.int64())
OFFSET_INDEX = _table(**_PLACE, segment=pa.int64(), offset=pa.int64(), position=pa.int64())
PARTITIONS = _table(
    **_PLACE,
    topicId=pa.string(),
    startOffset=pa.int64(),
    endOffset=pa.int64(),  # high watermark; for committed records the last stable offset
    sizeBytes=pa.int64(),
    directory=pa.string(),
)

VIEWS = {
    "batches": BATCHES,
    "segments": SEGMENTS,
    "time_index": TIME_INDEX,
    "offset_index": OFFSET_INDEX,
    "partitions": PARTITIONS,
}
"""Views other than records, by the option `view`."""
