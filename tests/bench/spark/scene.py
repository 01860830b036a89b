"""What a cell of Spark's table finds ready: a session, two brokers that are filled, a scratch."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.cell import Figure, rate
from tests.bench.spark.records import CLEAN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THOUSANDS = "k rec/s"
Measurement = Callable[["Scene"], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Scene:
    """`ours` and `kafka` are bootstrap addresses; `log_dir` is our broker's data directory."""

    spark: "SparkSession"
    ours: str
    kafka: str
    log_dir: Path
    scratch: Path
    records: int
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def source(self, topic: str = CLEAN, mode: str = "files", **more: str) -> dict[str, str]:
        """Options of our source."""
        return {"kafka.bootstrap.servers": self.ours, "subscribe": topic, "mode": mode, **more}

    def read_ours(self, options: Mapping[str, str], schema: str = "") -> "DataFrame":
        """Our source's frame; of those columns alone where a schema is given."""
        reader = self.spark.read.format("horolog").options(**options)
        return (reader.schema(schema) if schema else reader).load()

    def read_by_connector(self, bootstrap: str, topic: str = CLEAN, **options: str) -> "DataFrame":
        """The frame of Spark's own connector."""
        there = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
        return self.spark.read.format("kafka").options(**there, **options).load()

    def fresh(self, what: str) -> Path:
        """A folder that is not there yet."""
        return self.scratch / f"{what}-{next(self._numbers)}"

    def rate_of(self, seconds: float) -> Mapping[str, float]:
        """All records in so many seconds, as a figure."""
        return {"rate": self.records / seconds / 1000}


@dataclass(frozen=True, slots=True)
class Job:
    """A row of the table: the same work, done by ours and by theirs."""

    name: str
    figures: tuple[Figure, ...]
    ours: Measurement
    theirs: Measurement | None = None
    most_rounds: int = 1000


def thousands(must: float | None = None, aim: float | None = None) -> Figure:
    return rate(THOUSANDS, must, aim)


def seconds(under: float | None = None, name: str = "time") -> Figure:
    return Figure(name, "s", "lower", under=under)
