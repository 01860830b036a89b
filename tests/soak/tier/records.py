"""Records that are known by their partition and number alone, and what was read of them.

A number is the offset too: one idempotent producer writes a partition, and nothing is lost or
repeated. So whoever reads compares every byte with what it must be, and a checksum over offset,
time, key and value of all records says that two have read the same.
"""

import random
import struct
from dataclasses import dataclass, field

from protocol.checksum import crc32c

FACTS = struct.Struct(">qqI")  # offset, time, bytes of the key
HEAD = struct.Struct(">IQ")  # partition, number
FIRST_TIME_MS = 1_700_000_000_000
KEYS = 10_000
VALUE_BYTES = 4096
_STEP = 7919
"""Bytes that the fillings of two neighbours are apart: a prime, so they come round late."""
_NOISE = random.Random(19).randbytes(1 << 20)
MAX_FAULTS = 20


def key_of(partition: int, number: int) -> bytes:
    """The key of a record."""
    return b"key-%d-%d" % (partition, number % KEYS)


def time_of(number: int) -> int:
    """Its timestamp in ms."""
    return FIRST_TIME_MS + number


def value_of(partition: int, number: int) -> bytes:
    """Its value: where it belongs, and noise that no codec and no file system makes smaller."""
    size = VALUE_BYTES - HEAD.size
    begin = (number * _STEP + partition) % (len(_NOISE) - size)
    return HEAD.pack(partition, number) + _NOISE[begin : begin + size]


@dataclass
class Contents:
    """What one has read, or written, of the topic."""

    name: str
    ends: dict[int, int] = field(default_factory=dict)
    """By partition, the offset behind the last one."""
    sums: dict[int, int] = field(default_factory=dict)
    """By partition, the CRC-32C over offset, time, key and value of all records."""
    size_bytes: int = 0
    """Of keys and values."""
    seconds: float = 0.0
    longest_gap: float = 0.0
    """The longest time, in seconds, in which nothing was acknowledged, or came."""
    faults: list[str] = field(default_factory=list)

    @property
    def records(self) -> int:
        """How many they are."""
        return sum(self.ends.values())

    @property
    def megabytes_a_second(self) -> float:
        """Of keys and values."""
        return self.size_bytes / 1e6 / self.seconds if self.seconds else 0.0

    def take(self, partition: int, offset: int, time_ms: int, key: bytes, value: bytes) -> None:
        """The next record of a partition."""
        expected = self.ends.get(partition, 0)
        if offset != expected:
            self.fault(f"partition {partition}: offset {offset} came, {expected} was next")
        if time_ms != time_of(offset):
            self.fault(f"{partition}/{offset} has the time {time_ms}")
        if key != key_of(partition, offset):
            self.fault(f"{partition}/{offset} has the key {key[:40]!r}")
        if value != value_of(partition, offset):
            self.fault(f"{partition}/{offset} has another value than was written")
        self.add(partition, offset, time_ms, key, value)

    def add(self, partition: int, offset: int, time_ms: int, key: bytes, value: bytes) -> None:
        """The same, without a look at it."""
        so_far = crc32c(FACTS.pack(offset, time_ms, len(key)), self.sums.get(partition, 0))
        self.sums[partition] = crc32c(value, crc32c(key, so_far))
        self.ends[partition] = offset + 1
        self.size_bytes += len(key) + len(value)

    def heard(self, seconds: float) -> None:
        """Something was acknowledged, or came, so long after what was before it."""
        self.longest_gap = max(self.longest_gap, seconds)

    def fault(self, text: str) -> None:
        """Something that must not be."""
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(f"{self.name}: {text}")


def differences(written: Contents, read: Contents) -> list[str]:
    """What keeps the two from being equal."""
    faults = []
    for partition, end in sorted(written.ends.items()):
        found = read.ends.get(partition, 0)
        if found != end:
            faults.append(f"{read.name}: partition {partition} ends at {found} instead of {end}")
        elif read.sums[partition] != written.sums[partition]:
            faults.append(f"{read.name}: partition {partition} has other contents")
    return faults
