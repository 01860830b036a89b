"""Holds producers to a rate while the disk is short of space, in the way of a quota.

As `broker.quotas.enforcement` does it: the answer goes out at once and says how long the client
should rest, and nothing more is read from its connection for so long. All producers share the
rate. A rest is never longer than a second, so nobody waits for a disk on which nothing makes room:
that one fills up, and refuses as a full disk does.
"""

from collections.abc import Callable
from math import isinf
from typing import Any

from broker.quotas.enforcement import PRODUCE, Enforcement, Mute, Throttled
from broker.runtime.event_log import event
from broker.runtime.request_context import RequestContext

LONGEST_REST_SECONDS = 1.0
LOGGED_EVERY_SECONDS = 60.0
DISK_SPACE = "disk_space"
"""In the place of a quota's name."""


class DiskBrake:
    """Measures requests in the place of `Enforcement`, and with it. Used on the event loop only."""

    def __init__(
        self,
        bytes_per_second: Callable[[], float],
        *,
        monotonic: Callable[[], float],
        mute: Mute,
        throttled: Throttled,
    ) -> None:
        """`bytes_per_second` is read each time. `mute(connection id, seconds)` stops reading."""
        self.quotas: Enforcement | None = None
        """Limits of users and clients, which hold as well."""
        self._rate = bytes_per_second
        self._monotonic = monotonic
        self._mute = mute
        self._throttled = throttled
        self._ahead_bytes = 0.0
        self._seen_at = 0.0
        self._logged_at = -LOGGED_EVERY_SECONDS

    def handled(self, context: RequestContext[Any], size_bytes: int, seconds: float) -> None:
        """As `Enforcement.handled`."""
        context.charge = (size_bytes, seconds)

    def answering(self, context: RequestContext[Any], response: Any) -> None:
        """As `Enforcement.answering`: of two rests the client takes the longer one."""
        if self.quotas is not None:
            self.quotas.answering(context, response)
        if context.api_key != PRODUCE:
            return
        size_bytes, _ = getattr(context, "charge", (0, 0.0))
        rest_ms = round(self._rest_seconds(size_bytes) * 1000)
        if not rest_ms:
            return
        if response is not None:
            response.throttle_time_ms = max(response.throttle_time_ms, rest_ms)
        self._mute(context.connection_id, rest_ms / 1000)
        self._tell(context, rest_ms)

    def _rest_seconds(self, size_bytes: int) -> float:
        """Time until the rate has caught up with what came, these bytes included."""
        rate = self._rate()
        if isinf(rate):
            self._ahead_bytes = 0.0
            return 0.0
        rate, now = max(rate, 1.0), self._monotonic()
        gone, self._seen_at = rate * (now - self._seen_at), now
        ahead = max(self._ahead_bytes - gone, 0.0) + size_bytes
        self._ahead_bytes = min(ahead, rate * LONGEST_REST_SECONDS)
        return self._ahead_bytes / rate

    def _tell(self, context: RequestContext[Any], rest_ms: int) -> None:
        """Counts one rest; a line in the log at most once a minute."""
        self._throttled.add(DISK_SPACE, rest_ms)
        now = self._monotonic()
        if now - self._logged_at >= LOGGED_EVERY_SECONDS:
            self._logged_at = now
            event("producers_slowed", "warning", peer=context.peer, throttle_ms=rest_ms)
