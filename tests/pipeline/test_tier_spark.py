"""A topic that a real broker has moved to a real store: read by Spark, and archived, from there."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from broker.cli.main import main
from pipeline.directories import tier_store
from pipeline.jobs.archive import open_target, source_of
from pipeline.sinks.archive.run import Wishes, run_once
from pipeline.sinks.archive.values import TableKind
from pipeline.sources.chunks import FileChunk, WireChunk
from pipeline.sources.options import parse
from pipeline.sources.planning import plan_tasks
from pipeline.spark.engine import SparkEngine
from tests.integration.tier.test_restored_broker import take_picture
from tests.integration.tier.test_tiered_broker import (
    LATEST_TIERED,
    RECORDS,
    T0,
    make_topic,
    offset_of,
    server,
    start,
    until,
    wait_until_away,
    write,
)
from tests.support.spark.archives import FORMATS, rows_of, table_of
from tests.support.spark.pipeline_logs import read_all
from tests.support.tier.s3_server import S3Server, only_aws
from tests.support.worlds.broker_process import HOROLOG
from tests.support.worlds.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATEST = -1
WISHES = Wishes(round_bytes=2_000_000, ahead_ms=3650 * 24 * 3_600_000)
__all__ = ["server"]


class Tiered(NamedTuple):
    """A running broker, of whose topic `t` the greater part is only in the store."""

    broker: NodeProcess
    data: Path
    url: str
    copied: int
    """The offset behind the last one in the store."""

    def options(self, **more: str) -> dict[str, str]:
        return {"horolog.tier.url": self.url, "subscribe": "t", **more}


@pytest.fixture(scope="module")
def tiered(server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiered]:
    folder = tmp_path_factory.mktemp("tiered")
    with start(server, folder / "data") as broker, only_aws(server.environment):
        make_topic(broker.bootstrap, "t")
        write(broker.bootstrap, "t")
        wait_until_away(broker.bootstrap, "t")
        take_picture(server, folder.name, folder / "data")
        copied = offset_of(broker.bootstrap, "t", LATEST_TIERED)[1] + 1
        yield Tiered(broker, folder / "data", server.url(folder.name), copied)
    tier_store.store_at.cache_clear()


@pytest.fixture
def session(spark: "SparkSession", server: S3Server) -> "Iterator[SparkSession]":
    """The session of all tests, whose workers have the store's credentials in their environment."""
    from pipeline.spark.session import register

    given = spark.sparkContext.environment
    before = dict(given)
    given.update(server.environment)
    register(spark)
    yield spark
    given.clear()
    given.update(before)
    register(spark)


def loaded(session: "SparkSession", options: dict[str, str]) -> "DataFrame":
    return session.read.format("horolog").options(**options).load()


def numbers_of(frame: "DataFrame") -> list[tuple[int, int]]:
    rows = frame.selectExpr("offset", "cast(substring(value, 1, 8) as string) as v").collect()
    return sorted((row["offset"], int(row["v"])) for row in rows)


def test_spark_reads_each_record_once(session: "SparkSession", tiered: Tiered) -> None:
    """From the store alone; from directory and store; no credentials in the plan."""
    alone = loaded(session, tiered.options(minPartitions="4"))
    both = loaded(
        session, tiered.options(log_dirs=str(tiered.data), bootstrap=tiered.broker.bootstrap)
    )
    times = {"startingTimestamp": str(T0 + 100), "endingTimestamp": str(T0 + 150)}
    narrow = loaded(session, tiered.options(**times))

    end = offset_of(tiered.broker.bootstrap, "t", LATEST)[1]
    found = numbers_of(alone)
    assert found == [(each, each) for each in range(len(found))]
    assert tiered.copied <= len(found) <= end
    assert numbers_of(both) == [(each, each) for each in range(end)]
    assert numbers_of(narrow) == [(each, each) for each in range(100, 150)]
    explained = alone._jdf.queryExecution().toString()
    assert "secret" not in explained
    assert tiered.url not in explained


def test_the_broker_is_asked_for_the_rest_alone(tiered: Tiered) -> None:
    """The tail comes over the wire, as long as it is not in the store."""
    asked = tiered.options(bootstrap=tiered.broker.bootstrap, log_dirs="/nowhere")

    chunks = [chunk for task in plan_tasks(parse(asked)) for chunk in task]

    wire = [each for each in chunks if isinstance(each, WireChunk)]
    files = [each for each in chunks if isinstance(each, FileChunk)]
    assert all(each.stored is not None for each in files)
    assert len(wire) == 1
    assert wire[0].selection.first_offset >= tiered.copied
    rows = read_all(asked, ["offset"])
    assert [row["offset"] for row in rows] == list(range(RECORDS))


def test_without_the_store_the_broker_is_asked_for_what_has_left(tiered: Tiered) -> None:
    asked = {"bootstrap": tiered.broker.bootstrap, "subscribe": "t", "log_dirs": str(tiered.data)}
    kinds = [type(chunk) for task in plan_tasks(parse(asked)) for chunk in task]

    assert kinds[0] is WireChunk
    assert FileChunk in kinds
    end = offset_of(tiered.broker.bootstrap, "t", LATEST)[1]
    assert [row["offset"] for row in read_all(asked, ["offset"])] == list(range(end))


@pytest.mark.parametrize("kind", FORMATS)
def test_an_archive_begins_in_the_store_and_goes_on_beside_the_broker(
    kind: str, tiered: Tiered, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "archive"

    asked = ["spark", "archive", "--tier", tiered.url, "--topic", "t", "--out", str(out)]
    asked += ["--format", kind, "--ahead", "3650d", "--json"]

    def archived(*where: str) -> Any:
        assert main([*asked, *where]) == 0
        return json.loads(capsys.readouterr().out)

    first = subprocess.run([HOROLOG, *asked], capture_output=True, text=True, check=True)
    assert json.loads(first.stdout)["records"] >= tiered.copied
    assert archived()["records"] in range(RECORDS), "what was copied meanwhile"
    end = offset_of(tiered.broker.bootstrap, "t", LATEST)[1]
    archived("--bootstrap", tiered.broker.bootstrap)

    table = table_of(kind, out, TableKind.RECORDS)
    assert sorted(table["offset"].to_pylist()) == list(range(end))


def test_workers_of_spark_archive_from_the_store(
    session: "SparkSession", tiered: Tiered, tmp_path: Path
) -> None:
    """Tasks have the source alone; the store's credentials are their own."""
    where = {"horolog.tier.url": tiered.url}
    source = source_of(None, None, ["t"], is_committed=True, **where)
    with open_target("delta", str(tmp_path), WISHES) as target:
        commits = list(run_once(source, target, SparkEngine(lambda: session), WISHES))
    assert len(commits) > 1

    offsets = [row["offset"] for _, row in rows_of("delta", tmp_path)]
    assert sorted(offsets) == list(range(len(offsets)))
    assert len(offsets) >= tiered.copied


def test_a_stream_reads_the_store_and_then_the_broker_each_record_once(
    session: "SparkSession", tiered: Tiered, tmp_path: Path
) -> None:
    """It stops after some batches and goes on from its checkpoint, to the end of the topic."""
    out, state = tmp_path / "out", tmp_path / "state"
    where = tiered.options(
        bootstrap=tiered.broker.bootstrap, startingOffsets="earliest", maxOffsetsPerTrigger="1500"
    )

    def run(batches: int) -> None:
        source = session.readStream.format("horolog").options(**where).load()
        query = (
            source.select("partition", "offset")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(state))
            .start(str(out))
        )
        try:
            until(lambda: len(query.recentProgress) >= batches, "no batch ends")
            if batches == 0:
                query.processAllAvailable()
        finally:
            query.stop()

    run(2)
    run(0)
    end = offset_of(tiered.broker.bootstrap, "t", LATEST)[1]
    rows = session.read.parquet(str(out)).collect()
    assert sorted(row["offset"] for row in rows) == list(range(end))
