"""Spark's own Kafka connector at work, as a process of its own; prints what it saw as JSON.

Arguments: HOST:PORT, a topic to read, one to write to, the first and the end time in ms, a folder
for checkpoints. Rows are [partition, offset, time in ms, key, value, headers].
"""

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pipeline.session import open_session
from tests.support.spark_jars import connector_jars

COLUMNS = (
    "partition",
    "offset",
    "unix_millis(timestamp) AS time",
    "CAST(key AS STRING) AS key",
    "CAST(value AS STRING) AS value",
    "transform(headers, h -> concat(h.key, '=', CAST(h.value AS STRING))) AS headers",
)


class Job:
    """The connector on one topic."""

    def __init__(self, spark: SparkSession, bootstrap: str, topic: str) -> None:
        self.spark = spark
        self.source = {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "includeHeaders": "true",
        }

    def batch(self, **options: str) -> list[Any]:
        return rows(self.spark.read.format("kafka").options(**self.source, **options).load())

    def stream(self, folder: str) -> list[Any]:
        """Everything there is, in several micro-batches."""
        read = self.spark.readStream.format("kafka").options(
            **self.source, startingOffsets="earliest", maxOffsetsPerTrigger="300"
        )
        written = read.load().selectExpr(*COLUMNS).writeStream.format("memory")
        query = (
            written.queryName("seen")
            .option("checkpointLocation", f"{folder}/stream")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert len([each for each in query.recentProgress if each["numInputRows"]]) > 1
        return collected(self.spark.table("seen"))

    def copy(self, topic: str) -> None:
        """The connector as a sink; its columns have no time."""
        frame = self.spark.read.format("kafka").options(**self.source).load()
        bootstrap = self.source["kafka.bootstrap.servers"]
        frame.select("key", "value", "headers").write.format("kafka").options(
            **{"kafka.bootstrap.servers": bootstrap, "topic": topic, "includeHeaders": "true"}
        ).save()


def rows(frame: DataFrame) -> list[Any]:
    return collected(frame.selectExpr(*COLUMNS))


def collected(frame: DataFrame) -> list[Any]:
    return sorted(list(row) for row in frame.collect())


def main() -> None:
    bootstrap, topic, copy, first_ms, end_ms, folder = sys.argv[1:]
    spark = open_session(
        "connector",
        master="local[2]",
        settings={
            "spark.jars": ",".join(connector_jars()),
            "spark.local.dir": f"{folder}/local",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.codegen.wholeStage": "false",
        },
        is_short=True,
    )
    job = Job(spark, bootstrap, topic)
    said = {
        "batch": job.batch(minPartitions="5"),
        "between": job.batch(startingTimestamp=first_ms, endingTimestamp=end_ms),
        "stream": job.stream(folder),
    }
    job.copy(copy)
    print(json.dumps(said))
    spark.stop()


if __name__ == "__main__":
    main()
