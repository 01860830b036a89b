"""Logs with a zone for each record, whose times and arrivals a test knows to the millisecond."""

from typing import Any

from storage.env import Env
from storage.files.layout import ZONES
from storage.log.log import Log
from storage.search.search_clock import SearchClock
from storage.zones.rows import ROW_BYTES
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.logs import append, open_log, reopened

NOW = 1_700_000_000_000
IN_2055 = 2_682_374_400_000
VALUE = bytes(5000)  # a batch of it is a zone
SMALL_ZONES = {"horolog_zone_bytes": 4096}
RECORD, ARRIVAL, EARLIER = SearchClock


def env_of(log: Log) -> SimClock:
    clock = log._appender._env.clock
    assert isinstance(clock, SimClock)
    return clock


def fs_of(log: Log) -> SimFileSystem:
    assert isinstance(log.files.fs, SimFileSystem)
    return log.files.fs


def filled(count: int, dirty: tuple[int, ...] = (), env: Env | None = None, **settings: Any) -> Log:
    """Record number n is of NOW + 10 n and comes then, but the dirty ones are of 2055."""
    clock = SimClock(NOW)
    log = open_log(env or sim_env(clock=clock), **{**SMALL_ZONES, **settings})
    for number in range(count):
        append(log, IN_2055 if number in dirty else NOW + 10 * number, value=VALUE)
        env_of(log).advance(10)
    return log


def without_zones(log: Log, *, keep_rows: int = 0) -> Log:
    """Closed, rows behind the first ones lost as when a Kafka ran there, and opened again."""
    log.close()
    for entry in fs_of(log).list_dir(log.files.path):
        if entry.name.endswith(ZONES):
            path = f"{log.files.path}/{entry.name}"
            if keep_rows:
                fs_of(log).open(path).truncate(keep_rows * ROW_BYTES)
            else:
                fs_of(log).remove(path)
    return reopened(log, log._appender._env)
