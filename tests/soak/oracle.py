"""What must be true of what was read, whatever happened meanwhile. Pure; every fault is a sentence.

A record carries its partition and its number there; numbers rise by one from 0. So whoever reads
knows what comes next: a later number is a loss, an earlier one a repetition.
"""

import struct
from collections.abc import Mapping

RECORD = struct.Struct(">IQ")  # partition, number
MAX_FAULTS = 20


class Numbers:
    """Follows the numbers of each partition as they are read."""

    def __init__(self, name: str, *, may_repeat: bool) -> None:
        """`may_repeat`: a group reads again what was read and not committed."""
        self._name = name
        self._may_repeat = may_repeat
        self.expected: dict[int, int] = {}
        self.records = 0
        self.repeated = 0
        self.skipped = 0
        self.faults: list[str] = []

    def begin(self, partition: int, number: int) -> None:
        """Whatever comes before it was removed by retention before it was read."""
        self.skipped += max(0, number - self.expected.get(partition, number))
        self.expected[partition] = max(number, self.expected.get(partition, 0))

    def saw(self, partition: int, value: bytes) -> None:
        """The next record of a partition."""
        claimed, number = RECORD.unpack_from(value)
        expected = self.expected.setdefault(partition, number)
        self.records += 1
        if claimed != partition:
            self.fault(f"partition {partition} has a record of {claimed}")
        elif number > expected:
            self.fault(f"partition {partition}: {expected} to {number - 1} are missing")
        elif number < expected:
            self.repeated += 1
            if not self._may_repeat:
                self.fault(f"partition {partition}: {number} came again, after {expected - 1}")
        self.expected[partition] = max(expected, number + 1)

    def fault(self, text: str) -> None:
        """Something that must not be."""
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(f"{self._name}: {text}")


def missing_ends(acknowledged: Mapping[int, int], found: Mapping[int, int]) -> list[str]:
    """Faults of a scan that went to the end: all that was acknowledged has to be there."""
    return [
        f"scan: partition {partition} ends before {end}, which was acknowledged"
        for partition, end in acknowledged.items()
        if found.get(partition, 0) < end
    ]


def stale_keys(
    acknowledged: Mapping[bytes, int], sent: Mapping[bytes, int], found: Mapping[bytes, int]
) -> list[str]:
    """Faults of a compacted topic: of each key at least the last value acknowledged is there."""
    faults = [
        f"compacted: {key.decode()} is at {found.get(key)}, {number} was acknowledged"
        for key, number in acknowledged.items()
        if found.get(key, -1) < number
    ]
    faults += [
        f"compacted: {key.decode()} is at {number}, which nobody sent"
        for key, number in found.items()
        if number > sent.get(key, -1)
    ]
    return faults[:MAX_FAULTS]


def slope_an_hour(points: list[tuple[float, float]]) -> float:
    """How much the value rises an hour by least squares; points are (seconds, value)."""
    count = len(points)
    middle = sum(at for at, _ in points) / count
    mean = sum(value for _, value in points) / count
    spread = sum((at - middle) ** 2 for at, _ in points)
    if not spread:
        return 0.0
    return 3600 * sum((at - middle) * (value - mean) for at, value in points) / spread
