"""A batch between the checks and its place in the log, and what its times still call for.

Values only: `validation` makes them, `timestamp_policy` changes them, the appender stores them.
"""

from typing import NamedTuple

from protocol.records.batch import BatchHeader
from protocol.records.compression import Codec
from protocol.records.mistimed import Limits
from protocol.records.walk import RecordFacts
from storage.validation.dirty_timestamps import Action, Buffer, DirtyTimes


class TimeRewrite(NamedTuple):
    """Rewrite that a batch with times out of bounds needs before any of it is stored.

    `payload` are its records, unpacked. The records that come out are packed with `codec`.
    """

    action: Action
    limits: Limits
    payload: Buffer
    codec: Codec
    level: int | None
    limit_bytes: int
    """Largest size of the records, unpacked, in bytes."""
    quarantine_topic: str
    """Topic for quarantined records; empty: the log's own topic's name, with a suffix."""


class CheckedBatch(NamedTuple):
    """A batch that may be stored. `records` are the caller's bytes or, when repacked, new ones."""

    records: memoryview
    header: BatchHeader
    max_timestamp: int
    """Largest time as readers will see it, ms; -1 if no record has one."""
    facts: RecordFacts
    log_append_time_ms: int
    """The broker's stamp; -1 on CreateTime topics."""
    arrival_ms: int
    zone_flags: int = 0
    """Flags of the zone map about its times."""
    dirty: DirtyTimes | None = None
    rewrite: TimeRewrite | None = None
    """If there is one, the batch must not be stored as it is."""
    is_committed: bool = False
    """Another leader has stored it, and has judged its producer: nothing of that is checked again,
    as Kafka's replicas do not. What this log knows of the producer may be of before records that
    were deleted.
    """


class MistimedBatch(Exception):  # noqa: N818 - the state it found
    """Raised for a checked batch that repeats no other, but needs a rewrite. Nothing is stored.

    `base_offset` is where it will begin if nothing else is appended meanwhile.
    """

    def __init__(self, batch: CheckedBatch, base_offset: int) -> None:
        super().__init__(base_offset)
        self.batch = batch
        self.base_offset = base_offset

    @property
    def rewrite(self) -> TimeRewrite:
        """The rewrite that its times need."""
        assert self.batch.rewrite is not None
        return self.batch.rewrite

    def keep(self) -> None:
        """Let go of the caller's bytes: from now on they may change."""
        rewrite = self.rewrite
        if isinstance(rewrite.payload, memoryview):
            rewrite = rewrite._replace(payload=bytes(rewrite.payload))
        self.batch = self.batch._replace(records=memoryview(b""), rewrite=rewrite)
        self.__traceback__ = None  # its frames hold them too
