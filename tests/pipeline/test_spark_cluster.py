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
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from tests.support.spark.archives import rows_of
from tests.support.spark.cluster_driver import COLUMNS
from tests.support.spark.pipeline_logs import directory_log, disordered, read_all
from tests.support.spark.spark_cluster import SparkCluster

pytestmark = [
    pytest.mark.skipif(find_spec("pyspark") is None, reason="needs '.[spark]'"),
    pytest.mark.timeout(240),
]
ROOT = Path(__file__).resolve().parents[2]


class Seen(NamedTuple):
    """What a driver on a cluster had to say, while two of its executors were killed."""

    places: list[dict[str, str]]
    """Where executors had our code from, and where they ran."""
    was_reading: bool
    """When the first one was killed."""
    commits_before: int
    """Of the archive when the second one was killed."""
    proof: dict[str, Any]
    rows: Path
    archive: Path
    work: Path
    executors: int
    """That there were in all."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions with disorder and dirty times, of half a megabyte each."""
    folder = tmp_path_factory.mktemp("logs")
    for partition in range(2):
        log = directory_log(folder, partition)
        disordered(log, partition, batches=600, dirty=True)
        log.close()
    return folder


@pytest.fixture(scope="module")
def seen(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("cluster")
    rows, archive = folder / "rows.parquet", folder / "archive"
    with SparkCluster(folder / "spark") as cluster:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.support.spark.cluster_driver", cluster.url, str(logs),
             str(rows), str(archive)],
            cwd=ROOT, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert driver.stdin
        assert driver.stdout
        places, _ = driver.stdout.readline(), driver.stdout.readline()
        _kill_one(cluster, driver, -1)
        driver.stdin.write("killed\n")
        driver.stdin.flush()
        was_reading = driver.stdout.readline()
        while driver.poll() is None and _commits(archive) < 3:
            time.sleep(0.02)
        _kill_one(cluster, driver, 0)
        before = _commits(archive)
        said, failed = driver.communicate(timeout=150)
        assert driver.returncode == 0, failed
        (executors,) = cluster.applications().values()
    return Seen(
        json.loads(places), was_reading == "true\n", before, json.loads(said), rows, archive,
        cluster.work, len(executors),
    )  # fmt: skip


def _kill_one(cluster: SparkCluster, driver: "subprocess.Popen[str]", which: int) -> None:
    while driver.poll() is None:
        if executors := cluster.executors():
            os.kill(executors[which], signal.SIGKILL)
            return
        time.sleep(0.02)
    raise AssertionError(driver.communicate()[1])


def _commits(archive: Path) -> int:
    folder = archive / "_commits"
    return len(list(folder.iterdir())) if folder.exists() else 0


def plain_rows(logs: Path) -> dict[tuple[int, int], Any]:
    rows = read_all({"log_dirs": str(logs), "subscribe": "t"}, COLUMNS)
    return {(row["partition"], row["offset"]): row for row in rows}


def archived(out: Path) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """Every row of every table, as a plain read has it."""
    for table, row in rows_of("parquet", out):
        if table != "quarantine":
            row["timestampMs"] = round(row["timestamp"].timestamp() * 1000)
        yield (row["partition"], row["offset"]), {name: row[name] for name in COLUMNS}


def test_executors_run_the_code_that_was_sent(seen: Seen) -> None:
    assert seen.places
    for place in seen.places:
        assert Path(place["code"]).is_relative_to(place["cwd"])
        assert Path(place["cwd"]).is_relative_to(seen.work)


def test_a_read_is_right_though_an_executor_is_killed(seen: Seen, logs: Path) -> None:
    assert seen.was_reading
    rows = pq.read_table(seen.rows).to_pylist()
    expected = plain_rows(logs)
    assert len(rows) == len(expected)
    assert {(row["partition"], row["offset"]): row for row in rows} == expected


def test_an_archive_is_right_though_an_executor_is_killed(seen: Seen, logs: Path) -> None:
    assert seen.commits_before < len(seen.proof["commits"]), "it was killed in mid-job"
    assert seen.executors > 2, "another took the place"
    expected = plain_rows(logs)
    found = list(archived(seen.archive))
    assert len(found) == len(expected) == seen.proof["read"]
    assert dict(found) == expected
