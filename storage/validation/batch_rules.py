"""Checks one batch from a client, record by record, and makes it ready to be given its offsets.

Order as in Kafka (semantics.md 7.3, 6.2): shape, size, CRC, header, records, keys, times, segment's
size. Every
record is looked at, through the compiled walker; nothing per record happens here. The batch is
stamped or corrected in place where the topic asks for it, and repacked only when the topic's codec
differs. A refusal is a `KafkaError` and leaves the log untouched. Where the topic has something
else in mind for times out of bounds, the batch comes out with a `TimeRewrite` still to be done.
"""

from collections.abc import Sequence

from config.topic import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LENGTH_ENDS,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    InvalidRecords,
    crc_matches,
    read_header,
    set_max_timestamp,
    stamp_log_append_time,
)
from protocol.records.builder import recompress
from protocol.records.compression import (
    Codec,
    CorruptCompression,
    InflateLimit,
    UnknownCodec,
)
from protocol.records.mistimed import Limits
from protocol.records.walk import MAX_HEADERS, RecordFacts, check_records
from storage.validation.checked_batch import CheckedBatch, TimeRewrite
from storage.validation.dirty_timestamps import (
    Action,
    Buffer,
    DirtyTimes,
    TimeRules,
    faults_of_all,
    list_faults,
    look_over,
    zone_flags,
)
from storage.validation.unpacking import Work, inflate_within

TIMESTAMP_SUMMARY = "One or more records have been rejected due to invalid timestamp"
SHOWN_RECORD_ERRORS = 3
INLINE_COMPRESSED_BYTES = 32 * 1024
_new = tuple.__new__

_LOG_APPEND_TIME_CLAIMED = (
    "Invalid timestamp type in message: a producer may not set the timestamp type to LogAppendTime"
)


class InvalidRecordError(KafkaError):
    """A batch that was refused because of its records.

    `record_errors` names each bad one: its index in the batch, and a text (KIP-467). `dirty` is
    what was wrong with their times.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        record_errors: Sequence[tuple[int, str]] = (),
        dirty: DirtyTimes | None = None,
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors
        self.dirty = dirty


class BatchRules:
    """Rules for batches from a topic's settings; replaced when they change."""

    __slots__ = (
        "_config",
        "_keys_required",
        "_max_batch_bytes",
        "_max_message_bytes",
        "_stamps",
        "_target",
        "_times",
    )

    def __init__(self, config: TopicConfig) -> None:
        """Read the settings once."""
        self._config = config
        self._max_message_bytes = config.max_message_bytes
        self._max_batch_bytes = config.segment_bytes
        self._keys_required = "compact" in config.cleanup_policy
        self._times = TimeRules(config)
        self._stamps = self._times.stamps
        self._target = _target_codec(config.compression_type)

    def needs_lane(self, records: memoryview) -> bool:
        """True when the check unpacks or packs so much that the loop would be delayed.

        What is too large is refused before that, so it need not be kept for a lane.
        """
        if not INLINE_COMPRESSED_BYTES < len(records) <= self._config.max_message_bytes:
            return False
        codec = records[22] & CODEC_MASK
        return codec != 0 or (self._target is not None and self._target is not Codec.NONE)

    def check(self, records: memoryview, now_ms: int, work: Work | None = None) -> CheckedBatch:
        """Check, stamp and if need be repack; KafkaError or InvalidRecordError on refusal.

        TooMuchWork when unpacking takes more than `work`; nothing has changed then.

        `records` is changed in place (time stamp, maximum timestamp, CRC), never its records. A
        batch that comes out with a `rewrite` is as it was sent.
        """
        header = self._checked_header(records)
        size = len(records)
        codec = header.attributes & CODEC_MASK
        packed = records[HEADER_BYTES:]
        payload = self._unpack(header, packed, work) if codec else packed
        limits = self._times.limits(now_ms)
        facts = self._checked_records(header, payload, limits)
        if facts.out_of_bounds and self._times.action is not Action.ACCEPTED:
            return self._in_need(records, header, payload, facts, limits)
        if self._target is not None and self._target != codec:
            records = memoryview(recompress(records, self._target, level=self._level()))
            size = len(records)
            if size > self._max_message_bytes:
                raise _too_large(size, self._max_message_bytes)
            header = read_header(records)
        if size > self._max_batch_bytes:
            raise _beyond_segment(size, self._max_batch_bytes)
        if self._stamps:
            stamp_log_append_time(records, 0, size, now_ms)
            return CheckedBatch(records, header, now_ms, facts, now_ms, now_ms)
        latest = facts.max_timestamp
        if latest != header.max_timestamp or header.attributes & LOG_APPEND_TIME:
            set_max_timestamp(records, 0, size, latest)
        batch: CheckedBatch = _new(
            CheckedBatch,
            (records, header, latest, facts, NO_TIMESTAMP, now_ms, 0, None, None, False),
        )
        if facts.min_timestamp < limits.oldest or latest > limits.latest or facts.untimed:
            return self._looked_over(batch, payload, limits)
        return batch

    def own(self, batch: CheckedBatch, now_ms: int) -> CheckedBatch:
        """A batch that the broker made, as this log stores it; no limit on size or time applies.

        InvalidRecordError when the log asks for keys and some record has none.
        """
        if batch.facts.keyless and self._keys_required:
            raise _invalid("A compacted topic needs keys")
        records, header = batch.records, batch.header
        target = None if header.is_control else self._target
        if target is not None and target != header.codec:
            records = memoryview(recompress(records, target, level=self._level()))
            header = read_header(records)
        if not self._stamps:
            return CheckedBatch(
                records, header, batch.max_timestamp, batch.facts, NO_TIMESTAMP, now_ms
            )
        stamp_log_append_time(records, 0, len(records), now_ms)
        return batch._replace(
            records=records,
            header=read_header(records),
            max_timestamp=now_ms,
            log_append_time_ms=now_ms,
            arrival_ms=now_ms,
        )

    def _looked_over(self, batch: CheckedBatch, payload: Buffer, limits: Limits) -> CheckedBatch:
        """The batch as stored, with the bad times that are to be reported."""
        header, facts = batch.header, batch.facts
        dirty, edges = look_over(
            payload, header.record_count, header.base_timestamp, limits, self._times.action
        )
        flags = zone_flags(facts.min_timestamp, facts.max_timestamp, limits, edges)
        return batch._replace(zone_flags=flags, dirty=dirty)

    def _in_need(
        self,
        records: memoryview,
        header: BatchHeader,
        payload: Buffer,
        facts: RecordFacts,
        limits: Limits,
    ) -> CheckedBatch:
        """A batch of which some times are out of bounds, where that is not the end of it."""
        config = self._config
        codec = header.codec if self._target is None else self._target
        rewrite = TimeRewrite(
            self._times.action,
            limits,
            payload,
            codec,
            None if self._target is None else self._level(),
            config.max_decompressed_message_bytes,
            config.horolog_quarantine_topic,
        )
        return CheckedBatch(
            records, header, facts.max_timestamp, facts, NO_TIMESTAMP, limits.now, rewrite=rewrite
        )

    def _checked_header(self, records: memoryview) -> BatchHeader:
        size = len(records)
        if size < HEADER_BYTES:
            raise _invalid("A produce request carries exactly one whole batch for a partition")
        if records[16] != 2:
            raise _invalid(f"Produce requests of this version carry format 2, not {records[16]}")
        try:
            header = read_header(records)
        except CorruptBatch as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
        batch_size = header.length + LENGTH_ENDS
        if batch_size != size:
            raise _invalid(
                f"A produce request carries exactly one whole batch for a partition, not a batch "
                f"of {batch_size} bytes in {size}"
            )
        if header.base_offset:
            raise _invalid(_header_fault(header))
        if size > self._max_message_bytes:
            raise _too_large(size, self._max_message_bytes)
        if not crc_matches(records, 0, header):
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"The batch does not have the CRC {header.crc:08x}"
            )
        if not (
            0 < header.record_count == header.last_offset_delta + 1
            and header.attributes & CONTROL == 0
            and (header.producer_id < 0 or header.base_sequence >= 0)
        ):
            raise _invalid(_header_fault(header))
        return header

    def _unpack(self, header: BatchHeader, payload: memoryview, work: Work | None) -> Buffer:
        if work is not None:
            work.count(header.record_count)
        limit = self._config.max_decompressed_message_bytes
        try:
            return inflate_within(header.codec, payload, limit_bytes=limit, work=work)
        except UnknownCodec as error:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from None
        except InflateLimit as error:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from None
        except CorruptCompression as error:
            raise _invalid(str(error)) from None

    def _checked_records(self, header: BatchHeader, payload: Buffer, limits: Limits) -> RecordFacts:
        try:
            facts = check_records(
                payload,
                header.record_count,
                header.base_timestamp,
                limits.low,
                limits.high,
                MAX_HEADERS,
            )
        except InvalidRecords as error:
            raise _invalid(str(error)) from None
        if facts.first_misplaced >= 0:
            raise _misplaced(facts.first_misplaced)
        refuses = self._times.action is Action.REJECTED
        if (facts.out_of_bounds and refuses) or (facts.keyless and self._keys_required):
            raise refusal(
                header, payload, limits, times_count=refuses, keys_required=self._keys_required
            )
        if header.attributes & LOG_APPEND_TIME and (self._stamps or facts.untimed):
            raise InvalidRecordError(
                ErrorCode.INVALID_TIMESTAMP,
                TIMESTAMP_SUMMARY,
                faults_of_all(header.record_count, _LOG_APPEND_TIME_CLAIMED),
            )
        return facts

    def _level(self) -> int | None:
        config = self._config
        match self._target:
            case Codec.GZIP:
                return config.compression_gzip_level
            case Codec.LZ4:
                return config.compression_lz4_level
            case Codec.ZSTD:
                return config.compression_zstd_level
            case _:
                return None


def refusal(
    header: BatchHeader,
    payload: Buffer,
    limits: Limits,
    *,
    times_count: bool = True,
    keys_required: bool = False,
) -> InvalidRecordError:
    """Every bad record, each with its reason (semantics.md 6.3)."""
    errors, dirty = list_faults(
        payload,
        header.record_count,
        header.base_timestamp,
        limits,
        times_count=times_count,
        keys_required=keys_required,
    )
    if errors.mistimed:
        return InvalidRecordError(ErrorCode.INVALID_TIMESTAMP, TIMESTAMP_SUMMARY, errors, dirty)
    shown = "; ".join(f"record {i}: {text}" for i, text in errors[:SHOWN_RECORD_ERRORS])
    return InvalidRecordError(
        ErrorCode.INVALID_RECORD,
        f"One or more records have been rejected due to {len(errors)} record errors in total, "
        f"and only showing the first three errors at most: {shown}",
        errors,
        dirty,
    )


def _target_codec(compression_type: str) -> Codec | None:
    """The codec to store with; None keeps the producer's."""
    if compression_type == "producer":
        return None
    return Codec.NONE if compression_type == "uncompressed" else Codec[compression_type.upper()]


def _invalid(text: str) -> InvalidRecordError:
    return InvalidRecordError(ErrorCode.INVALID_RECORD, text)


def _misplaced(index: int) -> InvalidRecordError:
    """Readers add the delta to the base offset: one that is not its index is another's offset."""
    text = f"its offset delta is not {index}; offsets inside of a batch follow one another"
    return InvalidRecordError(
        ErrorCode.INVALID_RECORD, f"record {index}: {text}", [(index, f"Invalid record: {text}")]
    )


def _header_fault(header: BatchHeader) -> str:
    if header.base_offset:
        return f"A batch from a producer begins with offset 0, not {header.base_offset}"
    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        return (
            f"The batch counts {header.record_count} records but its last offset delta is "
            f"{header.last_offset_delta}"
        )
    if header.attributes & CONTROL:
        return "A producer may not write control batches"
    return f"Producer {header.producer_id} sent the invalid sequence {header.base_sequence}"


def _too_large(size: int, limit: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The batch has {size} bytes, more than max.message.bytes ({limit}) allows",
    )


def _beyond_segment(size: int, limit: int) -> KafkaError:
    return KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"The batch has {size} bytes, more than a segment holds ({limit})",
    )
