"""Everything read: all columns, two columns; and one hour of 72, where times are clean and not."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pipeline.sources.options import parse
from pipeline.sources.planning import plan_tasks
from tests.bench.cell import Figure
from tests.bench.spark.records import CLEAN, DIRTY, HOUR_FROM_MS, HOUR_MS, in_the_hour
from tests.bench.spark.scene import Job, Scene, seconds, thousands
from tests.bench.wire import BenchFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TWO = "offset long, timestamp timestamp"
HOUR = {
    "startingTimestamp": str(HOUR_FROM_MS),
    "endingTimestamp": str(HOUR_FROM_MS + HOUR_MS),
}
Frame = Callable[[Scene], "DataFrame"]


def drained(frame: Frame, scene: Scene) -> Mapping[str, float]:
    """Bring every row to the end of a query, and drop it there."""
    began = time.perf_counter()
    frame(scene).write.format("noop").mode("overwrite").save()
    return scene.rate_of(time.perf_counter() - began)


def summed(frame: Frame, scene: Scene) -> Mapping[str, float]:
    """Look at two columns of every row."""
    began = time.perf_counter()
    answers = ("min(offset)", "max(timestamp)", "count(timestamp)")
    row = frame(scene).selectExpr(*answers).collect()[0]
    taken = time.perf_counter() - began
    if row[2] != scene.records:
        raise BenchFailed(f"{row[2]} of {scene.records} records were read")
    return scene.rate_of(taken)


def hour_by_ours(topic: str, scene: Scene) -> Mapping[str, float]:
    """Count the hour's records, which must be exact; of the topic's bytes, the planned share."""
    began = time.perf_counter()
    count = scene.read_ours(scene.source(topic, **HOUR), TWO).count()
    taken = time.perf_counter() - began
    exact = in_the_hour(scene.records, dirty=topic == DIRTY)
    if count != exact:
        raise BenchFailed(f"{count} records in the hour, not {exact}")
    share = planned_bytes(scene.source(topic, **HOUR)) / planned_bytes(scene.source(topic))
    return {"time": taken, "touched": 100 * share, "off by": 0}


def hour_by_connector(topic: str, scene: Scene) -> Mapping[str, float]:
    """What its own bounds by time give, and by how much that is wrong."""
    began = time.perf_counter()
    count = scene.read_by_connector(scene.kafka, topic, **HOUR).count()
    taken = time.perf_counter() - began
    return {
        "time": taken,
        "off by": abs(count - in_the_hour(scene.records, dirty=topic == DIRTY)),
    }


def planned_bytes(options: Mapping[str, str]) -> int:
    """How much of the log a query would read."""
    return sum(chunk.size_bytes for task in plan_tasks(parse(dict(options))) for chunk in task)


def all_by_ours(mode: str, scene: Scene) -> "DataFrame":
    return scene.read_ours(scene.source(mode=mode))


def two_by_ours(mode: str, scene: Scene) -> "DataFrame":
    return scene.read_ours(scene.source(mode=mode), TWO)


def from_kafka(scene: Scene) -> "DataFrame":
    return scene.read_by_connector(scene.kafka)


def from_horolog(scene: Scene) -> "DataFrame":
    return scene.read_by_connector(scene.ours)


def hour(topic: str) -> Job:
    """An exact answer is promised; theirs is what a range of offsets gives."""
    figures = (
        seconds(under=1.5),
        Figure("touched", "%", "lower", under=2),
        Figure("off by", "records", "lower", under=0),
    )
    return Job(
        f"one hour of 72, {topic}", figures,
        partial(hour_by_ours, topic), partial(hour_by_connector, topic),
    )  # fmt: skip


def read(name: str, work: Callable[[Frame, Scene], Mapping[str, float]], ours: Frame,
         must: float | None = None, aim: float | None = None) -> Job:  # fmt: skip
    """The connector that reads from Kafka is theirs in all of them."""
    return Job(name, (thousands(must, aim),), partial(work, ours), partial(work, from_kafka))


JOBS = (
    read("all columns, files", drained, partial(all_by_ours, "files"), 1.5, 3),
    read("all columns, wire", drained, partial(all_by_ours, "wire")),
    read("offset and timestamp, files", summed, partial(two_by_ours, "files"), 4, 6.5),
    read("offset and timestamp, wire", summed, partial(two_by_ours, "wire")),
    read("all columns, connector on ours", drained, from_horolog, 0.8, 1.2),
    read("offset and timestamp, connector on ours", summed, from_horolog),
    hour(CLEAN),
    hour(DIRTY),
)
