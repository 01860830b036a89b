"""Segments whose arrivals are estimates keep their age in a run of the cleaner."""

from typing import Any

import pytest

from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.files.layout import ZONES
from storage.log.lifecycle import learn_times, plan_retention
from storage.log.log import Log
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.cleaning import clean
from tests.support.records.clock_logs import without_zones
from tests.support.records.logs import append, make_durable, open_log
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.tier_life import TierLife

NOW = 1_700_000_000_000
OLD = 1_000_000_000_000
DAY = 86_400_000
BOTH = frozenset({"compact", "delete"})


def load_history(log: Log) -> None:
    """Records of long ago, two of each key, in a closed segment."""
    for number in range(5):
        append(log, OLD + number, key=b"%d" % (number % 2), value=b"x" * 100)
    log.roll()
    make_durable(log)


@pytest.mark.parametrize(
    "kept",
    [{"horolog_retention_clock": "arrival"}, {"horolog_retention_min_stay_ms": 7 * DAY}],
)
def test_a_segment_that_was_loaded_a_day_ago_stays_after_a_run(kept: dict[str, Any]) -> None:
    env = sim_env(clock=SimClock(NOW))
    log = open_log(env, segment_bytes=2000, cleanup_policy=BOTH, retention_ms=7 * DAY, **kept)
    load_history(log)
    log = without_zones(log)
    before = log.snapshot.segments[0]
    clean(log, env, CleanerOffsets(env.fs, "/data"))
    assert log.snapshot.segments[0] is not before
    assert learn_times(log, 100)
    assert not plan_retention(log, NOW + DAY).leaving
    assert plan_retention(log, NOW + 7 * DAY + 1).leaving


def test_a_run_in_the_store_leaves_its_last_arrival_in_the_manifest() -> None:
    life = TierLife(MemoryStore(), cleanup_policy=BOTH)
    life.create()
    load_history(life.log)
    life.fs.remove(life.log.snapshot.segments[0].path_of(ZONES))
    life.restart()
    life.copy_all()
    life.drop()
    (before,) = life.tiered.manifest.segments
    life.clean(life.verdict())
    (after,) = life.tiered.manifest.segments
    assert after.size_bytes < before.size_bytes
    assert after.last_arrival_ms == before.last_arrival_ms == NOW
