"""Measures every request of a client that has a limit, and holds the client back when it is over.

As in Kafka (KIP-13, KIP-124, KIP-219): the answer goes out at once and says how long the client
should rest; whether it does or not, nothing more is read from its connection for so long. Bytes
written are those of whole Produce requests, bytes read are those of records; the time of requests
is that of the event loop, in percent of one core.

Exists only while a limit is set, so that who has none pays for none. Used on the event loop only.
"""

from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from broker.quotas.mutations import Allowance, LimitedAllowance, MutationBuckets
from broker.quotas.rate import WindowedRate
from broker.quotas.recent import Recent
from broker.quotas.table import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    MAX_NAME,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    Limit,
    QuotaTable,
)
from broker.runtime.event_log import event
from broker.runtime.request_context import RequestContext

PRODUCE, FETCH, SHARE_FETCH = 0, 1, 78
CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
SAY_THEMSELVES = {FETCH, SHARE_FETCH, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS}
"""APIs whose answers come with a time to rest, from `fetched`, `sent` or an `Allowance`."""
MAX_RATES = 10_000  # kept at one time; the one that rested longest gives way
MAX_KNOWN = 10_000  # clients whose limits have been looked up
MAX_THROTTLE_MS = 2**31 - 1
LOGGED_EVERY_MS = 60_000

Mute = Callable[[int, float], None]


class Throttled:
    """Throttled requests since the start, by the limit."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.requests: Counter[str] = Counter()
        self.milliseconds: Counter[str] = Counter()

    def add(self, limit: str, throttle_ms: int) -> None:
        """One more request whose client is asked to rest so long."""
        self.requests[limit] += 1
        self.milliseconds[limit] += throttle_ms


class Enforcement:
    """The rates of all clients that have a limit."""

    def __init__(
        self,
        *,
        windows: int,
        window_ms: int,
        burst_seconds: float,
        monotonic: Callable[[], float],
        mute: Mute,
        throttled: Throttled,
        super_users: Collection[str] = (),
    ) -> None:
        """`mute(connection id, seconds)` stops reading from a client. `super_users`: by name.

        For `burst_seconds` who rests saves up changes of partitions.
        """
        self._super_users = super_users
        self._windows = windows
        self._window_ms = window_ms
        self._monotonic = monotonic
        self._mute = mute
        self._throttled = throttled
        self._table = QuotaTable()
        self._known: dict[tuple[str, str, str], Limit | None] = {}
        self._rates = Recent[tuple[str, tuple[str, str]], WindowedRate](
            partial(WindowedRate, windows, window_ms), MAX_RATES
        )
        self._buckets = MutationBuckets(burst_seconds)
        self._logged_ms: dict[str, float] = {}

    def use(self, table: QuotaTable) -> None:
        """The limits from now on; what was measured so far stays."""
        self._table = table
        self._known.clear()

    def handled(self, context: RequestContext[Any], size_bytes: int, seconds: float) -> None:
        """A request was handled, or will be answered later: what it costs its client."""
        context.charge = (size_bytes, seconds)

    def answering(self, context: RequestContext[Any], response: Any) -> None:
        """Counts a request that is being answered; writes into the answer how long to rest.

        A response of None stands for a Produce that wants no answer; its time is not counted. Who
        gets an answer without room for it (WriteTxnMarkers) rests all the same.
        """
        size_bytes, seconds = getattr(context, "charge", (0, 0.0))
        throttle_ms = 0
        if response is not None:
            throttle_ms = self._count(REQUEST_PERCENTAGE, context, 100 * seconds)
            throttle_ms = min(throttle_ms, self._window_ms)
        if context.api_key == PRODUCE:
            throttle_ms = max(throttle_ms, self._count(PRODUCER_BYTE_RATE, context, size_bytes))
        elif context.api_key in SAY_THEMSELVES:
            throttle_ms = max(throttle_ms, response.throttle_time_ms)
        if throttle_ms:
            if _says_throttle(response):
                response.throttle_time_ms = throttle_ms
            self._mute(context.connection_id, throttle_ms / 1000)

    def fetched(self, context: RequestContext[Any], size_bytes: int) -> int:
        """Counts records about to be sent; milliseconds to send nothing instead, 0 to send them.

        As in Kafka, what is not sent after all is not counted.
        """
        throttle_ms = self._count(CONSUMER_BYTE_RATE, context, size_bytes)
        if throttle_ms:
            limit = self._limit(CONSUMER_BYTE_RATE, context)
            assert limit is not None
            self._rates.of((CONSUMER_BYTE_RATE, limit.shared_by)).add(-size_bytes, self._now_ms())
        return throttle_ms

    def sent(self, context: RequestContext[Any], size_bytes: int) -> int:
        """Counts records that are sent whatever the limit; milliseconds for which the client is to
        rest.
        """
        return self._count(CONSUMER_BYTE_RATE, context, size_bytes)

    def fetch_max_bytes(self, context: RequestContext[Any], wanted: int) -> int:
        """Size limit of one fetch, in bytes: never more than the limit gives in all its windows."""
        limit = self._limit(CONSUMER_BYTE_RATE, context)
        if limit is None:
            return wanted
        seconds = max(self._windows - 1, 1) * self._window_ms / 1000
        return int(min(wanted, max(limit.bound * seconds, 1)))

    def allowance(self, context: RequestContext[Any], *, strict: bool) -> Allowance:
        """The partitions that a request may make or delete; `strict`: it knows of code 89."""
        limit = self._limit(CONTROLLER_MUTATION_RATE, context)
        if limit is None:
            return Allowance()
        return LimitedAllowance(
            self._buckets.of(limit.shared_by),
            limit.bound,
            limit.bound * self._buckets.burst_seconds,
            strict=strict,
            now_ms=self._now_ms,
            on_rest=partial(self._tell, CONTROLLER_MUTATION_RATE, context),
        )

    def _count(self, key: str, context: RequestContext[Any], amount: float) -> int:
        """Milliseconds that the client has to rest after this; 0 within its limit, or without."""
        limit = self._limit(key, context)
        if limit is None:
            return 0
        now_ms = self._now_ms()
        rate = self._rates.of((key, limit.shared_by))
        rate.add(amount, now_ms)
        throttle_ms = min(round(rate.excess_ms(limit.bound, now_ms)), MAX_THROTTLE_MS)
        if throttle_ms > 0:
            self._tell(key, context, throttle_ms)
        return throttle_ms

    def _limit(self, key: str, context: RequestContext[Any]) -> Limit | None:
        known = self._known
        user, client_id = context.principal.name[:MAX_NAME], context.client_id[:MAX_NAME]
        try:
            return known[key, user, client_id]
        except KeyError:
            if len(known) >= MAX_KNOWN:
                known.clear()
            is_super = user in self._super_users
            found = self._table.limit(key, user, client_id, is_super=is_super)
            known[key, user, client_id] = found
            return found

    def _tell(self, key: str, context: RequestContext[Any], throttle_ms: int) -> None:
        """Counts one throttling; a line in the log for each limit at most once a minute."""
        self._throttled.add(key, throttle_ms)
        now_ms = self._now_ms()
        if now_ms - self._logged_ms.get(key, -LOGGED_EVERY_MS) >= LOGGED_EVERY_MS:
            self._logged_ms[key] = now_ms
            event(
                "client_throttled",
                "info",
                quota=key,
                principal=context.principal,
                client_id=context.client_id,
                peer=context.peer,
                throttle_ms=throttle_ms,
            )

    def _now_ms(self) -> float:
        return self._monotonic() * 1000


def _says_throttle(response: Any) -> bool:
    return response is not None and "throttle_time_ms" in type(response).__fields__
