"""One partition at one moment: its identity, and the offsets that may be read."""

from typing import NamedTuple

from pipeline.directories.tier_store import StorePlace


class PartitionView(NamedTuple):
    """Plain values: travels between processes."""

    topic: str
    partition: int
    topic_id: str
    """32 hex digits; empty where nothing says it. A topic made again has another one."""
    start_offset: int
    """The first offset that counts."""
    end_offset: int
    """The first one that may not be read: high watermark, or last stable offset."""
    directory: str | None = None
    """Of the partition, on this machine; None: only over the wire."""
    leader: str = ""
    """HOST:PORT; empty where no broker was asked."""
    size_bytes: int = 0
    """Of the whole log; 0 where nothing says it."""
    tier: StorePlace | None = None
    """Place of the store in which the log may go on; None: it is not asked."""

    def __str__(self) -> str:
        """For messages."""
        return f"{self.topic}-{self.partition}"
