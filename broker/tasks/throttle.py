"""Throttle of background work: pauses that bound the bytes a second."""

from collections.abc import Callable

WINDOW_SECONDS = 0.3  # as Kafka's: what is moved in so short a time is moved at once


class Throttle:
    """One rate, shared by all who ask. Used from one thread."""

    __slots__ = ("_free_at", "_monotonic", "_rate")

    def __init__(
        self, monotonic: Callable[[], float], bytes_per_second: Callable[[], float]
    ) -> None:
        """`bytes_per_second` is read each time."""
        self._monotonic = monotonic
        self._rate = bytes_per_second
        self._free_at = 0.0

    @property
    def window_bytes(self) -> float:
        """Bytes that may be moved before the next request."""
        return max(self._rate() * WINDOW_SECONDS, 1.0)

    def rest(self, moved_bytes: int) -> float:
        """Seconds to wait after so many bytes were moved; 0 when there is no need."""
        now = self._monotonic()
        self._free_at = max(self._free_at, now) + moved_bytes / max(self._rate(), 1.0)
        seconds = self._free_at - now
        return seconds if seconds >= WINDOW_SECONDS else 0.0
