"""The gap that a row tells of holds no record, however rows came together; and it is found."""

from hypothesis import given
from hypothesis import strategies as st

from protocol.records.gaps import NO_EDGES, Edges
from storage.segment.segment import IndexRules
from storage.segment.zone_repair import mend_zones
from storage.zones.gaps import GAP_BITS, GapTimes, gap_flags, gap_of, joined_flags
from storage.zones.zone_map import DIRTY_FUTURE, DIRTY_PAST, LOG_APPEND_TIME, UNTIMED, ZoneMap
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import append, make_durable, open_log

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
NOW = 1_760_000_000_000
OLDEST, LATEST = NOW - 10**9, NOW + 10**6
FAR = 2_051_222_400_000
A_TIME = (
    st.integers(NOW - 60_000, NOW)
    | st.integers(INT64_MIN, INT64_MAX)
    | st.sampled_from([FAR, FAR + 1, 0, NOW // 1000, INT64_MIN, INT64_MAX, OLDEST, LATEST])
).filter(lambda at: at != -1)
BATCH = st.lists(A_TIME, min_size=1, max_size=6)


def edges_of(times: list[int]) -> Edges:
    return Edges(
        max((at for at in times if at < OLDEST), default=NO_EDGES.expired),
        min((at for at in times if OLDEST <= at <= LATEST), default=NO_EDGES.first),
        max((at for at in times if OLDEST <= at <= LATEST), default=NO_EDGES.last),
        min((at for at in times if at > LATEST), default=NO_EDGES.ahead),
    )


def flags_of(times: list[int]) -> int:
    dirty = DIRTY_FUTURE * (max(times) > LATEST) | DIRTY_PAST * (min(times) < OLDEST)
    return dirty and dirty | gap_flags(min(times), max(times), edges_of(times))


@given(st.lists(BATCH, min_size=1, max_size=8))
def test_no_time_of_a_zone_lies_in_its_gap(batches: list[list[int]]) -> None:
    zones = ZoneMap(SimFileSystem(), "/z", 0)
    zones.reset()
    for number, times in enumerate(batches):
        low, high = min(times), max(times)
        zones.add(number, number, 1, 1, low, high, 0, flags_of(times))
    zone = zones.open_zone
    assert zone is not None
    gap = gap_of(GapTimes(zone.min_timestamp, zone.max_timestamp, zone.flags))
    if gap is None:
        assert not zone.flags & GAP_BITS
        return
    assert zone.min_timestamp < gap.first <= gap.last < zone.max_timestamp
    assert not [at for times in batches for at in times if gap.first <= at <= gap.last]


def test_usual_times_and_dirty_ones_are_told_apart() -> None:
    """Also where a batch has one record, so that all of it is dirty, or none has a time."""
    zones = ZoneMap(SimFileSystem(), "/z", 0)
    zones.reset()
    batches = [[NOW - 3000, NOW], [NOW - 9000, FAR], [FAR + 5], [NOW - 20_000, NOW - 1, FAR + 7]]
    for number, times in enumerate(batches):
        zones.add(number, number, 1, 1, min(times), max(times), 0, flags_of(times))
    zones.add(9, 9, 1, 1, -1, -1, 0, UNTIMED)
    zone = zones.open_zone
    assert zone is not None
    gap = gap_of(GapTimes(zone.min_timestamp, zone.max_timestamp, zone.flags))
    assert gap is not None
    assert NOW < gap.first < NOW + 40_000
    assert FAR - 20 < gap.last < FAR


def test_clean_and_stamped_batches_have_none() -> None:
    assert not joined_flags(GapTimes(1, 5, 0), GapTimes(3, 9, LOG_APPEND_TIME)) & GAP_BITS
    assert not joined_flags(GapTimes(-1, -1, UNTIMED), GapTimes(-1, -1, UNTIMED)) & GAP_BITS


def test_a_log_s_zones_have_gaps_on_the_disk() -> None:
    env = sim_env()
    now = env.clock.now_ms()
    log = open_log(env, horolog_zone_bytes=1)
    append(log, now - 5000, now + 10**9, now - 1000, now)
    append(log, now - 5000, now)
    make_durable(log)
    zones = ZoneMap(env.fs, log.files.name_of(0, ".zones"), 0)
    dirty, clean = zones.zones()
    gap = gap_of(GapTimes(dirty.min_timestamp, dirty.max_timestamp, dirty.flags))
    assert gap is not None
    assert (now < gap.first, gap.last) == (True, now + 10**9 - 1)
    assert not clean.flags


def test_a_lost_zone_map_gets_its_gaps_back() -> None:
    env = sim_env()
    now = env.clock.now_ms()
    log = open_log(env, horolog_zone_bytes=1)
    append(log, now - 5000, now + 10**9, now)
    append(log, now - 4000, now)
    make_durable(log)
    env.fs.remove(log.files.name_of(0, ".zones"))
    segment = log.snapshot.active
    zones = segment.make_indexes(IndexRules.of(log.config)).zones
    mend_zones(segment, zones, segment.size_bytes, INT64_MAX)
    dirty, clean = zones.zones()
    gap = gap_of(GapTimes(dirty.min_timestamp, dirty.max_timestamp, dirty.flags))
    assert gap is not None
    assert now < gap.first < gap.last == now + 10**9 - 1
    assert not clean.flags & (GAP_BITS | DIRTY_FUTURE)
