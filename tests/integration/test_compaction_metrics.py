"""What the scrape says of compaction: of its delay while time passes, and of what it did."""

from dataclasses import replace
from pathlib import Path

import pytest

from broker.daemon.app import Broker
from broker.metrics.scrape import Scrape
from storage.posix import real_env
from tests.support.worlds.app import client_of, running_broker
from tests.support.worlds.compaction_world import (
    COMPACT,
    HOUR_S,
    PATIENT,
    SteppedClock,
    log_of,
    make_topic,
    pass_time,
    produce,
)

BOUND = {**COMPACT, "max.compaction.lag.ms": str(HOUR_S * 1000)}
DELAY = "horolog_log_compaction_delay_seconds"
CLEANER = "horolog_log_cleaner_"


def told(broker: Broker, name: str) -> dict[str, float]:
    """The samples of a metric, by their labels as they are written."""
    text = Scrape(broker.services).text()[1].decode()
    rows = (line.rpartition(" ") for line in text.splitlines() if line.startswith(name))
    return {
        series.removeprefix(name): float(value) for series, _, value in rows
        if series.removeprefix(name)[:1] in {"", "{"}
    }  # fmt: skip


def one(broker: Broker, name: str) -> float:
    (value,) = told(broker, name).values()
    return value


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


async def test_the_delay_is_0_until_the_deadline_and_0_once_it_is_met(
    tmp_path: Path, clock: SteppedClock
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, BOUND)
        await produce(client, clock.now_ms(), (b"a", b"1"), (b"a", b"2"))
        series = '{partition="0",topic="t"}'
        assert told(broker, DELAY) == {series: 0.0}
        clock.ahead += HOUR_S + 100
        assert 100 <= one(broker, DELAY) < 110, "the active segment counts"
        clock.ahead += 50
        assert 150 <= one(broker, DELAY) < 160
        await pass_time(broker, clock, 0)
        await pass_time(broker, clock, 16)
        assert told(broker, DELAY) == {series: 0.0}
        assert 150 <= one(broker, f"{CLEANER}max_compaction_delay_seconds") < 190
        assert one(broker, f"{CLEANER}logs_compacted_by_max_lag") == 1
        assert one(broker, f"{CLEANER}runs_total") == 1
        assert one(broker, f"{CLEANER}removed_records_total") == 1
        read = one(broker, f"{CLEANER}read_bytes_total")
        assert read > one(broker, f"{CLEANER}written_bytes_total") > 0
        assert 0 < one(broker, f"{CLEANER}map_utilisation_ratio") < 0.001, "of the whole buffer"
        at = one(broker, f"{CLEANER}last_run_timestamp_seconds")
        assert abs(at - clock.now_ms() / 1000) < 60
        assert one(broker, f"{CLEANER}dead_threads") == 0
        await produce(client, clock.now_ms(), (b"b", b"3"))
        await pass_time(broker, clock, HOUR_S + 1)
        await pass_time(broker, clock, 16)
        assert one(broker, f"{CLEANER}max_compaction_delay_seconds") < 60, "of the last choice"
        assert told(broker, DELAY) == {series: 0.0}


@pytest.mark.parametrize("how", ["off", "dead", "failing"])
async def test_without_a_cleaner_the_delay_rises_a_second_a_second(
    tmp_path: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    env = replace(real_env(), clock=clock)
    settings = {**PATIENT, "log.cleaner.enable": "false"} if how == "off" else PATIENT

    def die(*_: object) -> None:
        raise ZeroDivisionError

    if how == "dead":
        monkeypatch.setattr("broker.tasks.cleaner.first_of", die)
    elif how == "failing":
        monkeypatch.setattr("broker.tasks.cleaner.verdict_on", die)
    async with running_broker(tmp_path, settings, env) as broker, client_of(broker) as client:
        await make_topic(client, BOUND)
        await produce(client, clock.now_ms(), (b"a", b"1"), (b"a", b"2"))
        await pass_time(broker, clock, HOUR_S)
        await pass_time(broker, clock, 60)
        before, at_ms = one(broker, DELAY), clock.now_ms()
        assert before > 59
        await pass_time(broker, clock, 1000)
        passed = (clock.now_ms() - at_ms) / 1000
        assert one(broker, DELAY) - before == pytest.approx(passed, abs=1)
        assert one(broker, f"{CLEANER}dead_threads") == (how == "dead")
        stuck = {'{reason="bug"}': 1.0} if how == "failing" else {}
        assert told(broker, f"{CLEANER}uncleanable_partitions") == stuck
        assert one(broker, "horolog_rolled_by_time_segments_total") == 1
        if how == "off":
            assert one(broker, "horolog_log_dirty_ratio") == 1.0
            assert one(broker, f"{CLEANER}cleanable_partitions") == 1
            assert one(broker, "horolog_log_cleanable_bytes") > 0


async def test_after_a_start_the_delay_is_known_again_though_the_cleaner_is_off(
    tmp_path: Path, clock: SteppedClock
) -> None:
    env = replace(real_env(), clock=clock)
    settings = {**PATIENT, "log.cleaner.enable": "false"}
    async with running_broker(tmp_path, settings, env) as broker, client_of(broker) as client:
        await make_topic(client, BOUND)
        await produce(client, clock.now_ms(), (b"a", b"1"))
        await pass_time(broker, clock, HOUR_S + 1)
        await produce(client, clock.now_ms(), (b"a", b"2"))
    async with running_broker(tmp_path, settings, env) as broker:
        await pass_time(broker, clock, 600)
        assert 600 <= one(broker, DELAY) < 630


async def test_what_cannot_be_cleaned_is_told_with_its_reason(
    tmp_path: Path, clock: SteppedClock
) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, BOUND)
        await produce(client, clock.now_ms(), (b"a", b"1"), (b"a", b"2"))
        snapshot = log_of(broker).snapshot
        snapshot.active.file().write_at(snapshot.end_position - 3, b"\xff")
        await pass_time(broker, clock, HOUR_S + 1)
        await pass_time(broker, clock, 16)
        assert told(broker, f"{CLEANER}uncleanable_partitions") == {'{reason="damage"}': 1.0}
        assert told(broker, f"{CLEANER}uncleanable_bytes") == {
            '{reason="damage"}': snapshot.end_position
        }
        assert told(broker, f"{CLEANER}failures_total") == {'{reason="damage"}': 1.0}
        assert one(broker, DELAY) > 15


async def test_topics_without_a_bound_have_no_delay(tmp_path: Path, clock: SteppedClock) -> None:
    env = replace(real_env(), clock=clock)
    async with running_broker(tmp_path, PATIENT, env) as broker, client_of(broker) as client:
        await make_topic(client, COMPACT)
        await make_topic(client, {"max.compaction.lag.ms": "1"}, name="deleted")
        await produce(client, clock.now_ms(), (b"a", b"1"))
        await pass_time(broker, clock, 86_400)
        assert told(broker, DELAY) == {}
