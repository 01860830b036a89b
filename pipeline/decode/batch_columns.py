"""The columns of a table of batches, in the order of `protocol.records.scan.BatchRow`."""

ROW_NUMBERS = 12
(
    POSITION,
    BASE_OFFSET,
    LAST_OFFSET,
    BASE_TIME,
    MAX_TIME,
    SIZE,
    COUNT,
    ATTRIBUTES,
    PRODUCER,
    PRODUCER_EPOCH,
    SEQUENCE,
    LEADER_EPOCH,
) = range(ROW_NUMBERS)
