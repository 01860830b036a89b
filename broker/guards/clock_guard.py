"""Detection of a wrong wall clock, which must not empty every topic (time.md 6).

Wall time is compared with monotonic time, every second and before each decision that deletes or
rolls by time. When it has stepped, or when the broker starts at a time far from the last write on
its disk, such decisions are suspended for `horolog.clock.hold.ms`. An operator who has looked at
the clock ends the hold: `confirm`, or that key set to 0.

A machine that slept has stepped, too: its monotonic clock stood still.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from broker.runtime.event_log import event
from config.broker import BrokerConfig
from storage.env import Clock

FAR_AHEAD_MS = 86_400_000  # of the last write, at a start: a day without a write is no news


class HoldCause(NamedTuple):
    """Reason of a hold: what was seen, by how many ms, and when (monotonic seconds)."""

    because: str
    ms: int
    since: float


class ClockWatch:
    """Watches one clock. `look` belongs to the event loop; the rest may be read anywhere."""

    def __init__(self, clock: Clock, settings: Callable[[], BrokerConfig]) -> None:
        """Begins to compare now; `settings` are read each time."""
        self._clock = clock
        self._settings = settings
        self._wall_ms = clock.now_ms()
        self._monotonic = clock.monotonic()
        self._trusted = self._wall_ms, self._monotonic
        self._cause: HoldCause | None = None
        self.steps = 0
        """Number of steps of the wall clock since the start."""
        self.ahead_ms = 0
        self.back_ms = 0
        """By how much it went ahead and back in all of them."""

    def started(self, last_write_ms: int | None) -> None:
        """Judge the time of the start by that of the last write on the disk, if there is one."""
        if last_write_ms is None:
            return
        ahead_ms = self._clock.now_ms() - last_write_ms
        if -self._settings().horolog_clock_step_ms <= ahead_ms <= FAR_AHEAD_MS:
            return
        self._begin_hold("start_far_from_last_write", ahead_ms)
        if self.is_held:
            self._trusted = min(self._clock.now_ms(), last_write_ms), self._clock.monotonic()

    def look(self) -> bool:
        """Compare the clocks; whether what depends on wall time must wait."""
        wall_ms, monotonic = self._clock.now_ms(), self._clock.monotonic()
        passed_ms = (monotonic - self._monotonic) * 1000
        step_ms = round(wall_ms - self._wall_ms - passed_ms)
        self._wall_ms, self._monotonic = wall_ms, monotonic
        if abs(step_ms) > self._settings().horolog_clock_step_ms:
            self.steps += 1
            self.ahead_ms += max(0, step_ms)
            self.back_ms += max(0, -step_ms)
            self._begin_hold("clock_stepped", step_ms)
        if self._cause is not None and not self.is_held:
            self._cause = None
            event("clock_hold_over")
        if self._cause is None:
            self._trusted = wall_ms, monotonic
        return self._cause is not None

    def confirm(self) -> bool:
        """An operator has looked at the clock: it is right. Whether a hold ended by that."""
        was_held = self.look()
        self._cause = None
        self._trusted = self._wall_ms, self._monotonic
        if was_held:
            event("clock_confirmed")
        return was_held

    def trusted_ms(self) -> int:
        """Wall time, but in a hold no later than the last time of before it and what has passed
        since: what must not happen early goes by it.
        """
        wall_ms, monotonic = self._trusted
        passed_ms = round((self._clock.monotonic() - monotonic) * 1000)
        return min(self._clock.now_ms(), wall_ms + passed_ms)

    @property
    def is_held(self) -> bool:
        """True while a hold is on, by what was seen so far."""
        return self.hold is not None

    @property
    def hold(self) -> tuple[HoldCause, int] | None:
        """The reason for the hold that is on, and how many ms of it are left; None without one."""
        cause = self._cause
        if cause is None:
            return None
        passed_ms = (self._clock.monotonic() - cause.since) * 1000
        left_ms = self._settings().horolog_clock_hold_ms - passed_ms
        return (cause, math.ceil(left_ms)) if left_ms > 0 else None

    def _begin_hold(self, what: str, ms: int) -> None:
        self._cause = HoldCause(what, ms, self._clock.monotonic())
        event(what, "warning", ms=ms, held_ms=self._settings().horolog_clock_hold_ms)
