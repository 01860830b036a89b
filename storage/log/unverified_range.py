"""Verifies a byte range of a `.log` before its first read in this process.

Every batch with its CRC, and its offsets against its neighbours', since no CRC covers those. What
is found sound or damaged is noted at the segment by one assignment; two threads that check at once
may lose one note, which costs another check. A fault is looked at twice, the second time with the
bytes from the disk: memory, too, can go bad.
"""

from typing import NamedTuple

from protocol.records.scan import scan_batches
from storage.env import File
from storage.errors import DiskError
from storage.scan.offset_order import OffsetOrder
from storage.segment.segment import Segment
from storage.segment.verified_ranges import VerifiedRanges

CHUNK_BYTES = 256 * 1024  # a scan holds the interpreter: others have their turn in between
AHEAD_BYTES = 4 * 1024 * 1024  # checked beyond the request, for sequential readers


class UnverifiedRange(NamedTuple):
    """A byte range to verify before its first read."""

    segment: Segment
    position: int
    end: int
    """Of what is wanted: perhaps within a batch, which is checked whole."""
    limit: int
    """End of the segment, in bytes."""
    below: int
    """All its offsets are lower than this one."""
    is_away: bool = False

    @property
    def place(self) -> tuple[Segment, int]:
        """The segment and the position."""
        return self.segment, self.position

    def settle(self) -> None:
        """Check what is not known yet and note it at the segment. Blocks. DiskError.

        Nothing of a segment that has left the directory meanwhile: the fetch finds out.
        """
        try:
            self._check()
        except DiskError:
            if not self.segment.is_removed:
                raise

    def _check(self) -> None:
        segment, known = self.segment, self.segment.sound
        begin = known.end_from(self.position)
        limit = min(self.limit, known.whole_from)
        end = min(limit, max(self.end, begin + _ahead(known, begin)))
        if begin >= end:
            return
        file = segment.file()
        look = _Look(file, segment.base_offset, self.below, limit)
        sound_to = look.sound_part(begin, end)
        if look.fault:
            file.let_go(begin, max(end, sound_to + AHEAD_BYTES) - begin)
            sound_to = look.sound_part(begin, end)
        sound = segment.sound.with_sound(begin, sound_to)
        segment.sound = sound.with_damage(sound_to) if look.fault else sound


def _ahead(known: VerifiedRanges, begin: int) -> int:
    """Bytes to check ahead: a sequential reader will need them."""
    return AHEAD_BYTES if any(end == begin for _, end in known.ranges) else 0


class _Look:
    """One look at a piece of a `.log`."""

    def __init__(self, file: File, base_offset: int, below: int, limit: int) -> None:
        self._file = file
        self._base_offset = base_offset
        self._below = below
        self._limit = limit
        self.fault = ""
        """Fault at the end of the sound part; empty when there is none."""

    def sound_part(self, begin: int, end: int) -> int:
        """The end of the sound batches from `begin` on, at least `end` unless there is a fault."""
        self.fault = ""
        order = OffsetOrder(self._base_offset - 1, self._below)
        limit = min(self._limit, self._file.size())
        position = begin
        needed = 0
        while position < end and not self.fault:
            data = self._read(position, min(max(CHUNK_BYTES, needed), max(end - position, needed)))
            scan = scan_batches(data)
            self.fault = order.fault_in(scan.batches, position)
            if self.fault:
                return order.unsound_from
            position += scan.position
            needed = scan.needed
            if scan.stop == "corrupt":
                self.fault = f"its {scan.fault} is wrong"
            elif position + needed > limit or not data:
                self.fault = "it is cut off"
        if not self.fault and position < limit:
            self.fault = order.fault_before(self._file.read_at(position, 8))
            return order.unsound_from if self.fault else position
        return position

    def _read(self, position: int, size: int) -> memoryview:
        buffer = memoryview(bytearray(size))
        return buffer[: self._file.read_into(position, buffer)]
