"""Records that every client writes and reads back: awkward keys and values, known times."""

from typing import NamedTuple

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_TIME_MS = 1_700_000_000_000
STEP_MS = 10


class Sample(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes], ...] = ()


def samples(count: int) -> list[Sample]:
    """`count` records, ten milliseconds apart: nulls, empties, text beyond ASCII, large values."""
    return [sample(index) for index in range(count)]


def sample(index: int) -> Sample:
    key = None if index % 7 == 3 else f"schlüssel-{index}".encode()
    value = f"{index}:".encode() * (index % 50)
    if index % 11 == 5:
        value = bytes(range(256)) * 8
    headers = (("quelle", b"\x00\xff"), ("leer", b"")) if index % 3 == 0 else ()
    return Sample(key, value, FIRST_TIME_MS + index * STEP_MS, headers)


def offset_at(timestamp: int) -> int:
    """Where `samples` puts the first record at or after `timestamp`."""
    return max(0, -(-(timestamp - FIRST_TIME_MS) // STEP_MS))
