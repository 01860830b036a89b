"""Limits on the work of unpacking, and the way to unpack no more than that.

A small batch may unpack to very much. The caller limits the work
(`Work`); beyond it `TooMuchWork` is raised: nothing has happened then, and the caller may retry
where there is more time. The topic's limit is another one, with its own error.
"""

from protocol.records.compression import Buffer, Codec, InflateLimit, expected_bytes, inflate

FORESEEN_BYTES = 1024 * 1024
"""Below, trying takes less than finding out."""


class TooMuchWork(Exception):  # noqa: N818 - what happened, not a fault
    """A batch unpacks to more bytes, or has more records, than the caller may look at."""


class Work:
    """Bytes that may still be unpacked, and records that may be walked in unpacked batches."""

    __slots__ = ("bytes_left", "records_left")

    def __init__(self, bytes_left: int, records_left: int) -> None:
        """Sets the limits."""
        self.bytes_left = bytes_left
        self.records_left = records_left

    def count(self, records: int) -> None:
        """Take so many records of a packed batch; TooMuchWork, and none is taken."""
        if records > self.records_left:
            raise TooMuchWork
        self.records_left -= records


def inflate_within(
    codec: Codec, data: memoryview, *, limit_bytes: int, work: Work | None
) -> Buffer:
    """As `inflate`, and TooMuchWork when `work` does not allow for it; None allows for all."""
    if work is None or codec is Codec.NONE:
        return inflate(codec, data, limit_bytes=limit_bytes)
    allowed = min(limit_bytes, work.bytes_left)
    if FORESEEN_BYTES <= allowed < limit_bytes and expected_bytes(codec, data) > allowed:
        raise TooMuchWork
    try:
        unpacked = inflate(codec, data, limit_bytes=allowed)
    except InflateLimit:
        if allowed < limit_bytes:
            raise TooMuchWork from None
        raise
    work.bytes_left -= len(unpacked)
    return unpacked
