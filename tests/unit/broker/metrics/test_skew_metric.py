"""The skew histogram as Prometheus reads it: both signs, cumulative, no sum that means nothing."""

import pytest

from broker.metrics.declare import summed
from broker.runtime.probes import SKEW_BOUNDS_MS, BrokerProbes


@pytest.mark.parametrize(
    ("skew_ms", "bucket"),
    [
        (-(2**63), "-86400.0"), (-86_400_000, "-86400.0"), (-86_399_999, "-3600.0"), (-1, "0.0"),
        (0, "0.0"), (1, "0.01"), (1000, "1.0"), (1001, "10.0"), (604_800_001, "+Inf"),
        (2**64, "+Inf"),
    ],
)  # fmt: skip
def test_a_batch_falls_into_the_first_bucket_that_holds_it(skew_ms: int, bucket: str) -> None:
    probes = BrokerProbes(lambda: 0.0)
    probes.appended("t", 100, 1, skew_ms)
    bounds = tuple(bound / 1000 for bound in SKEW_BOUNDS_MS)
    shown = summed(bounds, probes.topics["t"].skew)
    assert next(name for name, count in shown if count) == bucket
    assert shown[-1] == ("+Inf", 1.0)
    assert [count for _, count in shown] == sorted(count for _, count in shown)


def test_batches_without_time_have_no_skew() -> None:
    probes = BrokerProbes(lambda: 0.0)
    probes.appended("t", 100, 1, None)
    assert sum(probes.topics["t"].skew) == 0


def test_bounds_rise_and_show_both_signs() -> None:
    assert list(SKEW_BOUNDS_MS) == sorted(set(SKEW_BOUNDS_MS))
    assert SKEW_BOUNDS_MS[0] < 0 < SKEW_BOUNDS_MS[-1]
