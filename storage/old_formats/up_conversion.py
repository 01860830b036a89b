"""Sets of formats 0 and 1 from old clients, made into the one batch that the log stores.

What only an old set can get wrong is refused here, with Kafka's codes (semantics.md 7.1, 7.3); keys
and times are judged afterwards, by the checks that every batch meets. The batch keeps the set's
codec; whether the topic wants another is for those checks too.
"""

from config.topic import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CorruptBatch, InvalidRecords
from protocol.records.compression import Codec, CorruptCompression, InflateLimit, UnknownCodec
from protocol.records.old_formats.convert import up_convert
from protocol.records.old_formats.legacy import MAGIC_POSITION, SetFacts, read_facts
from storage.validation.batch_rules import InvalidRecordError
from storage.validation.unpacking import TooMuchWork, Work

INLINE_BYTES = 4 * 1024
UNLIMITED = 1 << 62
CODEC_POSITION = MAGIC_POSITION + 1


def is_old_set(records: memoryview) -> bool:
    """True when the records are not of format 2; too short ones count as old."""
    return len(records) <= MAGIC_POSITION or records[MAGIC_POSITION] != 2


def needs_lane(records: memoryview) -> bool:
    """True when the conversion takes too long for the loop."""
    size = len(records)
    return size > INLINE_BYTES or (size > CODEC_POSITION and records[CODEC_POSITION] & 0x07 != 0)


def as_batch(records: memoryview, config: TopicConfig, work: Work | None = None) -> memoryview:
    """The batch of a set; KafkaError or InvalidRecordError when the set is refused.

    TooMuchWork when it unpacks to more than `work` allows for; what it does take is counted when
    the batch is checked.
    """
    allowed = UNLIMITED if work is None else work.bytes_left
    limit = UNLIMITED
    try:
        facts = read_facts(records)
        limit = _limit(records, facts, config)
        if facts.codec is Codec.NONE:
            allowed = limit
        return memoryview(up_convert(records, limit_bytes=min(limit, allowed)))
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    except (InvalidRecords, CorruptCompression) as error:
        raise InvalidRecordError(ErrorCode.INVALID_RECORD, str(error)) from None
    except UnknownCodec as error:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from None
    except InflateLimit as error:
        if allowed < limit:
            raise TooMuchWork from None
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from None


def _limit(records: memoryview, facts: SetFacts, config: TopicConfig) -> int:
    """Largest size of the records; a wrapper must itself fit max.message.bytes."""
    largest = config.max_message_bytes
    if facts.codec is Codec.NONE:
        return largest
    if len(records) > largest:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The message has {len(records)} bytes, more than max.message.bytes ({largest}) allows",
        )
    return config.max_decompressed_message_bytes
