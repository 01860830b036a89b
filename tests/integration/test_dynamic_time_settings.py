"""Every setting of a topic that is about time, changed on a live topic: from then on it holds.

Not what is shown, but what is done: each key has a scenario that tells the old value from the new
one by what a client, a directory or the passing of time then shows. A new key without one fails.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME

from config.names import TOPIC_KEYS
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.live_topic import LiveBroker

HOUR, DAY = 3_600_000, 86_400_000
FOREVER = str(2**63 - 1)
SMALL = {"internal_segment_bytes": "300"}  # one batch to a segment
BAD_TIME = "INVALID_TIMESTAMP"
PASS = "6m"  # a round of retention comes every five minutes
NAMES_OF_TIME = re.compile(r"\.ms$|timestamp|clock|time|quarantine")

Scenario = Callable[[LiveBroker, str], None]
SCENARIOS: dict[str, Scenario] = {}
ELSEWHERE = {"local.retention.ms": "tier/test_tiered_broker.py"}  # it takes a store


def shows(*keys: str) -> Callable[[Scenario], Scenario]:
    """The scenario of these keys."""

    def register(scenario: Scenario) -> Scenario:
        SCENARIOS.update(dict.fromkeys(keys, scenario))
        return scenario

    return register


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    data_dir = tmp_path_factory.mktemp("dynamic") / "data"
    with start_broker(data_dir, options=["--test-clock", "2024-02-28T12:00:00Z"]) as process:
        broker = LiveBroker(process, data_dir)
        yield broker
        broker.consumer.close()


def time_keys() -> list[str]:
    """Every name that sets a topic's time, older names included."""
    names = (spelling.name for key in TOPIC_KEYS for spelling in key.on_topic)
    return sorted({name for name in names if NAMES_OF_TIME.search(name)} - set(ELSEWHERE))


@pytest.mark.parametrize("key", ELSEWHERE)
def test_what_is_tried_elsewhere_is(key: str) -> None:
    assert f'"{key}"' in (Path(__file__).parent / ELSEWHERE[key]).read_text()


@pytest.mark.parametrize("key", time_keys())
def test_a_change_counts_at_once(live: LiveBroker, key: str) -> None:
    SCENARIOS[key](live, key)


# -- whose time, and how far off it may be


@shows("message.timestamp.type")
def _type(live: LiveBroker, key: str) -> None:
    topic, sent = live.topic(key), live.now_ms - HOUR
    assert topic.produce(sent) == (TIMESTAMP_CREATE_TIME, sent)
    topic.set(key, "LogAppendTime")
    assert topic.produce(sent) == (TIMESTAMP_LOG_APPEND_TIME, live.now_ms)
    topic.set(key, "CreateTime")
    assert topic.produce(sent) == (TIMESTAMP_CREATE_TIME, sent)
    assert [message.timestamp()[1] for message in topic.records()] == [sent, live.now_ms, sent]


@shows("message.timestamp.before.max.ms")
def _before(live: LiveBroker, key: str) -> None:
    topic, sent = live.topic(key), live.now_ms - 10_000
    assert topic.produce(sent) != BAD_TIME
    topic.set(key, "5000")
    assert topic.produce(sent) == BAD_TIME
    topic.set(key, "10000")
    assert topic.produce(sent) != BAD_TIME


@shows("message.timestamp.after.max.ms")
def _after(live: LiveBroker, key: str) -> None:
    topic, sent = live.topic(key), live.now_ms + 10_000
    assert topic.produce(sent) != BAD_TIME
    topic.set(key, "5000")
    assert topic.produce(sent) == BAD_TIME
    topic.set(key, "10000")
    assert topic.produce(sent) != BAD_TIME


@shows("max.message.time.difference.ms", "message.timestamp.difference.max.ms")
def _difference(live: LiveBroker, key: str) -> None:
    topic = live.topic(key)
    for sign in (-1, 1):
        assert topic.produce(live.now_ms + sign * 10_000) != BAD_TIME
    topic.set(key, "5000")
    for sign in (-1, 1):
        assert topic.produce(live.now_ms + sign * 10_000) == BAD_TIME
        assert topic.produce(live.now_ms + sign * 5000) != BAD_TIME


@shows("horolog.timestamp.policy")
def _policy(live: LiveBroker, key: str) -> None:
    topic, sent = live.topic(key), live.now_ms + 2 * HOUR
    assert topic.produce(sent) == BAD_TIME
    topic.set(key, "accept")
    assert topic.produce(sent) == (TIMESTAMP_CREATE_TIME, sent)
    topic.set(key, "clamp")
    assert topic.produce(sent) != BAD_TIME
    topic.set(key, "reject")
    assert topic.produce(sent) == BAD_TIME
    assert [m.timestamp()[1] - live.now_ms for m in topic.records()] == [2 * HOUR, HOUR]


@shows("horolog.quarantine.topic")
def _quarantine(live: LiveBroker, key: str) -> None:
    topic, sent = live.topic(key, horolog_timestamp_policy="quarantine"), live.now_ms + 2 * HOUR
    other = live.topic(f"{key}.other")
    topic.produce(sent, b"first")
    topic.set(key, other.name)
    topic.produce(sent, b"second")
    assert [message.value() for message in other.records()] == [b"second"]


# -- search


@shows("horolog.search.clock")
def _search(live: LiveBroker, key: str) -> None:
    topic, later = live.topic(key, message_timestamp_after_max_ms=FOREVER), live.now_ms + HOUR
    topic.produce(live.now_ms + 30 * DAY)
    assert topic.offset_at(later) == 0
    topic.set(key, "arrival")
    assert topic.offset_at(later) == -1
    assert topic.offset_at(live.now_ms) == 0
    topic.set(key, "earlier")
    assert topic.offset_at(later) == -1
    topic.set(key, "record")
    assert topic.offset_at(later) == 0


# -- what goes


@shows("retention.ms")
def _retention(live: LiveBroker, key: str) -> None:
    topic = live.topic(key, **SMALL)
    topic.produce(live.now_ms)
    live.step("2h")
    assert topic.bases() == [0]
    topic.set(key, str(HOUR), validate_only=True)
    live.step(PASS)
    assert topic.bases() == [0]
    topic.set(key, str(HOUR))
    live.step(PASS)
    assert topic.bases() == [1]


@shows("horolog.retention.clock")
def _clock(live: LiveBroker, key: str) -> None:
    settings = {"retention_ms": str(HOUR), "message_timestamp_after_max_ms": FOREVER}
    topic = live.topic(key, horolog_retention_clock="record", **settings, **SMALL)
    topic.produce(live.now_ms + 30 * DAY)
    live.step("3h")
    assert topic.bases() == [0]
    topic.set(key, "arrival")
    live.step(PASS)
    assert topic.bases() == [1]


@shows("horolog.retention.min.stay.ms")
def _stay(live: LiveBroker, key: str) -> None:
    settings = {"retention_ms": str(HOUR), "horolog_retention_min_stay_ms": str(DAY)}
    topic = live.topic(key, **settings, **SMALL)
    topic.produce(live.now_ms)
    live.step("3h")
    assert topic.bases() == [0]
    topic.set(key, "0")
    live.step(PASS)
    assert topic.bases() == [1]


@shows("horolog.retention.before.timestamp")
def _instant(live: LiveBroker, key: str) -> None:
    topic = live.topic(key, **SMALL)
    topic.produce(live.now_ms)
    live.step("1h")
    assert topic.bases() == [0]
    topic.set(key, str(live.now_ms))
    live.step(PASS)
    assert topic.bases() == [1]


@shows("file.delete.delay.ms")
def _delay(live: LiveBroker, key: str) -> None:
    topic = live.topic(key, retention_ms="1000", file_delete_delay_ms=str(HOUR), **SMALL)
    topic.produce(live.now_ms)
    live.step(PASS)
    assert topic.files(".log.deleted") == [0]
    topic.set(key, "0")
    topic.produce(live.now_ms)
    live.step(PASS)
    assert topic.bases() == [2]
    live.step("2s")  # files go once a second, and the clock stands still in between
    until(lambda: topic.files(".log.deleted") == [0])  # a thread removes it


# -- when a segment ends


@shows("segment.ms")
def _segment(live: LiveBroker, key: str) -> None:
    topic = live.topic(key)
    topic.produce(live.now_ms)
    live.step("1m")
    assert topic.states() == ["active"]
    topic.set(key, "1000")
    live.step("1s")
    assert topic.states() == ["closed", "active"]


@shows("horolog.roll.min.interval.ms")
def _interval(live: LiveBroker, key: str) -> None:
    topic = live.topic(key, segment_ms="1", horolog_roll_min_interval_ms=str(HOUR))
    topic.produce(live.now_ms)
    live.step("1m")
    assert topic.states() == ["active"]
    topic.set(key, "0")
    live.step("1s")
    assert topic.states() == ["closed", "active"]


@shows("segment.jitter.ms")
def _jitter(live: LiveBroker, key: str) -> None:
    topic = live.topic(key, segment_ms=str(DAY), **SMALL)
    topic.produce(live.now_ms)
    assert topic.roll_deadline() == live.now_ms + DAY
    topic.set(key, str(DAY))
    assert topic.roll_deadline() == live.now_ms + DAY, "an open segment keeps what it began with"
    topic.produce(live.now_ms)
    assert live.now_ms <= topic.roll_deadline() < live.now_ms + DAY


@shows("max.compaction.lag.ms")
def _max_lag(live: LiveBroker, key: str) -> None:
    topic = live.topic(key, cleanup_policy="compact")
    for _ in range(3):
        topic.produce(live.now_ms)
    live.step("1d")
    assert (topic.states(), len(topic.records())) == (["active"], 3)
    topic.set(key, str(HOUR))
    for _ in range(20):  # a segment ends, is synced, and is cleaned: one round each
        live.step("15s")
        if len(topic.records()) < 3:
            break
    assert topic.states() == ["closed", "active"]
    assert [message.offset() for message in topic.records()] == [2]


# -- what compaction may take


@shows("min.compaction.lag.ms")
def _min_lag(live: LiveBroker, key: str) -> None:
    eager = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"}
    topic = live.topic(key, min_compaction_lag_ms=str(DAY), **eager, **SMALL)
    for _ in range(4):
        topic.produce(live.now_ms)
    live.step("1h")
    assert [message.offset() for message in topic.records()] == [0, 1, 2, 3]
    topic.set(key, "0")
    live.step("1m")
    assert [message.offset() for message in topic.records()] == [2, 3]


@shows("delete.retention.ms")
def _tombstones(live: LiveBroker, key: str) -> None:
    eager = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"}
    topic = live.topic(key, **eager, **SMALL)

    def deleted(name: str) -> None:
        """A record and its tombstone, cleaned over twice, an hour between."""
        topic.produce(live.now_ms, key=name)
        topic.produce(live.now_ms, None, key=name)
        for _ in range(2):
            for filler in ("x", "y"):
                topic.produce(live.now_ms, key=filler)
            live.step("1h")

    deleted("kept")
    topic.set(key, "0")
    deleted("gone")

    keys = {message.key() for message in topic.records()}
    assert b"kept" in keys
    assert b"gone" not in keys


# -- what is kept beside the log


@shows("flush.ms")
def _flush(live: LiveBroker, key: str) -> None:
    topic = live.topic(key, horolog_durability="os")
    topic.produce(live.now_ms)
    assert not _is_durable(live, topic.name, 1, rounds=2)
    topic.set(key, "1000")
    assert _is_durable(live, topic.name, 1, rounds=100)


def _is_durable(live: LiveBroker, topic: str, offset: int, rounds: int) -> bool:
    """Whether the log's recovery point gets there; it is stored once a minute."""
    for _ in range(rounds):
        live.step("61s")
        lines = (live.data_dir / "recovery-point-offset-checkpoint").read_text().splitlines()
        if f"{topic} 0 {offset}" in lines:
            return True
    return False


@shows("horolog.zone.ms")
def _zones(live: LiveBroker, key: str) -> None:
    topic = live.topic(key, internal_segment_bytes="30000", horolog_zone_bytes=str(1 << 30))
    for _ in range(6):  # a segment has five of them
        topic.produce(live.now_ms, b"x" * 5500)
        live.step("2s")
    topic.set(key, str(HOUR))
    for _ in range(10):
        topic.produce(live.now_ms, b"x" * 5500)
        live.step("2s")
    assert topic.bases() == [0, 5, 10, 15]
    rows = [len(topic.content(base, ".zones")) // 52 for base in (0, 5, 10)]
    assert rows == [5, 5, 1], "an open segment keeps what it began with"


@shows("horolog.time.index.entry")
def _entry(live: LiveBroker, key: str) -> None:
    topic = live.topic(key, internal_segment_bytes="600")
    for _ in range(3):
        topic.produce(live.now_ms)
        live.step("1s")
    topic.set(key, "next")
    for _ in range(2):
        topic.produce(live.now_ms)
        live.step("1s")
    assert topic.bases() == [0, 2, 4]
    assert int.from_bytes(topic.content(0, ".timeindex")[-4:]) == 1
    assert int.from_bytes(topic.content(2, ".timeindex")[-4:]) == 2
