"""Time of one back-up: never back, and behind all that was written at its place before.

A back-up counts with all manifests up to its time, and a restore reads none from after it. So its
times are in order whatever the machine's clock does.
"""

from storage.env import Clock


class RunClock:
    """A `storage.env.Clock`. One thread at a time."""

    def __init__(self, clock: Clock) -> None:
        """The machine's time until `pass_by` says otherwise."""
        self._clock = clock
        self._least_ms = 0
        self.monotonic = clock.monotonic

    def now_ms(self) -> int:
        """Wall time in ms, not before one that it gave."""
        self._least_ms = max(self._least_ms, self._clock.now_ms())
        return self._least_ms

    def pass_by(self, written_ms: int) -> None:
        """All from here on is later than this."""
        self._least_ms = max(self._least_ms, written_ms + 1)
