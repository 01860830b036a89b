"""Spark's face of the topic sink: `df.write.format("horolog")`, and the same for streams.

Options: `kafka.bootstrap.servers` and those of security as the source has them, `topic`,
`compression` (none, gzip, snappy, lz4, zstd), and `allowLogAppendTime`. A topic that stamps records
with their arrival would lose the times of the frame; it is refused unless that is said to be right.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from broker.access.settings import IN_THE_CLEAR, ClientSecurity
from pipeline.errors import BadOption
from pipeline.sinks.topic.columns import check_columns
from pipeline.sinks.topic.times import refuse_stamping
from pipeline.sinks.topic.writer import TopicWriter
from pipeline.sources.options import security_in
from protocol.records.compression import Codec

_KNOWN = ("bootstrap", "topic", "compression", "allowlogappendtime", "checkpointlocation")


@dataclass
class Written(WriterCommitMessage):
    """Number of records that a task has written."""

    records: int


@dataclass(frozen=True)
class SinkOptions:
    """Target of the sink, and its compression."""

    bootstrap: str
    topic: str
    codec: Codec
    security: ClientSecurity = IN_THE_CLEAR
    keeps_times: bool = False
    """Topics, which the records name, are checked before they are written."""


def sink_options(options: Mapping[str, str], columns: list[str]) -> SinkOptions:
    """Check the options and the frame. BadOption, BrokerRefused."""
    given = {name.lower(): value for name, value in options.items()}
    given.setdefault("bootstrap", given.get("kafka.bootstrap.servers", ""))
    for name in given:
        if name not in _KNOWN and not name.startswith("kafka."):
            raise BadOption(f"there is no option {name!r}; options: {', '.join(_KNOWN)}")
    if not given["bootstrap"]:
        raise BadOption("kafka.bootstrap.servers is needed: where the records go")
    codec = given.get("compression", "none").upper()
    if codec not in Codec.__members__:
        names = ", ".join(each.name.lower() for each in Codec)
        raise BadOption(f"compression={codec.lower()!r} is none of {names}")
    made = SinkOptions(given["bootstrap"], given.get("topic", ""), Codec[codec], security_in(given))
    check_columns(columns, has_topic=bool(made.topic))
    keeps = {"timestamp", "timestampMs"} & set(columns)
    if not keeps or given.get("allowlogappendtime", "false").lower() == "true":
        return made
    if made.topic:
        refuse_stamping(made.bootstrap, made.topic, made.security)
        return made
    return replace(made, keeps_times=True)


class TopicSink(DataSourceArrowWriter):
    """A batch write."""

    def __init__(self, options: SinkOptions) -> None:
        """Nothing is open."""
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """On an executor: every record is acknowledged when it returns."""
        return write_all(self.options, iterator)


class TopicStreamSink(DataSourceStreamArrowWriter):
    """The write of a stream's batches; one that is run again is written again."""

    def __init__(self, options: SinkOptions) -> None:
        """Nothing is open."""
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """As of a batch."""
        return write_all(self.options, iterator)


def write_all(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    """Write the batches of one task."""
    writer = TopicWriter(
        options.bootstrap,
        options.topic,
        options.codec,
        keeps_times=options.keeps_times,
        security=options.security,
    )
    try:
        for batch in batches:
            writer.write(batch)
    finally:
        writer.close()
    return Written(writer.written)
