"""Lag of a group, in records and in time, and the time to catch up. Pure."""

from typing import Any, NamedTuple


class Lag(NamedTuple):
    """Of one group and partition. Times in ms, rates in records a second; None: not known."""

    group: str
    topic: str
    partition: int
    committed: int
    end_offset: int
    records: int
    by_arrival_ms: int | None
    """For how long the first record that was not read has been there."""
    by_record_ms: int | None
    """Age by record time, in ms."""
    consumed_a_second: float | None
    produced_a_second: float | None
    lost: int
    """Records that retention took before the group read them."""
    beyond: int = 0
    """Number of offsets by which the commit is beyond the log's end: the topic was created again,
    or has lost its end. The group gets nothing, or begins again, and counts as having read all.
    """
    is_fresh: bool = False
    """The end is from a broker; a checkpoint may be older than the commit."""

    @property
    def behind_ms(self) -> int | None:
        """For how long there has been something to read: by arrival where that is known."""
        return self.by_record_ms if self.by_arrival_ms is None else self.by_arrival_ms

    def is_alarming(self, limit_ms: int) -> bool:
        """True when it is further behind, or will miss new records."""
        return (self.behind_ms or 0) > limit_ms or (self.is_fresh and self.beyond > 0)

    @property
    def catches_up_ms(self) -> int | None:
        """Time to read all there is at these rates, in ms; None: never, or not known."""
        if not self.records:
            return 0
        if self.consumed_a_second is None:
            return None
        gain = self.consumed_a_second - (self.produced_a_second or 0)
        return round(1000 * self.records / gain) if gain > 0 else None

    def as_json(self) -> dict[str, Any]:
        """The whole answer."""
        return {**self._asdict(), "catches_up_ms": self.catches_up_ms}
