"""Rates and throttle times: Kafka's window rules.

A rate is what was counted in the last `windows` windows of `window_ms`, over the time since the
oldest of them began; windows that are missing count as empty ones, so that a burst after silence is
spread over all of them (Kafka's `Rate` and `SampledStat`). Pure: times are handed in.
"""

from collections import deque


class _Window:
    """Count of one window."""

    __slots__ = ("began_ms", "last_ms", "total")

    def __init__(self, began_ms: float) -> None:
        self.began_ms = began_ms
        self.last_ms = began_ms
        self.total = 0.0


class WindowedRate:
    """The rate of one thing; times in milliseconds that never run backwards."""

    __slots__ = ("_count", "_length_ms", "_windows")

    def __init__(self, windows: int, window_ms: float) -> None:
        """Nothing counted yet."""
        self._count = windows
        self._length_ms = window_ms
        self._windows: deque[_Window] = deque(maxlen=windows + 1)

    def add(self, amount: float, now_ms: float) -> None:
        """Counts `amount`; a negative one takes back what was counted."""
        windows = self._windows
        if not windows or now_ms - windows[-1].began_ms >= self._length_ms:
            windows.append(_Window(now_ms))
        window = windows[-1]
        window.total += amount
        window.last_ms = now_ms

    def excess_ms(self, bound: float, now_ms: float) -> float:
        """The pause after which the rate is `bound` a second, in ms; 0 when it is not above.

        As Kafka's `QuotaUtils.throttleTime`: the part of the window that the excess is.
        """
        span_ms = self._span_ms(now_ms)
        per_second = sum(window.total for window in self._windows) * 1000 / span_ms
        return max(0.0, (per_second - bound) / bound * span_ms)

    def _span_ms(self, now_ms: float) -> float:
        """The time that the rate is measured over."""
        windows, length = self._windows, self._length_ms
        while windows and now_ms - windows[0].last_ms >= self._count * length:
            windows.popleft()
        elapsed = now_ms - windows[0].began_ms if windows else 0.0
        missing = self._count - 1 - int(elapsed / length)
        return max(elapsed + max(missing, 0) * length, length)
