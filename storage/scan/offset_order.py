"""Order of the offsets of batches in a row: no checksum covers them."""

from protocol.records.scan import BatchRow

DISORDER = "its offsets are out of order"


class OffsetOrder:
    """Check that offsets rise from batch to batch, and stay below a bound.

    Where they do not, one of two neighbours is wrong: the later one if the earlier one follows on
    its own predecessor without a gap, else perhaps the earlier one.
    """

    __slots__ = ("_before", "_below", "_is_anchored", "_position", "last", "unsound_from")

    def __init__(self, last: int, below: int) -> None:
        """The first batch comes after the offset `last`."""
        self.last = last
        """Last offset of the batches that were looked at, or that are in order once one is not."""
        self._before = last
        self._below = below
        self._position = -1
        self._is_anchored = False
        self.unsound_from = -1
        """Position of the wrong batch, once a fault was found."""

    def fault_in(self, rows: list[BatchRow], begin: int) -> str:
        """Fault of the next batches, in a piece from `begin` on; empty without one."""
        last, below = self.last, self._below
        for index, row in enumerate(rows):
            if row[1] <= last or row[2] >= below:
                self._passed(rows[:index], begin)
                return self._fault(begin + row[0], row[1])
            last = row[2]
        self._passed(rows, begin)
        return ""

    def fault_before(self, head: bytes) -> str:
        """Fault of the last batch, by the begin of the one behind it; empty without one."""
        if self._is_anchored or int.from_bytes(head, "big") > self.last:
            return ""
        self.unsound_from = self._position
        return DISORDER

    def _passed(self, rows: list[BatchRow], begin: int) -> None:
        if rows:
            at, base, last = rows[-1][:3]
            self._before = rows[-2][2] if len(rows) > 1 else self.last
            self.last, self._position = last, begin + at
            self._is_anchored = base == self._before + 1

    def _fault(self, at: int, base: int) -> str:
        is_later = self._is_anchored or self._position < 0 or base > self.last
        self.unsound_from = at if is_later else self._position
        if not is_later:
            self.last = self._before
        return DISORDER
