"""Spark's own Kafka connector at work, and our source beside it; prints what each saw as JSON.

Arguments: HOST:PORT, a topic whose times are in disorder, one where they are not, one to write to,
the first and the end time in ms, a folder for checkpoints, a JSON list of options to be tried, JSON
of the options for a topic of a broker with TLS, SASL and ACLs. Rows are
[partition, offset, time in ms, key, value, headers].
"""

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pipeline.spark.session import open_session
from tests.support.spark.spark_jars import connector_jars

COLUMNS = (
    "partition",
    "offset",
    "unix_millis(timestamp) AS time",
    "CAST(key AS STRING) AS key",
    "CAST(value AS STRING) AS value",
    "transform(headers, h -> concat(h.key, '=', CAST(h.value AS STRING))) AS headers",
)


CONNECTOR, OURS = "kafka", "horolog"


class Job:
    """A source on one topic; both take the same options."""

    def __init__(self, spark: SparkSession, name: str, bootstrap: str, topic: str) -> None:
        self.spark = spark
        self.name = name
        self.source = {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "includeHeaders": "true",
        }

    def batch(self, **options: str) -> list[Any]:
        return rows(self.frame(**options))

    def frame(self, **options: str) -> DataFrame:
        return self.spark.read.format(self.name).options(**self.source, **options).load()

    def stream(self, folder: str) -> list[Any]:
        """Everything there is, in several micro-batches."""
        read = self.spark.readStream.format(self.name).options(
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

    def refuses(self, told: str) -> bool:
        """Whether a query with the options, in which TOPIC stands for the topic, fails."""
        options = json.loads(told.replace("TOPIC", self.source["subscribe"]))
        try:
            self.batch(**{name: json.dumps(each) for name, each in options.items()})
        except Exception as error:  # noqa: BLE001 - Py4J's, of many kinds
            print(f"{self.name}, {told}: {str(error)[:300]}", file=sys.stderr)
            return True
        return False

    def copy(self, topic: str) -> None:
        """The connector as a sink; its columns have no time."""
        bootstrap = self.source["kafka.bootstrap.servers"]
        self.frame().select("key", "value", "headers").write.format(self.name).options(
            **{"kafka.bootstrap.servers": bootstrap, "topic": topic, "includeHeaders": "true"}
        ).save()


def rows(frame: DataFrame) -> list[Any]:
    return collected(frame.selectExpr(*COLUMNS))


def collected(frame: DataFrame) -> list[Any]:
    return sorted(list(row) for row in frame.collect())


def main() -> None:
    bootstrap, topic, orderly, copy, first_ms, end_ms, folder, tried, secure = sys.argv[1:]
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
    between = {"startingTimestamp": first_ms, "endingTimestamp": end_ms}
    job = Job(spark, CONNECTOR, bootstrap, topic)
    said = {
        "batch": job.batch(minPartitions="5"),
        "between": job.batch(**between),
        "stream": job.stream(folder),
    }
    job.copy(copy)
    ours = Job(spark, OURS, bootstrap, topic)
    said["ours"] = {
        "batch": ours.batch(minPartitions="5"),
        "between": ours.batch(**between),
        "between offsets": ours.batch(**between, endingTimestampMode="offset"),
        "columns": ours.frame().schema.simpleString(),
    }
    said["secure"] = [
        rows(spark.read.format(name).options(**json.loads(secure)).load())
        for name in (CONNECTOR, OURS)
    ]
    said["columns"] = job.frame().schema.simpleString()
    said["orderly"] = [
        Job(spark, name, bootstrap, orderly).batch(**between) for name in (CONNECTOR, OURS)
    ]
    said["refused"] = {
        name: {
            told: Job(spark, name, bootstrap, orderly).refuses(told) for told in json.loads(tried)
        }
        for name in (CONNECTOR, OURS)
    }
    print(json.dumps(said))
    spark.stop()


if __name__ == "__main__":
    main()
