"""The clock of `horolog serve --test-clock`: it can be stopped, moved and hurried (time.md 9).

It runs with the machine's monotonic clock until a client stops it. Time that passes moves both of
its hands, wall and monotonic; setting the wall clock moves that one alone, as an administrator or
NTP would. The monotonic hand never goes back. What protects the broker from the outside world (idle
and slow connections, group commit, latencies) keeps to `machine`, whose time cannot be moved.

Read from any thread: the state is replaced by one assignment. Moved on the event loop alone.
"""

from typing import NamedTuple

from storage.env import Clock

FIRST_MS, LAST_MS = 0, 253_402_300_799_999  # 1970, and the end of the year 9999
MAX_SPEED = 10_000_000.0


class ClockMoveError(ValueError):
    """The clock cannot be moved like that; the text says why and what is possible."""


class _Hands(NamedTuple):
    """Both clocks as they were when the machine's monotonic clock showed `since`."""

    since: float
    wall_ms: float
    monotonic: float
    speed: float


class HeldClock:
    """A `storage.env.Clock` that tests move."""

    def __init__(self, machine: Clock, start_ms: int | None = None) -> None:
        """Runs from `start_ms`, or from the machine's present. ClockMoveError out of 1970..9999."""
        self.machine = machine
        """The clocks of the machine."""
        now = machine.monotonic()
        wall_ms = machine.now_ms() if start_ms is None else _within(start_ms)
        self._hands = _Hands(now, wall_ms, now, 1.0)

    def now_ms(self) -> int:
        """Wall time of the test clock, in milliseconds since 1970."""
        hands = self._hands
        return round(hands.wall_ms + self._passed(hands) * 1000)

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        hands = self._hands
        return hands.monotonic + self._passed(hands)

    @property
    def speed(self) -> float:
        """Seconds here for one of the machine's; 0 while it stands still."""
        return self._hands.speed

    def set_speed(self, factor: float) -> None:
        """From now on so many seconds pass in one of the machine's; 0 stops the clock. Raises
        ClockMoveError.
        """
        if not 0 <= factor <= MAX_SPEED:
            raise ClockMoveError(f"the speed {factor} is out of bounds: 0 to {MAX_SPEED:.0f}")
        self._hands = self._now()._replace(speed=factor)

    def advance(self, ms: int) -> None:
        """Time passes: both hands move on. Nothing has happened when it raises. Raises
        ClockMoveError.
        """
        if ms < 0:
            raise ClockMoveError(
                f"time cannot pass by {ms} ms: to set the wall clock back, move that one alone"
            )
        hands = self._now()
        wall_ms = _within(hands.wall_ms + ms)
        self._hands = hands._replace(wall_ms=wall_ms, monotonic=hands.monotonic + ms / 1000)

    def set_wall(self, wall_ms: int) -> None:
        """Sets the wall clock; the monotonic one does not notice."""
        self._hands = self._now()._replace(wall_ms=_within(wall_ms))

    def _now(self) -> _Hands:
        hands, now = self._hands, self.machine.monotonic()
        passed = (now - hands.since) * hands.speed
        return _Hands(now, hands.wall_ms + passed * 1000, hands.monotonic + passed, hands.speed)

    def _passed(self, hands: _Hands) -> float:
        return (self.machine.monotonic() - hands.since) * hands.speed if hands.speed else 0.0


def _within(wall_ms: float) -> float:
    if not FIRST_MS <= wall_ms <= LAST_MS:
        raise ClockMoveError(
            f"{wall_ms:.0f} ms is no time that this clock can show: 1970 to the year 9999"
        )
    return wall_ms
