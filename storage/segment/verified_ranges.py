"""Byte ranges of a segment that passed their CRC in this process. Values only.

Bytes that it appended, recovered or compacted passed their CRC on the way; bytes that a clean stop
left are unverified until they are checked (`storage.log.unverified_range`,
`storage.verify.scrub`), once. All positions begin a batch.
"""

from typing import NamedTuple

EVER = 1 << 62
MAX_RANGES = 64  # apart from each other; beyond that the smallest is checked again when wanted


class VerifiedRanges(NamedTuple):
    """The sound parts of one `.log`, and the damage that was detected. Replaced, never changed."""

    whole_from: int
    """From here on everything is sound, also what will be appended."""
    ranges: tuple[tuple[int, int], ...] = ()
    """Sound parts before that, in order, none touching another."""
    damaged: tuple[int, ...] = ()
    """Positions of batches that are not what was written."""

    def end_from(self, position: int) -> int:
        """Up to where all is sound from `position` on; `position` itself when nothing is known."""
        if position >= self.whole_from:
            return EVER
        for begin, end in self.ranges:
            if begin <= position < end:
                return end
        return position

    def with_sound(self, begin: int, end: int) -> "VerifiedRanges":
        """The same and [begin, end)."""
        if begin >= end:
            return self
        apart = []
        for each in self.ranges:
            if each[1] < begin or each[0] > end:
                apart.append(each)
            else:
                begin, end = min(begin, each[0]), max(end, each[1])
        damaged = tuple(each for each in self.damaged if not begin <= each < end)
        if end >= self.whole_from:
            begin = min(begin, self.whole_from)
            return VerifiedRanges(begin, tuple(each for each in apart if each[1] < begin), damaged)
        if len(apart) >= MAX_RANGES:
            apart.remove(min(apart, key=lambda each: each[1] - each[0]))
        return VerifiedRanges(self.whole_from, tuple(sorted([*apart, (begin, end)])), damaged)

    def with_damage(self, position: int) -> "VerifiedRanges":
        """The same, with a damaged batch there."""
        return self._replace(damaged=tuple(sorted({*self.damaged, position})))


SOUND = VerifiedRanges(0)
UNKNOWN = VerifiedRanges(EVER)
