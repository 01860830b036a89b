"""`archive` of a real broker's files: what clients sent, once each, with its proof; then more."""

import json
import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from confluent_kafka import Producer

from broker.cli.main import main
from tests.support.spark.pipeline_logs import directory_log, disordered
from tests.support.worlds.broker_process import HOROLOG, start_broker
from tests.support.worlds.node_process import NodeProcess

HOUR_MS = 3_600_000
SETTINGS = {
    "num.partitions": "2",
    "log.segment.bytes": "1048576",
    "horolog.timestamp.policy": "accept",
}


def produce(bootstrap: str, first: int, last: int) -> dict[bytes, int]:
    """Records of a known time each, by value; one in a hundred is in seconds."""
    now = time.time_ns() // 1_000_000
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "acks": 1})
    sent = {}
    for n in range(first, last):
        value = json.dumps({"n": n, "pad": "x" * 900}).encode()
        when = now - n * HOUR_MS // 60
        sent[value] = when // 1000 if n % 100 == 3 else when
        producer.produce("orders", value, b"k%d" % (n % 7), timestamp=sent[value])
    producer.flush(30)
    return sent


def archive(directory: Path, out: Path, capsys: pytest.CaptureFixture[str], *more: str) -> Any:
    asked = ["--log-dirs", str(directory), "--topic", "orders", "--out", str(out), "--json", *more]
    assert main(["spark", "archive", *asked]) == 0
    return json.loads(capsys.readouterr().out)


def archived(out: Path) -> dict[bytes, int]:
    """Value and time of every row of both tables; each value is there once."""
    rows = ds.dataset(out / "records", partitioning="hive").to_table().to_pylist()
    found = {row["value"]: round(row["timestamp"].timestamp() * 1000) for row in rows}
    aside = ds.dataset(out / "quarantine", partitioning="hive").to_table().to_pylist()
    assert {row["reason"] for row in aside} == {"past: seconds"}
    found.update({row["value"]: row["timestampMs"] for row in aside})
    assert len(found) == len(rows) + len(aside)
    assert all(str(row["timestamp"].date()) == str(row["event_date"]) for row in rows)
    return found


def test_what_clients_sent_is_archived_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "data", tmp_path / "archive"
    with start_broker(data, SETTINGS) as node:
        sent = produce(node.bootstrap, 0, 3000)
    proof = archive(data, out, capsys)
    assert archived(out) == sent
    assert (proof["offsets"], proof["read"], proof["holes"]) == (3000, 3000, 0)
    assert proof["quarantine"] == 30
    assert archive(data, out, capsys)["commits"] == []
    with start_broker(data, SETTINGS) as node:
        sent |= produce(node.bootstrap, 3000, 3600)
    assert archive(data, out, capsys)["read"] == 600
    assert archived(out) == sent
    assert main(["spark", "compact", "--out", str(out), "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert tables[0]["files_after"] < tables[0]["files_before"]
    assert archived(out) == sent


def test_no_process_loads_pandas(tmp_path: Path) -> None:
    """It takes each of them a third of a second, and a killed archive starts anew."""
    for partition in range(2):
        log = directory_log(tmp_path / "data", partition)
        disordered(log, partition)
        log.close()
    done = subprocess.run(
        [HOROLOG, "spark", "archive", "--log-dirs", tmp_path / "data", "--topic", "t",
         "--out", tmp_path / "out", "--oldest", "36500d", "--json"],
        env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    proof = json.loads(done.stdout)
    assert proof["records"] == proof["read"] > 0
    loaded = [line.split("|")[-1].strip() for line in done.stderr.splitlines()]
    assert loaded.count("pyarrow.lib") == 1, "workers begin with what is loaded"
    assert "pandas" not in loaded


def test_mistakes_are_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").mkdir()
    asked = ["spark", "archive", "--topic", "t", "--out", str(tmp_path / "out")]
    assert main(asked) == 2
    assert "--log-dirs" in capsys.readouterr().err
    assert main([*asked, "--log-dirs", str(tmp_path / "data")]) == 2
    assert "'t'" in capsys.readouterr().err
    schema = tmp_path / "schema.json"
    schema.write_text('{"n": "number"}')
    broken = [*asked, "--log-dirs", str(tmp_path / "data"), "--value-schema", str(schema)]
    assert main(broken) == 2
    assert "there is no type 'number'" in capsys.readouterr().err
    assert main([*asked, "--oldest", "soon"]) == 2
    schema.write_bytes(b"\xff")
    assert main(broken) == 2
    assert "--value-schema: 'utf-8' codec can't decode" in capsys.readouterr().err
    for name in ("--max-writers", "--round-bytes"):
        capsys.readouterr()
        assert main([*asked, "--log-dirs", str(tmp_path / "data"), name, "0"]) == 2
        assert f"'{name}': 0 is not in the range" in capsys.readouterr().err
    assert main(["spark", "compact", "--out", str(tmp_path / "out"), "--target-bytes", "-1"]) == 2


def test_a_catalog_that_cannot_be_used_has_a_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it fails of; and the archive is free again."""
    data, out = tmp_path / "data", tmp_path / "out"
    log = directory_log(data)
    disordered(log, 1)
    log.close()
    asked = ["spark", "archive", "--log-dirs", str(data), "--topic", "t", "--out", str(out)]
    asked += ["--format", "iceberg"]
    monkeypatch.setenv("PYICEBERG_CATALOG__GONE__URI", "http://127.0.0.1:1")
    out.mkdir()
    (out / "catalog.sqlite").write_bytes(b"not a catalog" * 1000)
    for more, name in (
        (["--catalog", "unheard"], "unheard"),
        (["--catalog", "gone"], "gone"),
        ([], "catalog.sqlite"),
    ):
        assert main([*asked, *more]) == 2
        told = capsys.readouterr().err
        assert f"{name} cannot be used: " in told
        assert "Traceback" not in told
    (out / "catalog.sqlite").unlink()
    assert main([*asked, "--oldest", "36500d"]) == 0


@pytest.mark.parametrize("way", ["wire", "files of a live broker"])
def test_what_was_committed_on_a_live_broker(
    node: NodeProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    topic = f"live-{way[:4]}"
    asked = ["spark", "archive", "--bootstrap", node.bootstrap, "--topic", topic, "--json"]
    asked += ["--out", str(tmp_path / "out")]
    if way != "wire":
        asked += ["--log-dirs", node.facts["data_dir"]]
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    transact(producer, topic, b"kept", 50, commits=True)
    transact(producer, topic, b"aborted", 30, commits=False)
    assert main(asked) == 0
    proof = json.loads(capsys.readouterr().out)
    assert (proof["read"], proof["records"]) == (50, 50)
    assert proof["offsets"] == 50 + proof["holes"]
    transact(producer, topic, b"more", 20, commits=True)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(30)
    assert main(asked) == 0
    assert json.loads(capsys.readouterr().out)["read"] == 20
    producer.abort_transaction()
    rows = ds.dataset(tmp_path / "out" / "records", partitioning="hive").to_table().to_pylist()
    values = Counter(row["value"].rstrip(b"0123456789") for row in rows)
    assert values == {b"kept": 50, b"more": 20}


def transact(producer: Producer, topic: str, name: bytes, count: int, *, commits: bool) -> None:
    producer.begin_transaction()
    for n in range(count):
        producer.produce(topic, name + b"%d" % n)
    producer.flush(30)
    if commits:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)
