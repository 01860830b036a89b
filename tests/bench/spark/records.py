"""The records that Spark's cells read: ten million of 190 bytes, over 72 hours, some of 2035.

They are written by our own sink, into our broker and into Kafka alike, in batches of 70 records, as
producers make them by default.
"""

import time
from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline.sinks.topic.writer import TopicWriter

CLEAN, DIRTY, COPY = "clean", "dirty", "copy"
PARTITIONS = 4
SEGMENT_BYTES = 128 << 20
FRAME_ROWS = 100_000
BATCH_BYTES = 13_300
HOURS = 72
HOUR_MS = 3_600_000
BEGIN_MS = 1_700_000_000_000
HOUR_FROM_MS = BEGIN_MS + HOURS // 2 * HOUR_MS
"""The hour that is asked for, in the middle."""
DIRTY_MS = 2_051_222_400_000
DIRTY_SHARE = 0.03


def frames(records: int, *, dirty: bool) -> Iterator[pa.RecordBatch]:
    """Records up to 5 s from their place; of the dirty ones, 3 % of 2035."""
    dice = np.random.default_rng(5)
    text = "x" * 137
    values = pa.array([
        f'{{"sensor":"s{n % 10007:05d}","value":{n * 0.37:.6f},"text":"{text[n % 60:]}"}}'
        for n in range(FRAME_ROWS)
    ]).cast(pa.binary())  # fmt: skip
    for first in range(0, records, FRAME_ROWS):
        number = np.arange(first, min(first + FRAME_ROWS, records))
        times = BEGIN_MS + number * (HOURS * HOUR_MS) // records
        times += dice.integers(-5000, 5001, len(number))
        if dirty:
            times = np.where(dice.random(len(number)) < DIRTY_SHARE, DIRTY_MS, times)
        keys = pa.array([f"key-{each:012d}" for each in number % 999_983]).cast(pa.binary())
        columns = [keys, values.slice(0, len(number)), pa.array(times)]
        yield pa.RecordBatch.from_arrays(columns, ["key", "value", "timestampMs"])


def make_topic(bootstrap: str, topic: str) -> None:
    """An empty topic."""
    made = NewTopic(topic, PARTITIONS, 1, config={"segment.bytes": str(SEGMENT_BYTES)})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([made])[topic].result(60)


def fill(bootstrap: str, topic: str, records: int, *, dirty: bool) -> float:
    """Make and fill a topic; seconds that the writing alone took."""
    make_topic(bootstrap, topic)
    writer, seconds = TopicWriter(bootstrap, topic, acks=1, batch_bytes=BATCH_BYTES), 0.0
    for frame in frames(records, dirty=dirty):
        began = time.perf_counter()
        writer.write(frame)
        seconds += time.perf_counter() - began
    writer.close()
    return seconds


@cache
def in_the_hour(records: int, *, dirty: bool) -> int:
    """How many records lie in the hour, by looking at each."""
    count = 0
    for frame in frames(records, dirty=dirty):
        times = frame["timestampMs"].to_numpy()
        count += int(((times >= HOUR_FROM_MS) & (times < HOUR_FROM_MS + HOUR_MS)).sum())
    return count
