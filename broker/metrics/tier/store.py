"""Metrics of the tier's store: requests and bytes, as its bill has them, errors, and the cache."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from broker.metrics.declare import Metric, Sample, counter, gauge, one
from broker.metrics.tier.segments import of_tier
from broker.tier.store_account import StoreAccount
from broker.tier.tier import Tier
from config.store import ConfigStore


class TierStoreView(NamedTuple):
    """Services that metrics of the tier's store read."""

    tier: Tier | None
    config: ConfigStore


def _counts(
    read: Callable[[StoreAccount], Iterable[tuple[tuple[str, str], int]]],
) -> Callable[[TierStoreView], Iterable[Sample]]:
    """Numbers with two labels; none where there is no tier."""

    def samples(view: TierStoreView) -> Iterable[Sample]:
        found = () if view.tier is None else read(view.tier.account)
        return [((str(first), str(second)), float(n)) for (first, second), n in found]

    return samples


def _max_lag_seconds(view: TierStoreView) -> Iterable[Sample]:
    """None without a tier, and without a promise."""
    most_ms = view.config.broker_config.horolog_tier_max_lag_ms
    return [((), most_ms / 1000)] if view.tier is not None and most_ms >= 0 else []


_REQUESTS: tuple[Metric[TierStoreView], ...] = (
    counter(
        "horolog_tier_requests",
        "Requests to the store, failed ones too: put (a large object: one for each part and two "
        "more), get, list (1,000 objects), delete (1,000 names).",
        ("purpose", "request"),
        _counts(lambda account: account.requests.items()),
    ),
    counter(
        "horolog_tier_transferred_bytes",
        "Bytes of objects that were put or got.",
        ("purpose", "request"),
        _counts(lambda account: account.size_bytes.items()),
    ),
    counter(
        "horolog_tier_request_errors",
        "Requests that failed: away, timed_out, throttled, denied, lost (an object is not there), "
        "spoilt (other bytes came than were sent), refused (anything else).",
        ("request", "error"),
        _counts(lambda account: account.errors.items()),
    ),
    gauge(
        "horolog_tier_store_failing_seconds",
        "Time since the first of the requests that failed in a row; 0 when the last one did not.",
        (),
        one(of_tier(lambda tier: tier.account.failing_seconds)),
    ),
    counter(
        "horolog_tier_damaged_reads",
        "Reads that were refused because the store has lost an object, or its bytes are not what "
        "was copied, asked for twice.",
        (),
        one(of_tier(lambda tier: tier.account.damaged_reads)),
    ),
    gauge(
        "horolog_tier_max_lag_seconds",
        "horolog.tier.max.lag.ms; without a limit there is no series.",
        (),
        _max_lag_seconds,
    ),
)

_CACHE: tuple[Metric[TierStoreView], ...] = (
    counter(
        "horolog_tier_cache_hits",
        "Reads of the store's objects that found all bytes here.",
        (),
        one(of_tier(lambda tier: tier.cache.hits)),
    ),
    counter(
        "horolog_tier_cache_misses",
        "Reads of the store's objects that had to ask the store.",
        (),
        one(of_tier(lambda tier: tier.cache.misses)),
    ),
    gauge(
        "horolog_tier_cache_bytes",
        "Bytes of the store's objects that are here.",
        (),
        one(of_tier(lambda tier: tier.cache.bytes_here)),
    ),
    gauge(
        "horolog_tier_waiting_reads",
        "Reads of the store that wait for a thread.",
        (),
        one(of_tier(lambda tier: tier.reads.waiting)),
    ),
    counter(
        "horolog_tier_refused_reads",
        "Reads that were refused because remote.log.reader.max.pending.tasks waited already.",
        (),
        one(of_tier(lambda tier: tier.reads.refused)),
    ),
)

TIER_STORE_METRICS: tuple[Metric[TierStoreView], ...] = (*_REQUESTS, *_CACHE)
