"""`pinned`: what is held back, by which record, until when; against counting by hand."""

import json
import random
import shutil
import time
from pathlib import Path

import pytest

from broker.cli.main import main
from pipeline.jobs.pinned import survey
from pipeline.transforms.pinned import judge_pinned
from storage.files.layout import ZONES
from storage.posix import real_env
from storage.retention.plan import LogFacts, RetentionClock, RetentionLimits, SegmentFacts
from tests.support.records.logs import append, open_log

NOW = 1_700_000_000_000
HOUR, DAY, YEAR = 3_600_000, 86_400_000, 365 * 86_400_000
KEEPS = 7 * DAY
FAR = NOW + 50 * YEAR
BY_RECORD = RetentionLimits(KEEPS, -1, clock=RetentionClock.RECORD)


def log_of(*segments: tuple[int, int]) -> tuple[list[SegmentFacts], LogFacts]:
    """Segments of ten records and a hundred bytes, by largest time and last arrival."""
    facts = [SegmentFacts(10 * n, 100, *times, times[1]) for n, times in enumerate(segments)]
    return facts, LogFacts(0, 10 * len(facts), 10 * len(facts))


def test_a_record_of_the_future_holds_its_segment_and_those_behind_it() -> None:
    facts, log = log_of((NOW + YEAR, NOW - 30 * DAY), *[(NOW - 20 * DAY,) * 2] * 3, (NOW, NOW))
    pinned = judge_pinned(facts, log, BY_RECORD, NOW)
    assert (pinned.held_segments, pinned.held_bytes, pinned.blocker_base) == (4, 400, 0)
    assert pinned.until_ms == NOW + YEAR + KEEPS
    assert pinned.overdue_ms == 23 * DAY
    assert (pinned.arrival_segments, pinned.arrival_bytes) == (4, 400)


def test_of_two_in_the_way_the_last_to_go_counts() -> None:
    facts, log = log_of(
        (NOW + DAY, NOW - 30 * DAY), (NOW + YEAR, NOW - 29 * DAY), (NOW - 20 * DAY,) * 2, (NOW, NOW)
    )
    pinned = judge_pinned(facts, log, BY_RECORD, NOW)
    assert pinned.held_segments == 3
    assert pinned.blocker_base == 0, "the first goes once it alone is past"
    held_last = judge_pinned(facts[1:], log, BY_RECORD, NOW)
    assert (held_last.blocker_base, held_last.until_ms) == (10, NOW + YEAR + KEEPS)


@pytest.mark.parametrize("clock", [RetentionClock.EARLIER, RetentionClock.ARRIVAL])
def test_other_clocks_are_not_held_by_the_future(clock: RetentionClock) -> None:
    facts, log = log_of((NOW + YEAR, NOW - 30 * DAY), *[(NOW - 20 * DAY,) * 2] * 3, (NOW, NOW))
    assert not judge_pinned(facts, log, BY_RECORD._replace(clock=clock), NOW).is_pinned


@pytest.mark.parametrize(
    "limits",
    [
        BY_RECORD._replace(retention_ms=-1),
        BY_RECORD._replace(deletes=False),
        BY_RECORD._replace(is_held=True),
    ],
    ids=["no limit", "compacted", "clock in doubt"],
)
def test_what_is_kept_by_choice_is_not_pinned(limits: RetentionLimits) -> None:
    facts, log = log_of((NOW - YEAR, NOW - YEAR), (NOW, NOW))
    assert not judge_pinned(facts, log, limits, NOW).is_pinned


def test_against_a_simulation_of_retention() -> None:
    """Held is what a log without times of the future would lose, and this one does not."""
    dice = random.Random(5)
    for _ in range(500):
        times = []
        for n in range(dice.randint(1, 8)):
            came = NOW - 20 * DAY + 3 * DAY * n
            times.append((came + (YEAR if dice.random() < 0.2 else -HOUR), came))
        facts, log = log_of(*times)
        cured = [each._replace(record_ms=min(each.record_ms, each.arrival_ms)) for each in facts]
        gone = _gone(facts)
        held = max(0, _gone(cured) - gone)
        pinned = judge_pinned(facts[gone:], log._replace(start_offset=10 * gone), BY_RECORD, NOW)
        assert pinned.held_segments == held, times


def _gone(facts: list[SegmentFacts]) -> int:
    count = 0
    while count < len(facts) and NOW - facts[count].record_ms > KEEPS:
        count += 1
    return count


def dirty_directory(directory: Path) -> None:
    """A partition of several segments; the one record of the future is the fourth."""
    env = real_env()
    log = open_log(env, path=str(directory / "t-0"), segment_bytes=400)
    for n in range(20):
        append(log, NOW - 20 * DAY + n * 1000, FAR if n == 1 else NOW - 20 * DAY)
    log.close()


def test_the_files_say_which_record_it_is(tmp_path: Path) -> None:
    dirty_directory(tmp_path)
    fs = real_env().fs
    now = time.time_ns() // 1_000_000 + 30 * DAY
    (row,) = survey(fs, [str(tmp_path)], ["t"], now)
    assert row["clock"] == "record", "not a directory of ours: as Kafka"
    assert row["held_segments"] == row["segments"] > 3
    assert row["record"]["offset"] == 3
    assert row["record"]["timestamp_ms"] == row["blocker_time_ms"] == FAR
    (cured,) = survey(fs, [str(tmp_path)], [], now, clock="earlier")
    assert not cured["held_segments"]


def test_a_kafka_directory_without_zones_is_judged_by_its_dates(tmp_path: Path) -> None:
    dirty_directory(tmp_path)
    for zones in tmp_path.glob(f"*/*{ZONES}"):
        zones.unlink()
    for index in tmp_path.glob("*/*index"):
        index.write_bytes(index.read_bytes() + bytes(1200))  # as a Kafka at work leaves them
    now = time.time_ns() // 1_000_000 + 30 * DAY
    (row,) = survey(real_env().fs, [str(tmp_path)], [], now)
    assert row["held_segments"] == row["segments"] > 3
    assert row["record"]["offset"] == 3


def test_the_command_ends_with_an_alarm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dirty_directory(tmp_path)
    now = str(time.time_ns() // 1_000_000 + 30 * DAY)
    asked = ["spark", "pinned", "--log-dirs", str(tmp_path), "--now", now]
    assert main([*asked, "--json"]) == 10
    answer = json.loads(capsys.readouterr().out)
    assert answer["alarm"]
    assert answer["held_bytes"] == answer["partitions"][0]["held_bytes"] > 0
    assert main([*asked, "--limit-bytes", "1000000000"]) == 0
    assert "t-0" in capsys.readouterr().out
    assert main([*asked, "--clock", "arrival", "--set", "log.retention.ms=-1"]) == 0
    assert "Nothing is pinned" in capsys.readouterr().out


def test_what_is_not_there_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dirty_directory(tmp_path)
    asked = ["spark", "pinned", "--log-dirs", str(tmp_path)]
    assert main([*asked, "--topic", "other"]) == 2
    assert "'other'" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "t-0")
    assert main(asked) == 2
    assert main(["spark", "pinned", "--log-dirs", str(tmp_path / "nowhere")]) == 1
