"""Arrivals of a log that is cut where compaction left fewer records than offsets."""

from uuid import UUID

from config.topic import TopicConfig
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.log.following import EpochRange, agreed_end
from storage.log.log import Log
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.cleaning import COMPACT, clean
from tests.support.records.logs import NO_BOUNDS, append, make_durable

CONFIG = TopicConfig(**NO_BOUNDS, cleanup_policy=COMPACT)
RECORDS, KEYS, CUT = 20, 6, 17


def compacted_log(manager: LogManager, env: Env, clock: SimClock) -> Log:
    """One zone of offset 0 and 14 to 19, which came a second after each other."""
    log = manager.create_log("t", 0, UUID(int=1), CONFIG)
    for number in range(RECORDS):
        append(log, clock.now_ms(), key=b"%d" % (number and number % KEYS + 1))
        clock.advance(1000)
    log.roll()
    make_durable(log)
    clean(log, env, manager.cleaner_offsets)
    return log


def test_a_zone_that_is_cut_in_its_middle_has_estimated_arrivals() -> None:
    """Its last arrival was that of a record that is gone; whoever has committed the others knows
    when they came.
    """
    clock = SimClock()
    env = sim_env(clock=clock)
    manager = LogManager(env, "/data", lambda _: CONFIG)
    manager.open_directory("", 1)
    manager.load()
    log = compacted_log(manager, env, clock)
    assert agreed_end(log, [EpochRange(0, 0, RECORDS)], 0) == RECORDS
    shorter = manager.cut(log, CUT)
    assert shorter.snapshot.log_end_offset == CUT
    assert agreed_end(shorter, [EpochRange(0, 0, CUT)], 0) == 0
