"""Limits on partitions that clients make and delete, in a second: token buckets as Kafka's.

As in Kafka (KIP-599): a client may go below what it has saved, and then waits until it is back at
nothing. Versions of the APIs that know THROTTLING_QUOTA_EXCEEDED (89) are refused meanwhile; what
older ones ask for is done, and they rest.
"""

from collections.abc import Callable

from broker.quotas.recent import Recent
from protocol.errors import ErrorCode, KafkaError

MAX_BUCKETS = 10_000  # kept at one time; the one that rested longest gives way
MAX_REST_MS = 2**31 - 1


class TokenBucket:
    """Partitions that may still be changed; below 0, what was taken too early."""

    __slots__ = ("_seen_ms", "_tokens")

    def __init__(self) -> None:
        """Full."""
        self._tokens: float | None = None
        self._seen_ms = 0.0

    def rest_ms(self, rate: float, burst: float, now_ms: float) -> float:
        """Time until it is not below 0, at `rate` a second up to `burst`."""
        if self._tokens is None:
            self._tokens = burst
        else:
            saved = self._tokens + rate * (now_ms - self._seen_ms) / 1000
            self._tokens = min(saved, burst)
        self._seen_ms = now_ms
        return max(0.0, -self._tokens / rate * 1000)

    def take(self, count: int) -> None:
        """Takes out as many, to below 0. After `rest_ms`."""
        assert self._tokens is not None
        self._tokens -= count


class Allowance:
    """Changes of partitions that one request may make; this one, as many as it likes."""

    rest_ms = 0
    """Milliseconds for which the client has to rest after the answer."""

    def take(self, partitions: int) -> None:
        """Counts that so many partitions are made or deleted.

        Raises KafkaError THROTTLING_QUOTA_EXCEEDED (89) when they must not be.
        """


class LimitedAllowance(Allowance):
    """As above, with a limit."""

    def __init__(
        self,
        bucket: TokenBucket,
        rate: float,
        burst: float,
        *,
        strict: bool,
        now_ms: Callable[[], float],
        on_rest: Callable[[int], None],
    ) -> None:
        """`strict` refuses; else the client rests afterwards. `on_rest(ms)` is called once."""
        self._bucket, self._rate, self._burst = bucket, rate, burst
        self._strict, self._now_ms, self._on_rest = strict, now_ms, on_rest

    def take(self, partitions: int) -> None:
        """As `Allowance.take`."""
        rest_ms = self._bucket.rest_ms(self._rate, self._burst, self._now_ms())
        if self._strict and rest_ms:
            self._rest(rest_ms)
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self._bucket.take(partitions)
        if not self._strict:
            self._rest(self._bucket.rest_ms(self._rate, self._burst, self._now_ms()))

    def _rest(self, rest_ms: float) -> None:
        if not rest_ms:
            return
        is_first = not self.rest_ms
        self.rest_ms = max(1, min(round(rest_ms), MAX_REST_MS))
        if is_first:
            self._on_rest(self.rest_ms)


class MutationBuckets(Recent[tuple[str, str], TokenBucket]):
    """The buckets of all who have a limit, by who shares one."""

    def __init__(self, burst_seconds: float) -> None:
        """`burst_seconds`: the time for which a client that rests saves up."""
        super().__init__(TokenBucket, MAX_BUCKETS)
        self.burst_seconds = burst_seconds
