"""`failover` where clocks are ahead: what says when a record came may be vague, nothing is missed.

A model: each record is made at its own moment, by a client whose clock may be ahead, and arrives in
two clusters after a time of its own. What the consumer never got is looked for by plain reads, for
`missed` is promised without `--compare`.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.cli.main import main
from pipeline.transforms.failover import Consumed, came_after, wanted_from
from storage.env import Env
from storage.posix import PosixFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.logs import append, open_log
from tests.support.spark.pipeline_logs import read_all

START_MS, STEP_MS, COUNT = 1_700_000_000_000, 300, 200
LATENCY_MS, AHEAD_MS = 5000, 20_000
STEPPED_BACK_MS = 40_000


class Sent(NamedTuple):
    """A record: when it came to each cluster, and what it claims."""

    first_ms: int
    other_ms: int
    claimed_ms: int
    name: bytes


def story(dice: random.Random) -> list[Sent]:
    """Some records come from a client whose clock is ahead, and to the other cluster late."""
    made = []
    for number in range(COUNT):
        at = START_MS + number * STEP_MS
        ahead = dice.randint(1, AHEAD_MS) if dice.random() < 0.1 else 0
        late = dice.randint(0, LATENCY_MS), dice.randint(0, 4 * LATENCY_MS)
        late = late[0], late[1] + (AHEAD_MS if ahead else 0)
        made.append(Sent(at + late[0], at + late[1], at + ahead, b"%d" % number))
    return made


def cluster(
    folder: Path, records: list[tuple[int, int, bytes]],
    clock_of: Callable[[int], int] = lambda at_ms: at_ms, **settings: Any,
) -> None:  # fmt: skip
    """A cluster with the records (arrival, claimed time, name); its broker's clock says when."""
    clock = SimClock(0)
    env = Env(clock, PosixFileSystem(), SeededRng())
    log = open_log(env, path=str(folder / "t-0"), **settings)
    for at, claimed, name in sorted(records):
        clock.step(clock_of(at) - clock.now_ms())
        append(log, claimed, key=b"k", value=name)
    log.close()


def forget(folder: Path) -> None:
    """As in a directory of Kafka's."""
    for zones in folder.glob("t-0/*.zones"):
        zones.unlink()


def half_forget(folder: Path) -> None:
    """As where a crash has taken the last rows."""
    for zones in folder.glob("t-0/*.zones"):
        zones.write_bytes(zones.read_bytes()[:52])


def nothing(_: Path) -> None:
    """The zone maps stay."""


def stepping(at_ms: int) -> int:
    """Somebody sets the clock of the broker right that was ahead."""
    is_before = at_ms < START_MS + COUNT // 2 * STEP_MS
    return at_ms + (STEPPED_BACK_MS if is_before else 0)


CASES: dict[str, tuple[Callable[[Path], None], dict[str, Any], list[str], bool]] = {
    "wide zones": (nothing, {"horolog_zone_bytes": 65_536}, [], True),
    "small segments": (nothing, {"segment_bytes": 3000}, [], True),
    "no zone maps": (forget, {}, [], False),
    "the last rows lost": (half_forget, {"horolog_zone_bytes": 4096}, [], False),
    "no zone maps, clocks known": (forget, {}, ["--max-ahead", f"{AHEAD_MS}ms"], False),
    "the broker stamps": (nothing, {"message_timestamp_type": "LogAppendTime"}, [], True),
    "the other stamps": (nothing, {"other": {"message_timestamp_type": "LogAppendTime"}}, [], True),
    "the clock went back": (nothing, {"clock_of": stepping}, [], False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_missed_however_vague_arrivals_are(
    tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, settings, more, _ = CASES[case]
    settings = dict(settings)
    other = settings.pop("other", {})
    for seed in range(12):
        dice = random.Random(seed)
        records = story(dice)
        one, two = tmp_path / f"{seed}-one", tmp_path / f"{seed}-two"
        cluster(one, [(each.first_ms, each.claimed_ms, each.name) for each in records], **settings)
        cluster(two, [(each.other_ms, each.claimed_ms, each.name) for each in records], **other)
        change(one)
        read = dice.randint(20, COUNT - 20)
        begin = resumed(capsys, one, two, read, *more)

        seen = set(names(one)[:read])
        missed = set(names(two)) - seen - set(names(two)[begin:])
        assert not missed, f"seed {seed}: from {begin} on, {read} were read"


@pytest.mark.parametrize("case", [name for name, row in CASES.items() if row[3] or row[2]])
def test_little_comes_twice_where_arrivals_are_known(
    tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, settings, more, _ = CASES[case]
    settings = dict(settings)
    settings.pop("other", None)
    records = story(random.Random(1))
    one, two = tmp_path / "one", tmp_path / "two"
    cluster(one, [(each.first_ms, each.claimed_ms, each.name) for each in records], **settings)
    cluster(two, [(each.other_ms, each.claimed_ms, each.name) for each in records])
    change(one)

    assert resumed(capsys, one, two, COUNT - 1, *more) > 0


def resumed(capsys: pytest.CaptureFixture[str], one: Path, two: Path, read: int, *more: str) -> int:
    asked = [
        "spark", "failover", "--from-dirs", str(one), "--to-dirs", str(two), "--topic", "t",
        "--offsets", json.dumps({"t": {"0": read}}), "--max-latency", f"{LATENCY_MS}ms", "--json",
    ]  # fmt: skip
    status = main([*asked, *more])
    said = capsys.readouterr()
    assert status == 0, said.err
    offset: int = json.loads(said.out)["offsets"]["t"]["0"]
    return offset


def names(folder: Path) -> list[bytes]:
    rows = read_all({"log_dirs": str(folder), "subscribe": "t"}, ["offset", "value"])
    return [row["value"] for row in rows]


def test_a_segment_that_is_new_has_no_zones_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [(START_MS + n * STEP_MS, START_MS + n * STEP_MS, b"%d" % n) for n in range(90)]
    for name in ("one", "two"):
        cluster(tmp_path / name, records)
    zones = max((tmp_path / "one" / "t-0").glob("*.zones"))
    zones.write_bytes(b"")

    assert resumed(capsys, tmp_path / "one", tmp_path / "two", 60) == 0


def test_what_a_claimed_time_says() -> None:
    assert came_after([(100, 150), (900, 200), (120, None)]) == 100
    assert came_after([(100, 150), (900, 200), (120, None)], max_ahead_ms=10) == 890
    assert came_after([(900, 200), (-1, 300), (950, 250)]) == 300, "nothing but the arrival"
    assert came_after([(900, None), (-1, None)]) is None
    assert wanted_from(Consumed("t", 0, 5, 100), 30) == 70
    assert wanted_from(Consumed("t", 0, 5, None), 30) is None
