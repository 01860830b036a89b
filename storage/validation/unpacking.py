"""Limits on the work of unpacking, and the way to unpack no more than that.

A small batch may unpack to very much. The caller limits the work
(`Work`); beyond it `TooMuchWork` is raised: nothing has happened then, and the caller may retry
where there is more time. The topic's limit is another one, with its own error.
"""

from protocol.records.compression import (
    Buffer,
    Codec,
    InflateLimit,
    PackedParts,
    TooManyParts,
    expected_bytes,
    inflate,
)

PART_BYTES = 2048
"""Unpacked in the time that a frame, a member or a block takes of which nothing comes out."""
FORESEEN_BYTES = 1024 * 1024
"""Below, trying takes less than finding out."""


class TooMuchWork(Exception):  # noqa: N818 - what happened, not a fault
    """A batch unpacks to more bytes, or has more records, than the caller may look at."""


class Work:
    """Bytes that may still be unpacked, and records that may be walked in unpacked batches.

    PackedParts that nothing comes out of take bytes, too; one batch may have `most_parts`.
    """

    __slots__ = ("bytes_left", "most_parts", "records_left")

    def __init__(self, bytes_left: int, records_left: int, most_parts: int = 1 << 62) -> None:
        """Sets the limits."""
        self.bytes_left = bytes_left
        self.records_left = records_left
        self.most_parts = most_parts

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
    if work.bytes_left <= 0:
        raise TooMuchWork
    allowed = min(limit_bytes, work.bytes_left)
    parts = PackedParts(work.most_parts)
    try:
        if FORESEEN_BYTES <= allowed < limit_bytes:
            _foresee(codec, data, allowed, PackedParts(work.most_parts))
        unpacked = inflate(codec, data, limit_bytes=allowed, parts=parts)
    except TooManyParts:
        raise TooMuchWork from None
    except InflateLimit:
        if allowed < limit_bytes:
            raise TooMuchWork from None
        raise
    taken = max(len(unpacked), PART_BYTES * (parts.seen - 1))
    work.bytes_left -= min(taken, work.bytes_left)
    return unpacked


def _foresee(codec: Codec, data: memoryview, allowed: int, parts: PackedParts) -> None:
    """TooMuchWork, or TooManyParts, where it shows without unpacking."""
    if expected_bytes(codec, data, parts) > allowed:
        raise TooMuchWork
