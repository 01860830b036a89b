"""Life of one history on one broker: its records, its offsets, all of the broker's answers.

`told` holds nothing that two equal brokers could differ in: a time that the broker stamped is
`("stamp", n)`, the n-th of its topic.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.support.histories.histories import History
from tests.support.histories.history_batches import Write

NOTHING = (0, -1, -1)

Told = dict[str, Any]


class Lookup(NamedTuple):
    """Expected result of a search by time, from a plain list of the records."""

    by_model: Any
    """The first record at or after the log start that is late enough."""
    by_kafka: Any
    """The same, but in the first segment only whose largest time is late enough (5.3)."""


@dataclass(slots=True, eq=False)
class Life:
    """One history on this broker."""

    history: History
    told: Told = field(default_factory=dict)
    records: list[tuple[int, int]] = field(default_factory=list)
    """Time as readers see it and offset of all that was ever accepted, in order of appending."""
    stamps: dict[int, int] = field(default_factory=dict)
    """Times that the broker gave, with their numbers."""
    start: int = 0
    end: int = 0
    bases: list[int] = field(default_factory=list)
    """Bases of its segments when it was asked for offsets."""
    lookups: dict[str, Lookup] = field(default_factory=dict)

    def wrote(self, write: Write, base_offset: int, stamp: int) -> None:
        """A batch was accepted; `stamp` is the broker's time, -1 if it gave none."""
        times = write.effective_times()
        if stamp >= 0:
            assert stamp not in self.stamps
            self.stamps[stamp] = len(self.stamps)
            times = (stamp,) * len(times)
        offsets = range(base_offset, base_offset + len(write.times))
        self.records += zip(times, offsets, strict=True)
        self.end = base_offset + len(times)

    def named(self, at: int) -> Any:
        """A time that does not depend on the broker's clock."""
        return ("stamp", self.stamps[at]) if at in self.stamps else at

    def sorting(self, at: int) -> tuple[bool, int]:
        """Sort key of a time, independent of the broker's clock."""
        return at in self.stamps, at

    def lookup(self, timestamp: int, now_ms: int) -> Lookup:
        """Expected result for a time."""
        ends = [*self.bases[1:], self.end]
        late = [(at, offset) for at, offset in self.records if at >= timestamp]
        for base, end in zip(self.bases, ends, strict=True):
            newest = max((at for at, offset in self.records if base <= offset < end), default=-1)
            if (newest if newest >= 0 else now_ms) >= timestamp:
                in_segment = [each for each in late if base <= each[1] < end]
                return Lookup(self._first(late), self._first(in_segment))
        return Lookup(self._first(late), NOTHING)

    def _first(self, records: list[tuple[int, int]]) -> Any:
        for at, offset in records:
            if offset >= self.start:
                return 0, self.named(at), offset
        return NOTHING
