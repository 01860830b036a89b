"""Names of files and directories in a data directory, as Kafka has them (semantics.md 1, 2, 4, 9).

Pure text: nothing here looks at a disk. Offsets in names have 20 digits with leading zeros.
"""

from typing import NamedTuple
from uuid import UUID

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
TXN_SUM = ".txnsum"
ZONES = ".zones"
SNAPSHOT = ".snapshot"
SPAN = 1 << 31  # offsets from a segment's base on that its indexes have numbers for
SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, TXN_SUM, ZONES)
ABORTS = frozenset((TXN_INDEX, TXN_SUM))
"""Either tells that transactions were aborted in a segment: one of them may be lost."""

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
META_PROPERTIES_FILE = "meta.properties"
RECOVERY_POINTS_FILE = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS_FILE = "log-start-offset-checkpoint"
HIGH_WATERMARKS_FILE = "replication-offset-checkpoint"
CLEANER_OFFSETS_FILE = "cleaner-offset-checkpoint"
CLEANER_HORIZONS_FILE = "horolog-delete-horizon-checkpoint"
BALLAST_FILE = "horolog-ballast"
LOG_STARTS_COPY_FILE = "horolog-log-start-offset-checkpoint"
SCRUB_FILE = "horolog-scrub-checkpoint"
SYNCED_MARK = "horolog-synced"
FLEET_FILE = "horolog-fleet.json"
"""In a data directory: its logs are a part of what a fleet has."""
REMOTE_FILE = "horolog-remote"
RESTORING_FILE = "horolog-restoring"
PARTITION_METADATA_FILE = "partition.metadata"
LEADER_EPOCHS_FILE = "leader-epoch-checkpoint"

_OFFSET_DIGITS = 20
_MAX_NAME_BYTES = 255
_DELETE_SUFFIX, _FUTURE_SUFFIX, _STRAY_SUFFIX = "-delete", "-future", "-stray"


class PartitionName(NamedTuple):
    """A topic and one of its partitions, as the name of their directory says."""

    topic: str
    partition: int


class SegmentFile(NamedTuple):
    """Parts of a file name in a partition's directory: `00000000000000000042.index`."""

    base_offset: int
    suffix: str


def segment_name(base_offset: int, suffix: str) -> str:
    """`00000000000000000042.log`. The suffix carries its dot, and may be doubled (.log.deleted)."""
    return f"{base_offset:020d}{suffix}"


def parse_segment_name(name: str) -> SegmentFile | None:
    """Base offset and suffix of a segment's file or a snapshot; None for any other name."""
    digits, suffix = name[:_OFFSET_DIGITS], name[_OFFSET_DIGITS:]
    if len(digits) < _OFFSET_DIGITS or not suffix.startswith("."):
        return None
    if not (digits.isascii() and digits.isdigit()):
        return None
    return SegmentFile(int(digits), suffix)


def partition_dir_name(topic: str, partition: int) -> str:
    """`orders-0`."""
    return f"{topic}-{partition}"


def parse_partition_dir(name: str) -> PartitionName | None:
    """Topic and partition of a live partition's directory; None for any other name.

    Directories that are about to go, still arriving or lost (`-delete`, `-future`, `-stray`)
    are not live.
    """
    if name.endswith((_DELETE_SUFFIX, _FUTURE_SUFFIX, _STRAY_SUFFIX)):
        return None
    topic, dash, digits = name.rpartition("-")
    if not (topic and dash and digits.isascii() and digits.isdigit()):
        return None
    return PartitionName(topic, int(digits))


def deleted_partition_dir_name(topic: str, partition: int, unique: UUID) -> str:
    """`orders-0.<32 hex digits>-delete`, the topic cut short where the name would not fit."""
    tail = f"-{partition}.{unique.hex}{_DELETE_SUFFIX}"
    return topic[: _MAX_NAME_BYTES - len(tail)] + tail


def is_deleted_partition_dir(name: str) -> bool:
    """True when the directory is only waiting to be removed."""
    head, dot, tail = name.rpartition(".")
    unique = tail.removesuffix(_DELETE_SUFFIX)
    return (
        bool(head and dot) and tail.endswith(_DELETE_SUFFIX) and len(unique) == len(UUID(int=0).hex)
    )
