"""The settings of a topic: one statement per key, and the frozen snapshot that a log is given.

Names, defaults and bounds are Kafka's (semantics.md 6.1 and 11; time.md 1); keys of our own carry
the prefix `horolog.`. Units are in the names: ms, bytes. Every key is dynamic; most have a default
on the broker, under the name given as `broker`.
"""

from dataclasses import dataclass

from config.declare import topic_key
from config.key import Spelling
from config.quantities import LONG_MAX
from config.values import (
    Choice,
    Decimal,
    Flag,
    GzipLevel,
    Number,
    Text,
    Words,
    count,
    millis,
    size,
)

HOUR_MS, MINUTE_MS, WEEK_MS = 3_600_000, 60_000, 604_800_000
_UNLIMITED_MS = Number(-LONG_MAX, LONG_MAX, "ms", unlimited=True)
_UNLIMITED_MINUTES = Number(-(2**31), 2**31 - 1, "ms", bare=MINUTE_MS, unlimited=True)
_UNLIMITED_HOURS = Number(-(2**31), 2**31 - 1, "ms", bare=HOUR_MS, unlimited=True)
_ROLL_HOURS = Number(1, 2**31 - 1, "ms", HOUR_MS)
_JITTER_HOURS = Number(0, 2**31 - 1, "ms", HOUR_MS)
_TIMESTAMP_ALIASES = ("max.message.time.difference.ms", "message.timestamp.difference.max.ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """All settings of one topic, merged from every layer. `TopicConfig()` holds the defaults."""

    cleanup_policy: frozenset[str] = topic_key(
        "cleanup.policy",
        Words(("delete", "compact")),
        frozenset({"delete"}),
        broker="log.cleanup.policy",
        doc="Clean-up of old segments: delete, compact, both, or (empty) nothing. With "
        "compact, the last record of each key stays, and records without key are refused.",
    )
    delete_retention_ms: int = topic_key(
        "delete.retention.ms",
        millis(),
        86_400_000,
        broker="log.cleaner.delete.retention.ms",
        doc="Time that a tombstone (a record without value) stays after the first compaction that "
        "read it: the time that a consumer has to read to the end.",
    )
    min_cleanable_dirty_ratio: float = topic_key(
        "min.cleanable.dirty.ratio",
        Decimal(0, 1),
        0.5,
        broker="log.cleaner.min.cleanable.ratio",
        doc="Share of a log's bytes that compaction has not seen, above which it is compacted.",
    )
    min_compaction_lag_ms: int = topic_key(
        "min.compaction.lag.ms",
        millis(),
        0,
        broker="log.cleaner.min.compaction.lag.ms",
        doc="Shortest time that a record stays as it was written: by its time or its arrival, "
        "whichever is earlier. Not more than max.compaction.lag.ms.",
    )
    max_compaction_lag_ms: int = topic_key(
        "max.compaction.lag.ms",
        millis(1),
        LONG_MAX,
        broker="log.cleaner.max.compaction.lag.ms",
        doc="Longest time that a record may wait for its compaction, also when nothing is "
        "appended: its segment ends by then, and the log goes before others (KIP-354).",
    )
    compression_type: str = topic_key(
        "compression.type",
        Choice(("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")),
        "producer",
        broker="compression.type",
        doc="Codec in which batches are stored; producer keeps what the client sent.",
    )
    compression_gzip_level: int = topic_key(
        "compression.gzip.level",
        GzipLevel(),
        -1,
        broker="compression.gzip.level",
        doc="Level when compression.type is gzip; -1 is the codec's own default.",
    )
    compression_lz4_level: int = topic_key(
        "compression.lz4.level",
        count(1, 17),
        9,
        broker="compression.lz4.level",
        doc="Level when compression.type is lz4.",
    )
    compression_zstd_level: int = topic_key(
        "compression.zstd.level",
        count(-131_072, 22),
        3,
        broker="compression.zstd.level",
        doc="Level when compression.type is zstd.",
    )
    errors_deadletterqueue_group_enable: bool = topic_key(
        "errors.deadletterqueue.group.enable",
        Flag(),
        False,
        broker=None,
        doc="Share groups may write their dead letters to the topic (KIP-1191).",
    )
    file_delete_delay_ms: int = topic_key(
        "file.delete.delay.ms",
        millis(),
        60_000,
        broker="log.segment.delete.delay.ms",
        doc="Time that the files of a removed segment stay on disk for readers that hold them, and "
        "its objects in the tier's store, for restore --at: also of what compaction replaced.",
    )
    flush_messages: int = topic_key(
        "flush.messages",
        count(1, LONG_MAX),
        LONG_MAX,
        broker="log.flush.interval.messages",
        doc="Records after which the log is forced to disk, whatever the durability.",
    )
    flush_ms: int = topic_key(
        "flush.ms",
        millis(),
        LONG_MAX,
        broker="log.flush.interval.ms",
        doc="Time after which unforced records are forced to disk, whatever the durability.",
    )
    index_interval_bytes: int = topic_key(
        "index.interval.bytes",
        size(),
        4096,
        broker="log.index.interval.bytes",
        doc="Bytes of log between two entries of the offset and time indexes.",
    )
    max_decompressed_message_bytes: int = topic_key(
        "max.decompressed.message.bytes",
        size(1),
        67_108_864,
        broker="max.decompressed.message.bytes",
        doc="Largest size of a compressed batch once inflated; inflating stops there.",
    )
    max_message_bytes: int = topic_key(
        "max.message.bytes",
        size(),
        1_048_588,
        broker="message.max.bytes",
        importance="high",
        doc="Largest record batch that is accepted, compressed, header included.",
    )
    message_downconversion_enable: bool = topic_key(
        "message.downconversion.enable",
        Flag(),
        True,
        broker="log.message.downconversion.enable",
        importance="low",
        doc="Convert batches for clients of Kafka before 0.11 (Fetch 0 to 3). false spares the "
        "work: they get UNSUPPORTED_VERSION for records. Kafka 4 has no such setting.",
    )
    message_timestamp_type: str = topic_key(
        "message.timestamp.type",
        Choice(("CreateTime", "LogAppendTime")),
        "CreateTime",
        broker="log.message.timestamp.type",
        doc="Source of a record's time: its sender's clock, or this broker's at arrival.",
    )
    message_timestamp_before_max_ms: int = topic_key(
        "message.timestamp.before.max.ms",
        millis(),
        LONG_MAX,
        broker="log.message.timestamp.before.max.ms",
        aliases=_TIMESTAMP_ALIASES,
        doc="Largest time by which a sender's time may be before the broker's.",
    )
    message_timestamp_after_max_ms: int = topic_key(
        "message.timestamp.after.max.ms",
        millis(),
        HOUR_MS,
        broker="log.message.timestamp.after.max.ms",
        aliases=_TIMESTAMP_ALIASES,
        doc="Largest time by which a sender's time may be after the broker's.",
    )
    min_insync_replicas: int = topic_key(
        "min.insync.replicas",
        count(1),
        1,
        broker="min.insync.replicas",
        doc="Replicas that acks=all asks for; more than the one of this node refuses the write.",
    )
    retention_bytes: int = topic_key(
        "retention.bytes",
        size(-LONG_MAX, LONG_MAX),
        -1,
        broker="log.retention.bytes",
        doc="Size of a partition above which its oldest segments go; negative is no limit. "
        "What stays is never less than this.",
    )
    retention_ms: int = topic_key(
        "retention.ms",
        millis(-1),
        WEEK_MS,
        broker=(
            Spelling("log.retention.ms", _UNLIMITED_MS),
            Spelling("log.retention.minutes", _UNLIMITED_MINUTES, hidden=True),
            Spelling("log.retention.hours", _UNLIMITED_HOURS, hidden=True, default_text="168"),
        ),
        importance="high",
        doc="Age above which the oldest segments go, measured as horolog.retention.clock says; -1 "
        "is no limit.",
    )
    segment_bytes: int = topic_key(
        "segment.bytes",
        size(1_048_576),
        1_073_741_824,
        broker="log.segment.bytes",
        first=(Spelling("internal.segment.bytes", size(1), hidden=True),),
        importance="high",
        doc="Size of a segment file at which the next one begins.",
    )
    segment_index_bytes: int = topic_key(
        "segment.index.bytes",
        size(4),
        10_485_760,
        broker="log.index.size.max.bytes",
        doc="Size of an index file at which the next segment begins; nothing is preallocated.",
    )
    segment_jitter_ms: int = topic_key(
        "segment.jitter.ms",
        millis(),
        0,
        broker=(
            "log.roll.jitter.ms",
            Spelling("log.roll.jitter.hours", _JITTER_HOURS, hidden=True, default_text="0"),
        ),
        doc="Largest random time taken off segment.ms, so that segments do not roll together.",
    )
    segment_ms: int = topic_key(
        "segment.ms",
        millis(1),
        WEEK_MS,
        broker=(
            "log.roll.ms",
            Spelling("log.roll.hours", _ROLL_HOURS, hidden=True, default_text="168"),
        ),
        doc="Time after which the next segment begins even though this one is not full, also when "
        "nothing is appended.",
    )
    remote_storage_enable: bool = topic_key(
        "remote.storage.enable",
        Flag(),
        False,
        broker=None,
        doc="Copy closed segments to the object store of horolog.tier.url (KIP-405); needs "
        "remote.log.storage.system.enable. Off again only with remote.log.delete.on.disable.",
    )
    local_retention_ms: int = topic_key(
        "local.retention.ms",
        millis(-2),
        -2,
        broker="log.local.retention.ms",
        doc="Age above which segments leave the local disk once they are in the tier; -2 is "
        "retention.ms, -1 no limit. Not more than retention.ms.",
    )
    local_retention_bytes: int = topic_key(
        "local.retention.bytes",
        size(-2, LONG_MAX),
        -2,
        broker="log.local.retention.bytes",
        doc="Local size of a partition above which its oldest segments leave the local disk once "
        "they are in the tier; -2 is retention.bytes, -1 no limit. Not more than retention.bytes.",
    )
    remote_log_copy_disable: bool = topic_key(
        "remote.log.copy.disable",
        Flag(),
        False,
        broker=None,
        doc="Copy nothing more to the tier; what is there is read and expires. The local retention "
        "must be -2 or the same as the total one then (KIP-950).",
    )
    remote_log_delete_on_disable: bool = topic_key(
        "remote.log.delete.on.disable",
        Flag(),
        False,
        broker=None,
        doc="Delete the topic's data in the tier when remote.storage.enable becomes false; without "
        "this it cannot become false (KIP-950).",
    )
    horolog_durability: str = topic_key(
        "horolog.durability",
        Choice(("by-acks", "fsync", "interval", "os")),
        "by-acks",
        broker="horolog.durability",
        importance="high",
        doc="Time when an answered record is on the disk: fsync before the answer; interval within "
        "horolog.flush.interval.ms; os when the kernel likes; by-acks: fsync for acks=all, else "
        "interval.",
    )
    horolog_timestamp_policy: str = topic_key(
        "horolog.timestamp.policy",
        Choice(("reject", "accept", "clamp", "restamp", "quarantine")),
        "reject",
        broker="horolog.timestamp.policy",
        importance="high",
        doc="For records with times out of bounds: refuse the batch (as Kafka), store as sent, "
        "change to the nearest bound or the arrival (header horolog.claimed.timestamp keeps the "
        "claim), or quarantine.",
    )
    horolog_quarantine_topic: str = topic_key(
        "horolog.quarantine.topic",
        Text(r"[a-zA-Z0-9._-]{0,249}", "a topic's name, or empty"),
        "",
        broker="horolog.quarantine.topic",
        doc="Topic of policy quarantine; empty is the topic's own name with .quarantine "
        "after it. Made when it is first needed.",
    )
    horolog_retention_clock: str = topic_key(
        "horolog.retention.clock",
        Choice(("record", "arrival", "earlier", "later")),
        "earlier",
        broker="horolog.retention.clock",
        doc="Start of a segment's age: its largest record time (as Kafka: one in the "
        "future retains it and all after it), its last arrival, the earlier or the later of both.",
    )
    horolog_retention_min_stay_ms: int = topic_key(
        "horolog.retention.min.stay.ms",
        millis(),
        0,
        broker="horolog.retention.min.stay.ms",
        doc="Nothing leaves sooner than this after it came, neither by age nor by size.",
    )
    horolog_retention_before_timestamp: int = topic_key(
        "horolog.retention.before.timestamp",
        count(-1, LONG_MAX),
        -1,
        broker="horolog.retention.before.timestamp",
        doc="Segments older than this instant go, whatever retention.ms says: milliseconds since "
        "1970; -1 is none.",
    )
    horolog_search_clock: str = topic_key(
        "horolog.search.clock",
        Choice(("record", "arrival", "earlier")),
        "record",
        broker="horolog.search.clock",
        doc="Clock that ListOffsets searches by: record time (as Kafka), arrival, or "
        "the earlier of both, so that one record of the far future does not answer every search.",
    )
    horolog_roll_min_interval_ms: int = topic_key(
        "horolog.roll.min.interval.ms",
        millis(),
        10_000,
        broker="horolog.roll.min.interval.ms",
        importance="low",
        doc="No segment ends by time sooner than this after its first batch came, so that wild "
        "record times cannot make a segment of each message (Kafka: no such limit).",
    )
    horolog_zone_bytes: int = topic_key(
        "horolog.zone.bytes",
        size(4096),
        65_536,
        broker="horolog.zone.bytes",
        importance="low",
        doc="Bytes of log that one row of the zone map covers.",
    )
    horolog_zone_ms: int = topic_key(
        "horolog.zone.ms",
        millis(1),
        1000,
        broker="horolog.zone.ms",
        importance="low",
        doc="Arrival time after which a zone of at least 4 KiB closes early.",
    )
    horolog_time_index_entry: str = topic_key(
        "horolog.time.index.entry",
        Choice(("max", "next")),
        "max",
        broker="horolog.time.index.entry",
        importance="low",
        doc="Offset in a time index entry: max, of the largest timestamp, as Kafka ships it; next, "
        "the one after, as KIP-33 writes it.",
    )
