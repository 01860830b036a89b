"""An archive as people write it without Spark: confluent-kafka in a loop, pyarrow by date."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from confluent_kafka import Consumer, Message, TopicPartition

AT_ONCE = 10_000
ROWS_A_GROUP = 128 * 1024
PATIENCE_SECONDS = 30
SCHEMA = pa.schema({
    "partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("ms", "UTC"),
    "key": pa.binary(), "value": pa.binary(),
})  # fmt: skip


def archive_by_hand(bootstrap: str, topic: str, records: int, out: Path) -> None:
    """Read so many records from the beginning of a topic and write a file for each date."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "by-hand"})
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
    writers: dict[str, pq.ParquetWriter] = {}
    waiting: list[Message] = []
    left = records
    while left:
        got = consumer.consume(AT_ONCE, PATIENCE_SECONDS)
        if not got:
            break
        left -= len(got)
        waiting += got
        if len(waiting) >= ROWS_A_GROUP or not left:
            write(waiting, topic, out, writers)
            waiting = []
    consumer.close()
    for writer in writers.values():
        writer.close()


def write(
    messages: list[Message], topic: str, out: Path, writers: dict[str, pq.ParquetWriter]
) -> None:
    """Each message to the file of its date."""
    table = pa.table(
        [
            [message.partition() for message in messages],
            [message.offset() for message in messages],
            [message.timestamp()[1] for message in messages],
            [message.key() for message in messages],
            [message.value() for message in messages],
        ],
        schema=SCHEMA,
    )
    dates = pc.strftime(table["timestamp"], "%Y-%m-%d")
    for date in pc.unique(dates).to_pylist():
        if date not in writers:
            folder = out / f"topic={topic}" / f"event_date={date}"
            folder.mkdir(parents=True)
            writers[date] = pq.ParquetWriter(folder / "all.parquet", SCHEMA, compression="zstd")
        writers[date].write_table(table.filter(pc.equal(dates, date)))
