"""A frame that Spark holds in memory, written into a topic: ours keeps the record times."""

import time
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from tests.bench.spark.records import COPY
from tests.bench.spark.scene import Job, Scene, thousands

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@cache
def held(scene: Scene) -> "DataFrame":
    """All records, read once."""
    frame = scene.read_ours(scene.source()).selectExpr("key", "value", "timestamp").persist()
    frame.count()
    return frame


def ours(scene: Scene) -> Mapping[str, float]:
    """With times, into our broker."""
    frame = held(scene)
    to = {"kafka.bootstrap.servers": scene.ours, "topic": COPY}
    began = time.perf_counter()
    frame.write.format("horolog").options(**to).mode("append").save()
    return scene.rate_of(time.perf_counter() - began)


def theirs(scene: Scene) -> Mapping[str, float]:
    """The connector drops times; into Kafka."""
    frame = held(scene).select("key", "value")
    to = {"kafka.bootstrap.servers": scene.kafka, "topic": COPY}
    began = time.perf_counter()
    frame.write.format("kafka").options(**to).save()
    return scene.rate_of(time.perf_counter() - began)


JOBS = (Job("write, ours with record times", (thousands(1, 1.7),), ours, theirs, 2),)
