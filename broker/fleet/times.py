"""Waits and sizes of a fleet. Values only."""

from typing import NamedTuple


class FleetTimes(NamedTuple):
    """Waits in seconds, sizes in bytes."""

    lease: float = 5.0
    """A node that does not renew for so long may be fenced."""
    renew: float = 1.0
    watch: float = 1.0
    """Between looks at other nodes and at shards."""
    read_only_after: float = 30.0
    """A node that could not renew for so long answers no reads any more: they may be stale."""
    retry: float = 0.1
    """Before the first repetition of a statement without answer; grows to `retry_most`."""
    retry_most: float = 0.5
    load_retry_most: float = 5.0
    """Before the next try of a partition that could not be loaded, of which each doubles it."""
    renewal_rest: float = 60.0
    """After a shard was loaded again since a log of it had failed, until that may be once more."""
    flush: float = 0.005
    """Least time from the begin of one commit to that of the next."""
    flush_bytes: int = 4 * 1024 * 1024
    """Most bytes of logs in one commit, but for a single larger batch."""
    inline_bytes: int = 64 * 1024
    """Larger bodies go to the store."""
    most_row_bytes: int = 1024 * 1024 * 1024
    """Committed bytes of a node that wait in rows for the store, before it refuses records."""
    checkpoint: float = 30.0
    checkpoint_bytes: int = 64 * 1024 * 1024
    """Committed since the last checkpoint, and the next begins before its time."""
    loads: float = 30.0
    """Between reports of what the shards of a node take from producers."""
    load_rest: float = 60.0
    """After a shard was moved for its load, until its giver may move another one for that."""
    load_gap: int = 0
    """Bytes a second by which one node is ahead of another before a shard moves; 0: none does."""
    sweep: float = 3600.0
    """Between searches for objects that no row ever named."""
    keep: float = 60.0
    """For how long an object stays that nothing names any more: a reader may be at it."""
