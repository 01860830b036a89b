"""Limits on the local disk of a topic with a tier, and what `plan` makes of them."""

import pytest

from config.topic import TopicConfig
from storage.retention.limits import limits_of
from storage.retention.local_limits import is_copied, local_limits_of, rounded_down
from storage.retention.plan import LogFacts, SegmentFacts, plan

NOW = 1_000_000


def tiered(**settings) -> TopicConfig:
    return TopicConfig(remote_storage_enable=True, **settings)


@pytest.mark.parametrize(
    ("local", "total", "effective"),
    [
        (-2, 70, 70),
        (-2, -1, -1),
        (5, 70, 5),
        (70, 70, 70),
        (0, 70, 0),
        (5, -1, 5),
        (-1, -1, -1),
        (-1, 70, 70),  # by inheritance only: refused where one topic says so
        (99, 70, 70),
    ],
)
def test_the_smaller_limit_holds(local: int, total: int, effective: int) -> None:
    by_time = local_limits_of(tiered(local_retention_ms=local, retention_ms=total))
    by_size = local_limits_of(tiered(local_retention_bytes=local, retention_bytes=total))
    assert by_time.retention_ms == effective
    assert by_size.retention_bytes == effective


@pytest.mark.parametrize(
    "config",
    [
        TopicConfig(local_retention_ms=1, local_retention_bytes=1),
        tiered(local_retention_ms=1, local_retention_bytes=1, remote_log_copy_disable=True),
    ],
)
def test_without_copying_the_total_limits_hold(config: TopicConfig) -> None:
    assert not is_copied(config)
    assert local_limits_of(config) == limits_of(config)


def test_a_promise_about_the_topic_does_not_keep_it_on_the_disk() -> None:
    config = tiered(
        horolog_retention_min_stay_ms=9,
        horolog_retention_before_timestamp=9,
        cleanup_policy=frozenset(),
        horolog_retention_clock="arrival",
    )
    limits = local_limits_of(config, is_held=True)
    assert (limits.min_stay_ms, limits.before_ms, limits.deletes) == (0, -1, True)
    assert (limits.clock, limits.is_held) == ("arrival", True)


def test_only_what_is_in_the_tier_leaves_the_disk() -> None:
    segments = [SegmentFacts(base, 100, 10, 10, 10) for base in (0, 10, 20, 30)]
    limits = local_limits_of(tiered(local_retention_ms=5))
    uploaded_end = 20
    decided = plan(segments, LogFacts(0, uploaded_end, 40), limits, NOW)
    assert [each.base_offset for each in decided.leaving] == [0, 10]
    assert decided.start_offset == 20


@pytest.mark.parametrize(
    ("limit", "stay"),
    [(-1, 4), (0, 0), (1, 0), (10, 1), (11, 1), (35, 2), (69, 3), (70, 4), (99, 4)],
)
def test_on_a_short_disk_what_stays_is_at_most_the_limit(limit: int, stay: int) -> None:
    """Segments of 10, 25, 25 and 10 bytes, and an active one that has nothing yet."""
    sizes = [10, 25, 25, 10, 0]
    config = tiered(local_retention_bytes=limit, local_retention_ms=-1, retention_ms=-1)
    limits = rounded_down(local_limits_of(config), sizes)
    segments = [SegmentFacts(base, size, NOW, NOW, NOW) for base, size in enumerate(sizes)]
    assert len(plan(segments, LogFacts(0, 4, 4), limits, NOW).leaving) == 4 - stay
