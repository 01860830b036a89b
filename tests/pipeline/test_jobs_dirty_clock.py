"""Every job on topics that a client with a dirty clock wrote to, against plain Python.

What is expected is counted from the records as Kafka's own client library reads them, by loops and
dictionaries. `failover` has a file of its own.
"""

import json
import struct
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from broker.cli.main import main
from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import CLEANER_OFFSETS_FILE
from storage.posix import PosixFileSystem
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.dirty_clock_world import (
    DAY_MS,
    GROUP,
    HOUR_MS,
    MINUTE_MS,
    SETTINGS,
    Row,
    World,
    content,
    copied,
    make_world,
)
from tests.support.worlds.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def live(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A broker at work on a copy."""
    data = copied(world, tmp_path_factory.mktemp("live"))
    with start_broker(data, SETTINGS) as node:
        node.facts["data_dir"] = str(data)
        yield node


def run(capsys: pytest.CaptureFixture[str], *asked: str) -> tuple[int, Any]:
    status = main(["spark", *asked, "--json"])
    return status, json.loads(capsys.readouterr().out)


def day_of(ms: int) -> date:
    return datetime.fromtimestamp(ms / 1000, UTC).date()


def segments(data: Path, partition: str) -> list[tuple[int, int, Path]]:
    """Base offset, the offset behind it, and file of each segment."""
    paths = sorted((data / partition).glob("*.log"))
    bases = [int(path.stem) for path in paths]
    return list(zip(bases, [*bases[1:], 2**62], paths, strict=True))


@pytest.mark.parametrize("way", ["files", "wire", "both"])
def test_archive(
    world: World, live: NodeProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    where = ["--log-dirs", live.facts["data_dir"]] if way != "wire" else []
    where += ["--bootstrap", live.bootstrap] if way != "files" else []
    out = tmp_path / "out"
    _, proof = run(capsys, "archive", *where, "--topic", "t", "--out", str(out))
    now = time.time() * 1000
    good, bad = {}, {}
    for row in world.rows:
        credible = now - 3650 * DAY_MS <= row.time_ms <= now + DAY_MS
        (good if credible else bad)[row[:2]] = row
    kept = ds.dataset(out / "records", partitioning="hive").to_table().to_pylist()
    assert len(kept) == len(good)
    for each in kept:
        row = good[each["partition"], each["offset"]]
        assert (each["key"], each["value"]) == (row.key, row.value)
        assert round(each["timestamp"].timestamp() * 1000) == row.time_ms
        assert str(each["event_date"]) == str(day_of(row.time_ms))
    aside = ds.dataset(out / "quarantine", partitioning="hive").to_table().to_pylist()
    assert {(e["partition"], e["offset"]): e["timestampMs"] for e in aside} == {
        place: row.time_ms for place, row in bad.items()
    }
    assert len(aside) == len(bad) == proof["quarantine"] > 30
    seconds = sum(10**9 < row.time_ms < 10**10 for row in bad.values())
    assert Counter(e["reason"] for e in aside)["past: seconds"] == seconds
    assert (proof["read"], proof["holes"]) == (len(world.rows), 0)


@pytest.mark.parametrize("way", ["--log-dirs", "--bootstrap"])
def test_audit_time(
    world: World, live: NodeProcess, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    where = str(world.data) if way == "--log-dirs" else live.bootstrap
    status, answer = run(capsys, "audit-time", way, where, "--topic", "t")
    assert status == 10
    assert [each["partition"] for each in answer["partitions"]] == [0, 1]
    for found in answer["partitions"]:
        rows = world.of(found["partition"])
        future = [row.offset for row in rows if row.time_ms > world.ended_ms + HOUR_MS]
        past = [row.offset for row in rows if row.time_ms < world.began_ms - 7 * DAY_MS]
        latest, late, worst = -1, 0, 0
        for row in rows:
            if row.time_ms <= world.ended_ms + HOUR_MS:
                latest = max(latest, row.time_ms)
                late += row.time_ms < latest
                worst = max(worst, latest - row.time_ms)
        assert found["records"] == len(rows)
        assert found["outliers"] == len(future) + len(past) > 0
        assert (found["late_records"], found["max_lateness_ms"]) == (late, worst)
        assert {each["offset"] for each in found["future"]} <= set(future)
        assert len(found["future"]) == min(20, len(future))
        (clock,) = found["producers"]
        times = [row.time_ms for row in rows]
        assert (clock["min_ms"], clock["max_ms"]) == (min(times), max(times))


def test_latency(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["latency", "--log-dirs", str(world.data), "--topic", "t", "--behind", "1d"]
    _, answer = run(capsys, *asked)
    (found,) = answer["topics"]
    inside = [
        row.time_ms
        for row in world.rows
        if world.began_ms - DAY_MS < row.time_ms < world.ended_ms + HOUR_MS
    ]
    assert found["records"] == len(inside)
    assert found["outside"] == len(world.rows) - len(inside) > 0
    assert found["unknown"] == 0
    oldest = min(inside)
    assert world.began_ms - oldest <= answer["max_latency_ms"] <= world.ended_ms - oldest


def test_pinned(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    now = world.ended_ms + 3 * DAY_MS
    asked = ["pinned", "--log-dirs", str(world.data), "--topic", "t", "--clock", "record"]
    asked += ["--set", f"log.retention.ms={DAY_MS}", "--now", str(now)]
    status, answer = run(capsys, *asked)
    assert status == 10
    for found in answer["partitions"]:
        rows = world.of(found["partition"])
        staying: list[tuple[int, int, Path]] = []
        for base, following, path in segments(world.data, f"t-{found['partition']}"):
            newest = max(row.time_ms for row in rows if base <= row.offset < following)
            if staying or now - newest <= DAY_MS:
                staying.append((base, newest, path))
        base, newest, _ = staying[0]
        assert found["held_segments"] == len(staying)
        assert found["held_bytes"] == sum(path.stat().st_size for _, _, path in staying)
        assert (found["blocker_base"], found["until_ms"]) == (base, newest + DAY_MS)
        culprit = next(row for row in rows if row.time_ms == newest)
        assert found["record"]["offset"] == culprit.offset
        assert (base == 0) == (found["partition"] == 0), "the other one was clean at first"


def test_lag(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    now = world.ended_ms + HOUR_MS
    asked = ["lag", "--log-dirs", str(world.data), "--group", GROUP, "--now", str(now)]
    _, answer = run(capsys, *asked)
    found = {each["partition"]: each for each in answer["lags"]}
    for partition, offset in world.committed.items():
        rows = world.of(partition)
        lag = found[partition]
        assert (lag["committed"], lag["end_offset"]) == (offset, len(rows))
        assert lag["records"] == sum(row.offset >= offset for row in rows)
        assert lag["by_record_ms"] == now - rows[offset].time_ms
        assert now - world.ended_ms <= lag["by_arrival_ms"] <= now - world.began_ms
    assert found[0]["by_record_ms"] < 0, "the first unread one is ahead"


def test_replay(world: World, live: NodeProcess, capsys: pytest.CaptureFixture[str]) -> None:
    admin = AdminClient({"bootstrap.servers": live.bootstrap})
    admin.create_topics([NewTopic("u", 2, 1)])["u"].result(30)
    low, high = world.began_ms - 90 * MINUTE_MS, world.began_ms - 30 * MINUTE_MS
    _, answer = run(
        capsys, "replay", "--bootstrap", live.bootstrap, "--topic", "t", "--to", live.bootstrap,
        "--to-topic", "u", "--same-partitions", "--from-ms", str(low), "--until-ms", str(high),
    )  # fmt: skip
    wanted = [row for row in world.rows if low <= row.time_ms < high]
    copied_rows = content(live, "u", 2)
    assert answer["records"] == len(wanted) == len(copied_rows)
    for partition in range(2):
        assert [row[2:] for row in copied_rows if row.partition == partition] == [
            row[2:] for row in wanted if row.partition == partition
        ]


def test_verify(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    status, answer = run(capsys, "verify", "--log-dirs", str(world.data), "--topic", "t")
    assert status == 0
    for found, partition in zip(answer["partitions"], range(2), strict=True):
        rows = world.of(partition)
        assert (found["partition"], found["verdict"]) == (f"t-{partition}", "sound")
        assert found["proved"]["records"] == len(rows)
        assert (found["start_offset"], found["end_offset"]) == (0, rows[-1].offset + 1)
        files = segments(world.data, f"t-{partition}")
        assert found["proved"]["segments"] == len(files) > 2


def test_reindex(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--log-dirs", str(world.data), "--topic", "t", "--out", str(tmp_path)]
    status, answer = run(capsys, "reindex", *asked)
    assert status == 0
    assert all(len(each["same"]) == 3 for each in answer["segments"])
    for partition in range(2):
        rows = world.of(partition)
        for base, following, path in segments(world.data, f"t-{partition}"):
            mine = [row for row in rows if base <= row.offset < following]
            made = (tmp_path / f"t-{partition}" / f"{path.stem}.timeindex").read_bytes()
            entries = list(struct.iter_unpack(">qi", made))
            assert entries[-1][0] == max(row.time_ms for row in mine)
            for newest, relative in entries:
                upto = (row.time_ms for row in mine if row.offset <= base + relative)
                assert newest == max(upto)


def last_of_each_key(rows: list[Row], below: int) -> list[Row]:
    """What compaction below an offset leaves; tombstones are not taken away."""
    last = {row.key: row.offset for row in rows if row.offset < below}
    return [row for row in rows if row.offset >= below or last[row.key] == row.offset]


def test_compact_plan(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["compact-plan", "--log-dirs", str(world.data), "--topic", "c"]
    _, answer = run(capsys, *asked, "--now", str(world.ended_ms))
    (found,) = answer["partitions"]
    below = segments(world.data, "c-0")[-1][0]
    kept = last_of_each_key(world.keyed, below)
    assert found["first_uncleanable"] == below > 0
    assert (found["records"], found["kept"]) == (len(world.keyed), len(kept))
    assert found["tombstones"] == sum(row.value is None for row in kept)
    assert found["kept_bytes"] == sum(len(row.key or b"") + len(row.value or b"") for row in kept)
    assert found["is_due"]


def test_compact_check(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = copied(world, tmp_path)
    noted = OffsetCheckpoint(PosixFileSystem(), f"{data}/{CLEANER_OFFSETS_FILE}")
    with start_broker(data, {**SETTINGS, "log.cleaner.backoff.ms": "100"}) as node:
        deadline = time.monotonic() + 30
        while ("c", 0) not in noted.load().offsets:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        left = content(node, "c", 1)
    asked = ["compact-check", "--before", str(world.data), "--after", str(data), "--topic", "c"]
    status, answer = run(capsys, *asked)
    (found,) = answer["partitions"]
    assert (status, found["is_right"]) == (0, True)
    expected = last_of_each_key(world.keyed, found["clean_below"])
    assert left == expected
    assert (found["before"], found["after"]) == (len(world.keyed), len(expected))
    assert found["after"] < found["before"]


def test_sql(spark: "SparkSession", world: World, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["spark", "sql", "--log-dirs", str(world.data), "--topic", "t", "--json", "-e"]
    query = "select date(timestamp) as day, key, count(*) as n, max(timestampMs) as latest from t"
    assert main([*asked, f"{query} group by 1, 2"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    groups: dict[tuple[str, str], list[int]] = {}
    for row in world.rows:
        name = str(day_of(row.time_ms)), (row.key or b"").decode()
        groups.setdefault(name, []).append(row.time_ms)
    assert {(each["day"], each["key"]): (each["n"], each["latest"]) for each in found} == {
        name: (len(times), max(times)) for name, times in groups.items()
    }
