"""`reindex`, `compact-plan` and `compact-check` over logs of the broker's, whole and damaged."""

import json
import random
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker.cli.main import main
from pipeline.transforms.compaction import CONTENT, KEYED, check, keyed, model, survivors
from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import CLEANER_OFFSETS_FILE
from storage.posix import real_env
from tests.support.spark.pipeline_logs import SMALL, directory_log, disordered
from tests.support.worlds.broker_process import start_broker

HOUR, DAY = 3_600_000, 86_400_000
FLAGS = [
    part
    for name, value in (
        ("log.index.interval.bytes", SMALL["index_interval_bytes"]),
        ("horolog.zone.bytes", SMALL["horolog_zone_bytes"]),
    )
    for part in ("--set", f"{name}={value}")
]


def run(capsys: pytest.CaptureFixture[str], *asked: str) -> tuple[int, Any]:
    status = main(["spark", *asked, "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("dirty", [False, True], ids=["clean", "dirty"])
def test_indexes_made_anew_are_the_brokers_byte_for_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, dirty: bool
) -> None:
    log = directory_log(tmp_path / "data")
    disordered(log, 3, dirty=dirty)
    log.close()
    out = tmp_path / "out"
    asked = ["reindex", "--log-dirs", str(tmp_path / "data"), "--out", str(out), *FLAGS]
    status, found = run(capsys, *asked)
    assert status == 0
    segments = found["segments"]
    assert len(segments) > 3
    assert all(set(each["same"]) == {".index", ".timeindex", ".zones"} for each in segments)
    for path in out.rglob("*index"):
        assert path.read_bytes() == (tmp_path / "data" / path.relative_to(out)).read_bytes()


def test_lost_indexes_come_back_and_damage_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = directory_log(tmp_path / "data")
    disordered(log, 4)
    log.close()
    folder = tmp_path / "data" / "t-0"
    kept = {path.name: path.read_bytes() for path in folder.glob("*index")}
    for path in [*folder.glob("*index"), *folder.glob("*.zones")]:
        path.unlink()
    asked = ["reindex", "--log-dirs", str(tmp_path / "data"), "--out", str(tmp_path / "o"), *FLAGS]
    status, found = run(capsys, *asked)
    assert status == 0
    assert all(len(each["missing"]) == 3 for each in found["segments"])
    made = {path.name: path.read_bytes() for path in (tmp_path / "o" / "t-0").glob("*index")}
    assert made == kept
    segment = min(folder.glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    status, found = run(capsys, *asked)
    assert status == 3
    assert [bool(each["fault"]) for each in found["segments"]].count(True) == 1


def table(*rows: tuple[int, bytes | None, bool]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"offset": at, "key": key, "size": 10, "tombstone": dead, "digest": bytes(16)}
            for at, key, dead in rows
        ],
        KEYED,
    )


def test_the_model_against_a_dictionary() -> None:
    dice = random.Random(9)
    for _ in range(30):
        rows = [
            (n, dice.choice([None, *(b"k%d" % k for k in range(6))]), dice.random() < 0.2)
            for n in range(dice.randint(1, 60))
        ]
        below = dice.randint(0, len(rows))
        last = {key: at for at, key, _ in rows[:below] if key is not None}
        expected = [at for at, key, _ in rows if at >= below or last.get(key, -1) == at]  # type: ignore[arg-type]
        assert model(table(*rows), below).column("offset").to_pylist() == expected
        assert survivors(table(*rows), below).kept == len(expected)
        assert check(table(*rows), model(table(*rows), below), below).is_right


def test_what_a_cleaner_does_wrong_is_found() -> None:
    before = table((0, b"a", False), (1, b"b", False), (2, b"a", False), (3, b"b", True))
    right = table((2, b"a", False), (3, b"b", True))
    assert check(before, right, 4).is_right
    assert check(before, table((2, b"a", False)), 4).is_right, "a tombstone may have gone"
    assert check(before, table((3, b"b", True)), 4).lost == 1
    assert check(before, before, 4).left_over == 2
    strange = table((2, b"a", False), (3, b"b", True), (9, b"z", False))
    assert check(before, strange, 4).strange == 1
    assert check(before, table((2, b"x", False), (3, b"b", True)), 4).lost == 1
    assert check(before, right, 2).lost == 2, "above what was cleaned nothing may go"


CONTENT_ROW = {
    "offset": 7, "key": b"k", "value": b"v", "timestampMs": 5,
    "headers": [{"key": "h", "value": b""}],
}  # fmt: skip
CHANGED: dict[str, dict[str, Any]] = {
    "value": {"value": b"w"},
    "empty for null": {"value": b""},
    "null for empty": {"value": None},
    "time": {"timestampMs": 6},
    "no headers": {"headers": None},
    "a header's value": {"headers": [{"key": "h", "value": None}]},
    "a header twice": {"headers": CONTENT_ROW["headers"] * 2},
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_record_that_is_not_what_it_was_is_found(change: str) -> None:
    def content(**more: Any) -> pa.Table:
        return keyed([pa.RecordBatch.from_pylist([{**CONTENT_ROW, **more}], CONTENT)])

    before = content(value=b"") if change == "null for empty" else content()
    assert check(before, before, 9).is_right
    for clean_below in (0, 9):
        found = check(before, content(**CHANGED[change]), clean_below)
        assert (found.changed, found.lost, found.strange) == (1, 0, 0)
        assert found.examples == ("is not what it was: offset 7",)
        assert not found.is_right


def compacted_topic(bootstrap: str) -> None:
    config = {
        "cleanup.policy": "compact", "segment.bytes": "1048576",
        "min.cleanable.dirty.ratio": "0.01", "max.compaction.lag.ms": str(DAY),
    }  # fmt: skip
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("c", 1, 1, config=config)])["c"].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for n in range(2600):
        value = None if n % 40 == 3 else bytes(1000)
        producer.produce("c", value, b"k%d" % (n % 90))
        if n % 200 == 0:
            producer.flush(30)
    producer.flush(30)


def test_the_brokers_cleaner_against_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    quiet, busy = ({"log.cleaner.backoff.ms": each} for each in ("86400000", "100"))
    with start_broker(data, quiet) as node:
        compacted_topic(node.bootstrap)
    shutil.copytree(data, copy)
    now = str(time.time_ns() // 1_000_000)
    asked = ["compact-plan", "--log-dirs", str(copy), "--topic", "c", "--now"]
    status, found = run(capsys, *asked, now)
    (plan,) = found["partitions"]
    assert status == 0
    assert plan["is_due"]
    assert plan["dirty_ratio"] == 1
    assert plan["records"] == 2600
    assert plan["freed_bytes"] > 1_000_000
    status, found = run(capsys, *asked, str(int(now) + 2 * DAY))
    assert status == 10, "a day is the limit"
    assert DAY <= found["partitions"][0]["delay_ms"] < DAY + HOUR
    noted = OffsetCheckpoint(real_env().fs, f"{data}/{CLEANER_OFFSETS_FILE}")
    with start_broker(data, busy):
        deadline = time.monotonic() + 30
        while not noted.load().offsets and time.monotonic() < deadline:
            time.sleep(0.1)
    check_it = ["compact-check", "--before", str(copy), "--after", str(data), "--topic", "c"]
    status, found = run(capsys, *check_it)
    (row,) = found["partitions"]
    assert (status, row["is_right"]) == (0, True)
    assert row["clean_below"] == plan["first_uncleanable"]
    assert row["after"] == plan["kept"] < 2600
    status, found = run(
        capsys, *check_it[:1], "--before", str(data), "--after", str(data), "--topic", "c"
    )
    assert status == 0, "what is compacted stays as it is"
    assert main(["spark", *check_it[:3], "--after", str(copy), "--topic", "c"]) == 2
    (meta,) = copy.glob("c-0/partition.metadata")
    meta.write_text(re.sub("topic_id: .*", "topic_id: AAAAAAAAAAAAAAAAAAAAAQ", meta.read_text()))
    capsys.readouterr()
    assert main(["spark", *check_it]) == 2
    assert "c-0 was made again since the copy" in capsys.readouterr().err
