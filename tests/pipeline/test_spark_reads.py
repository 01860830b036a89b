"""`format("horolog")` in Spark itself: the same rows, fewer columns, filters, streams."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StringType, StructField, StructType

from pipeline.decode.schemas import RECORDS
from pipeline.errors import BadOption
from pipeline.sources.options import parse
from pipeline.spark.session import FOUND
from pipeline.spark.stream import RecordsStream
from pipeline.spark.task import arrow_columns
from storage.log.log import Log
from tests.support.records.logs import append
from tests.support.spark.pipeline_logs import (
    NOON_MS,
    checkpoint,
    directory_log,
    disordered,
    read_all,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions, well stopped, disordered and with some dirty times."""
    made = tmp_path_factory.mktemp("logs")
    for partition in range(2):
        log = directory_log(made, partition)
        disordered(log, partition, dirty=True)
        log.close()
    return made


def loaded(spark: "SparkSession", folder: Path, **options: str) -> "DataFrame":
    reader = spark.read.format("horolog").options(log_dirs=str(folder), subscribe="t", **options)
    return reader.load()


def test_all_columns_are_those_of_the_plain_reader(spark: "SparkSession", folder: Path) -> None:
    frame = loaded(spark, folder, includeHeaders="true", metadataColumns="true")
    expected = read_all({"log_dirs": str(folder), "subscribe": "t"}, frame.columns)

    found = frame.toArrow().select(frame.columns).to_pylist()

    key = lambda row: (row["partition"], row["offset"])  # noqa: E731
    assert sorted(found, key=key) == expected
    assert frame.columns[:7] == RECORDS.names


def test_fewer_columns_by_a_narrower_schema(spark: "SparkSession", folder: Path) -> None:
    reader = spark.read.format("horolog").options(log_dirs=str(folder), subscribe="t")
    rows = read_all({"log_dirs": str(folder), "subscribe": "t"}, ["offset", "timestampMs"])

    found = reader.schema("OFFSET long, timestampMs long").load().toArrow()

    assert found.column_names == ["OFFSET", "timestampMs"]
    assert sorted(found["timestampMs"].to_pylist()) == sorted(row["timestampMs"] for row in rows)


def test_columns_that_there_are_not_are_refused() -> None:
    with pytest.raises(BadOption, match="offset is int64, not string"):
        arrow_columns(StructType([StructField("offset", StringType())]))
    with pytest.raises(BadOption, match="colour is no column of the source"):
        arrow_columns(StructType([StructField("colour", StringType())]))


def test_filters_prune_when_asked_for_and_never_change_the_answer(
    spark: "SparkSession", folder: Path
) -> None:
    rows = read_all({"log_dirs": str(folder), "subscribe": "t"}, ["offset", "timestampMs"])
    low = NOON_MS + 600_000
    cases = {
        f"timestamp >= timestamp_millis({low}) and timestamp < timestamp_millis({low + 300_000})":
            sum(low <= row["timestampMs"] < low + 300_000 for row in rows),
        "offset < 3 and topic = 't' and partition in (0, 1, 7)": 6,
        "topic = 'nothing'": 0,
    }  # fmt: skip
    for where, count in cases.items():
        frame = loaded(spark, folder, pushFilters="true").where(where)
        assert frame.count() == count, where


def test_a_query_without_a_filter_is_whole_after_one_with_a_filter(
    spark: "SparkSession", folder: Path
) -> None:
    """Spark 4.3 keeps the plan of pushed filters for later queries of the same load()."""
    frame = loaded(spark, folder)

    assert frame.where("offset < 3").count() == 6
    assert frame.count() == len(read_all({"log_dirs": str(folder), "subscribe": "t"}))


def test_mistakes_reach_the_user_by_name(spark: "SparkSession", folder: Path) -> None:
    with pytest.raises(Exception, match="did you mean startingOffsets"):
        loaded(spark, folder, startingOffset="earliest")


def test_a_stream_that_has_an_end_is_refused() -> None:
    options = parse({"log_dirs": "/data", "subscribe": "t", "endingTimestamp": "5"})

    with pytest.raises(BadOption, match="a stream has no end"):
        RecordsStream(options, StructType([]))


def test_a_stream_does_not_begin_where_partitions_are_left_out(folder: Path) -> None:
    asked = {"log_dirs": str(folder), "subscribe": "t"}
    for name in ("startingOffsets", "startingOffsetsByTimestamp"):
        options = parse({**asked, name: '{"t": {"7": 1}}'})
        with pytest.raises(BadOption, match=f"{name} says nothing of t-0"):
            RecordsStream(options, StructType([])).initialOffset()


def test_a_stream_goes_on_without_a_topic_where_a_loss_is_no_error(tmp_path: Path) -> None:
    append(directory_log(tmp_path), NOON_MS)
    asked = {"log_dirs": str(tmp_path), "subscribe": "t,u", "failOnDataLoss": "false"}
    stream = RecordsStream(parse(asked), StructType([]))

    stream.prepareForTriggerAvailableNow()

    start = {"t": {"0": 0}}
    assert stream.latestOffset(start, ReadAllAvailable())["t"]["0"] == 1
    assert (stream.reportLatestOffset() or {})["t"]["0"] == 1


def test_the_source_is_found_without_registration() -> None:
    assert (FOUND / "pyspark_horolog" / "__init__.py").exists()
    import sys

    sys.path.insert(0, str(FOUND))
    try:
        from pyspark_horolog import DefaultSource
    finally:
        sys.path.remove(str(FOUND))
    assert DefaultSource.name() == "horolog"


def stream(spark: "SparkSession", folder: Path, **options: str) -> "DataFrame":
    reader = spark.readStream.format("horolog")
    return reader.options(log_dirs=str(folder), subscribe="t", **options).load()


class Archive:
    """A stream of topic `t` into Parquet files, run as far as there is something."""

    def __init__(self, spark: "SparkSession", folder: Path, scratch: Path, **options: str) -> None:
        self.spark, self.folder = spark, folder
        self.options = {"startingOffsets": "earliest", **options}
        self.out, self.state = str(scratch / "out"), str(scratch / "state")

    def run(self) -> list[dict[str, Any]]:
        """Progress reports of one run to the end of what there is."""
        frame = stream(self.spark, self.folder, **self.options).select("partition", "offset")
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", self.state)
            .trigger(availableNow=True)
            .start(self.out)
        )
        query.awaitTermination(120)
        return [dict(each) for each in query.recentProgress if each["numInputRows"]]

    def offsets(self) -> list[tuple[int, int]]:
        rows = self.spark.read.parquet(self.out).orderBy("partition", "offset").collect()
        return [(row.partition, row.offset) for row in rows]


def test_a_stream_takes_everything_once_in_batches_of_the_limit(
    spark: "SparkSession", tmp_path: Path
) -> None:
    logs: list[Log] = [directory_log(tmp_path / "logs", index) for index in range(2)]
    for log in logs:
        for _ in range(5):
            append(log, *range(NOON_MS, NOON_MS + 10))
    checkpoint(tmp_path / "logs", t_0=50, t_1=50)
    archive = Archive(spark, tmp_path / "logs", tmp_path, maxOffsetsPerTrigger="40")

    progress = archive.run()

    assert [each["numInputRows"] for each in progress] == [40, 40, 20]
    append(logs[0], *range(NOON_MS, NOON_MS + 5))
    append(logs[0], *range(NOON_MS, NOON_MS + 2))  # behind the watermark
    third = directory_log(tmp_path / "logs", 2)
    append(third, NOON_MS)
    checkpoint(tmp_path / "logs", t_0=55, t_1=50, t_2=1)
    assert sum(each["numInputRows"] for each in archive.run()) == 6
    assert archive.offsets() == [
        *((0, offset) for offset in range(55)),
        *((1, offset) for offset in range(50)),
        (2, 0),
    ]
