"""Records where they are: in a log of this node, or, by the same port, in another node of a fleet.
Reading blocks: it runs on a lane.
"""

from typing import Protocol

from config.topic import TopicConfig
from protocol.errors import KafkaError
from storage.errors import CorruptLog
from storage.log.log import Log
from storage.log.settled_read import read_settled


class RecordSource(Protocol):
    """One partition's records."""

    @property
    def config(self) -> TopicConfig:
        """Settings of its topic."""

    @property
    def start(self) -> int:
        """The lowest offset that may be read; 0 where only the leader knows it."""

    def read(self, offset: int, max_bytes: int) -> memoryview:
        """Whole batches from the one with this offset on, up to the high watermark; at least one,
        nothing at the end. StorageError, KafkaError.
        """

    def original(self, offset: int) -> memoryview:
        """As `read`, of one batch or some; nothing where the record is gone or damaged.
        StorageError, KafkaError where that is not known.
        """


class LocalRecords:
    """The `RecordSource` of a log of this node."""

    def __init__(self, log: Log) -> None:
        """Nothing is read."""
        self._log = log

    @property
    def config(self) -> TopicConfig:
        """As the port has it."""
        return self._log.config

    @property
    def start(self) -> int:
        """As the port has it."""
        return self._log.snapshot.log_start_offset

    def read(self, offset: int, max_bytes: int) -> memoryview:
        """As the port has it."""
        up_to = self._log.snapshot.high_watermark
        return memoryview(read_settled(self._log, offset, max_bytes, up_to).read())

    def original(self, offset: int) -> memoryview:
        """As the port has it."""
        snapshot = self._log.snapshot
        if not snapshot.log_start_offset <= offset < snapshot.high_watermark:
            return memoryview(b"")
        try:
            return self.read(offset, 1)
        except (CorruptLog, KafkaError):
            return memoryview(b"")
