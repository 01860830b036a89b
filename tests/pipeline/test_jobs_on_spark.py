"""Jobs as tasks of a Spark session: the same answers as in processes; topics asked in SQL."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker.cli.main import main
from pipeline.cli.options import Part, partition_parts, read_options
from pipeline.engine.native import NativeEngine
from pipeline.errors import DamagedLog
from pipeline.jobs.audit_time import audit
from pipeline.jobs.sql import register_views, view_name
from pipeline.jobs.verify import parts_of, prove
from pipeline.sinks.archive.log_source import LogSource
from pipeline.sinks.archive.run import run_once
from pipeline.spark.engine import SparkEngine
from pipeline.transforms.time_audit import AuditBounds
from storage.posix import real_env
from tests.support.spark.archives import WISHES, check, opened
from tests.support.spark.made_up_records import MadeUp
from tests.support.spark.pipeline_logs import (
    DIRTY_MS,
    HOUR_MS,
    NOON_MS,
    directory_log,
    disordered,
    read_all,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOUNDS = AuditBounds(HOUR_MS, 24 * HOUR_MS, NOON_MS)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions with disorder and dirty times."""
    folder = tmp_path_factory.mktemp("logs")
    for partition in range(2):
        log = directory_log(folder, partition)
        disordered(log, partition, dirty=True)
        log.close()
    return folder


def test_an_archive_is_the_same(spark: "SparkSession", tmp_path: Path) -> None:
    with opened("delta", tmp_path) as target:
        commits = list(
            run_once(MadeUp({0: 900, 1: 400}), target, SparkEngine(lambda: spark), WISHES)
        )
    assert sum(each.read for each in commits) > 1200
    check("delta", tmp_path, {0: 900, 1: 400})


def test_answers_are_the_same(spark: "SparkSession", logs: Path) -> None:
    options = read_options(str(logs), None, ["t"])
    parts, _ = parts_of(real_env().fs, [str(logs)], [])
    answers: list[Any] = []
    for engine in (NativeEngine(processes=1), SparkEngine(lambda: spark)):
        audited = audit(engine, partition_parts(options), BOUNDS)
        reports = prove(engine, parts)
        answers.append(([each.audit.as_json() for each in audited], reports))
    assert answers[0] == answers[1]
    assert sum(row["outliers"] for row in answers[0][0]) > 0


def test_an_error_keeps_its_name_on_the_way(spark: "SparkSession", logs: Path) -> None:
    parts = partition_parts(read_options(str(logs), None, ["t"]))
    with pytest.raises(DamagedLog, match="at the wrong place"):
        list(SparkEngine(lambda: spark).run(refuse, [parts]))


def refuse(part: Part) -> None:
    raise DamagedLog(f"{part.view}: at the wrong place")


def test_topics_are_views(spark: "SparkSession", logs: Path) -> None:
    register_views(spark, {"log_dirs": str(logs)}, ("t",))
    rows = read_all({"log_dirs": str(logs), "subscribe": "t"}, ["partition", "timestampMs"])
    found = spark.sql(
        f"select partition, count(*) as n from t where timestampMs >= {DIRTY_MS} group by partition"
    ).collect()
    expected = {
        p: sum(row["partition"] == p and row["timestampMs"] >= DIRTY_MS for row in rows)
        for p in range(2)
    }
    assert {row.partition: row.n for row in found} == {p: n for p, n in expected.items() if n}
    assert view_name("orders.eu-1") == "orders_eu_1"


def test_sql_from_the_command_line(
    spark: "SparkSession", logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["spark", "sql", "--log-dirs", str(logs), "--topic", "t"]
    assert main([*asked, "--json", "-e", "select max(offset) as last from t"]) == 0
    rows = read_all({"log_dirs": str(logs), "subscribe": "t"}, ["offset"])
    assert json.loads(capsys.readouterr().out) == {"last": max(row["offset"] for row in rows)}
    assert main([*asked, "-e", "select nothing from t"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1, "no page of Java"
    assert "nothing" in said[0]
    assert main(["spark", "sql", "--topic", "t"]) == 2
    capsys.readouterr()


@pytest.mark.parametrize("other", ["orders_eu", "Orders-EU"])
def test_two_topics_are_not_one_view(
    other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = ["--topic", "orders.eu", "--topic", other]
    assert main(["spark", "sql", "--log-dirs", str(tmp_path), *topics, "-e", "select 1"]) == 2
    assert f"orders.eu and {other} would both be the view" in capsys.readouterr().err


def test_a_log_is_read_whole_by_an_archive_on_spark(
    spark: "SparkSession", logs: Path, tmp_path: Path
) -> None:
    source = LogSource(read_options(str(logs), None, ["t"], isolationLevel="read_committed"))
    with opened("parquet", tmp_path) as target:
        commits = list(
            run_once(source, target, SparkEngine(lambda: spark), WISHES._replace(value_schema=None))
        )
    rows = read_all({"log_dirs": str(logs), "subscribe": "t"}, ["offset"])
    assert sum(each.read for each in commits) == len(rows)
