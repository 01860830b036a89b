"""Rows of records, their sizes, and the batch that a topic takes."""

from typing import Any

from protocol.records.builder import build_batch
from protocol.records.compression import Codec

Row = tuple[Any, ...]
"""Time, key, value and headers of a record."""

RECORD_BYTES = 64
"""Upper bound of what a record takes beside its texts, and a header beside its own."""


def size_of(row: Row) -> int:
    """Upper bound of the bytes of a record in a batch."""
    _, key, value, headers = row
    texts = (
        len(name.encode(errors="surrogateescape")) + len(text or b"") + RECORD_BYTES
        for name, text in headers
    )
    return len(key or b"") + len(value or b"") + sum(texts) + RECORD_BYTES


def packed(rows: list[Row], most_bytes: int) -> bytearray | None:
    """A batch of at most so many bytes; None where that is impossible.

    Packed where it would be larger: the records may have come packed.
    """
    batch = build_batch(rows) if sum(map(size_of, rows)) <= most_bytes else None
    if batch is None or len(batch) > most_bytes:
        batch = build_batch(rows, codec=Codec.ZSTD)
    return batch if len(batch) <= most_bytes else None
