"""Whether the wall clock can be believed: a wrong one must not empty every topic (time.md 6).

Wall time is compared with monotonic time, every second and before each decision that deletes or
rolls by time. When it has stepped, or when the broker starts at a time far from the last write
on its disk, such decisions are held for `horolog.clock.hold.ms`. An operator who has looked at the
clock ends the hold by setting that key to 0.

A machine that slept has stepped, too: its monotonic clock stood still.
"""

from collections.abc import Callable

from broker.logs import event
from config.broker import BrokerConfig
from storage.env import Clock

FAR_AHEAD_MS = 86_400_000  # of the last write, at a start: a day without a write is no news


class ClockWatch:
    """Watches one clock. `look` belongs to the event loop; the rest may be read anywhere."""

    def __init__(self, clock: Clock, settings: Callable[[], BrokerConfig]) -> None:
        """Begins to compare now; `settings` are read anew each time."""
        self._clock = clock
        self._settings = settings
        self._wall_ms = clock.now_ms()
        self._monotonic = clock.monotonic()
        self._doubted_at: float | None = None
        self.steps = 0
        """How often the wall clock stepped since the start."""

    def started(self, last_write_ms: int | None) -> None:
        """Judge the time of the start by that of the last write on the disk, if there is one."""
        if last_write_ms is None:
            return
        ahead_ms = self._clock.now_ms() - last_write_ms
        if -self._settings().horolog_clock_step_ms <= ahead_ms <= FAR_AHEAD_MS:
            return
        self._doubt("start_far_from_last_write", ahead_ms)

    def look(self) -> bool:
        """Compare the clocks; whether what depends on wall time must wait."""
        wall_ms, monotonic = self._clock.now_ms(), self._clock.monotonic()
        passed_ms = (monotonic - self._monotonic) * 1000
        step_ms = round(wall_ms - self._wall_ms - passed_ms)
        self._wall_ms, self._monotonic = wall_ms, monotonic
        if abs(step_ms) > self._settings().horolog_clock_step_ms:
            self.steps += 1
            self._doubt("clock_stepped", step_ms)
        if self._doubted_at is not None and not self.is_held:
            self._doubted_at = None
            event("clock_hold_over")
        return self.is_held

    @property
    def is_held(self) -> bool:
        """Whether a hold is on, by what was seen so far."""
        since = self._doubted_at
        if since is None:
            return False
        held_ms = (self._clock.monotonic() - since) * 1000
        return held_ms < self._settings().horolog_clock_hold_ms

    def _doubt(self, what: str, ms: int) -> None:
        self._doubted_at = self._clock.monotonic()
        event(what, "warning", ms=ms, held_ms=self._settings().horolog_clock_hold_ms)
