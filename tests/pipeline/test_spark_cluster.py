"""A standalone Spark cluster that knows nothing of us: code is sent along, executors are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.archives import rows_of
from tests.support.broker_process import HOROLOG
from tests.support.cluster_reader import COLUMNS
from tests.support.pipeline_logs import directory_log, disordered, read_all
from tests.support.spark_cluster import SparkCluster

ROOT = Path(__file__).resolve().parents[2]
ROUND_BYTES = 40_000
pytestmark = pytest.mark.skipif(find_spec("pyspark") is None, reason="needs '.[spark]'")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions with disorder and dirty times, of half a megabyte each."""
    folder = tmp_path_factory.mktemp("logs")
    for partition in range(2):
        log = directory_log(folder, partition)
        disordered(log, partition, batches=600, dirty=True)
        log.close()
    return folder


def start(*command: str) -> "subprocess.Popen[str]":
    """A driver on this machine's loopback interface, away from the checkout."""
    own = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.Popen(
        command, cwd=ROOT, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def plain_rows(logs: Path) -> dict[tuple[int, int], Any]:
    rows = read_all({"log_dirs": str(logs), "subscribe": "t"}, COLUMNS)
    return {(row["partition"], row["offset"]): row for row in rows}


def test_an_archive_is_right_though_an_executor_is_killed(
    cluster: SparkCluster, logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "archive"
    driver = start(
        str(HOROLOG), "spark", "archive", "--engine", "spark", "--master", cluster.url, "--json",
        "--log-dirs", str(logs), "--topic", "t", "--out", str(out), "--oldest", "5000d",
        "--round-bytes", str(ROUND_BYTES),
    )  # fmt: skip
    commits = out / "_commits"
    while driver.poll() is None and not (commits.exists() and len(list(commits.iterdir())) > 2):
        time.sleep(0.02)
    killed = cluster.executors()[0]
    os.kill(killed, signal.SIGKILL)
    archived_before = len(list(commits.iterdir()))
    said, failed = driver.communicate(timeout=100)
    assert driver.returncode == 0, failed
    proof = json.loads(said)
    assert archived_before < len(proof["commits"]), "it was killed in mid-job"
    expected = plain_rows(logs)
    assert proof["read"] == len(expected)
    found = dict(archived(out))
    assert found.keys() == expected.keys()
    assert all(found[place] == expected[place] for place in expected)
    (executors,) = list(cluster.applications().values())[-1:]
    assert len(executors) > 2, "another took its place"


def archived(out: Path) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """Every row of every table, as a plain read has it; none comes twice."""
    seen = set()
    for table, row in rows_of("parquet", out):
        place = row["partition"], row["offset"]
        assert place not in seen
        seen.add(place)
        if table != "quarantine":
            row["timestampMs"] = round(row["timestamp"].timestamp() * 1000)
        yield place, {name: row[name] for name in COLUMNS}


def test_the_source_runs_the_code_that_was_sent_though_an_executor_is_killed(
    cluster: SparkCluster, logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.parquet"
    reader = start(
        sys.executable, "-m", "tests.support.cluster_reader", cluster.url, str(logs), str(out)
    )
    assert reader.stdin
    assert reader.stdout
    places = [reader.stdout.readline(), reader.stdout.readline()]
    if places[1]:
        os.kill(cluster.executors()[0], signal.SIGKILL)
    said, failed = reader.communicate("killed\n", timeout=100)
    assert reader.returncode == 0, failed
    assert said.strip() == "true", "it was killed in mid-job"
    for place in json.loads(places[0]):
        assert Path(place["code"]).is_relative_to(place["cwd"])
        assert Path(place["cwd"]).is_relative_to(cluster.work)
    rows = pq.read_table(out).to_pylist()
    assert {(row["partition"], row["offset"]): row for row in rows} == plain_rows(logs)
    assert len(rows) == len(plain_rows(logs))
