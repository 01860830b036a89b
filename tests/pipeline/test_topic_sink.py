"""Frames into topics: times, headers, keys and partitions are kept; refusals are told in words."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from pipeline.broker_client import BrokerClient
from pipeline.decode.schemas import HEADERS, RECORDS, records_schema
from pipeline.errors import BadOption, BrokerRefused, NothingThere
from pipeline.sinks.topic import batches
from pipeline.sinks.topic import writer as topic_writer
from pipeline.sinks.topic.columns import outgoing
from pipeline.sinks.topic.writer import TopicWriter
from pipeline.spark.topic_sink import sink_options, write_all
from protocol.records.compression import Codec
from protocol.records.record import iter_records
from tests.support.records.record_walkers import from_source
from tests.support.spark.pipeline_logs import NOON_MS, read_all
from tests.support.spark.pipeline_topics import jumping, leaderless, make_topic, options, produce
from tests.support.worlds.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = ["key", "value", "partition", "timestampMs", "headers"]


@pytest.fixture
def writer(node: NodeProcess) -> Iterator[TopicWriter]:
    made = TopicWriter(node.bootstrap)
    yield made
    made.close()


def kept(node: NodeProcess, topic: str) -> list[dict[str, Any]]:
    return read_all(options(node, topic), KEPT)


def frame(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_copy_has_the_same_times_headers_keys_and_partitions(
    node: NodeProcess, admin: AdminClient, codec: Codec
) -> None:
    source, target = make_topic(admin, 3), make_topic(admin, 3)
    produce(node, source, jumping(250))
    rows = kept(node, source)
    schema = records_schema(headers=True, metadata=True)
    whole = pa.Table.from_pylist(rows, pa.schema([f for f in schema if f.name in KEPT]))
    copier = TopicWriter(node.bootstrap, target, codec)

    for batch in whole.to_batches(max_chunksize=100):
        copier.write(batch)
    copier.close()

    assert copier.written == 250
    assert kept(node, target) == rows


def test_walkers_that_are_not_compiled_write_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a C compiler, or on another processor; the hashes are those of Kafka's own tests."""
    walkers = from_source("encode")
    for name in ("encode_records", "hash_keys", "room_for"):
        monkeypatch.setattr(batches, name, getattr(walkers, name))
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    columns = {
        "key": pa.array([*known, None], pa.binary()),
        "value": pa.array([b"v" * 300, None, b"", b"w"], pa.binary()),
        "timestampMs": pa.array([NOON_MS + at for at in (0, 5, -700, 3)]),
        "headers": pa.array([None, [], [{"key": "h", "value": b"x" * 200}], None], HEADERS),
    }
    records = outgoing(frame(**columns), 0)

    hashes = batches.key_hashes(columns["key"]).tolist()
    (batch,) = batches.batches_of(records, Codec.NONE, 10_000)

    assert hashes == [*(each & 0x7FFFFFFF for each in known.values()), -1]
    found = list(iter_records(memoryview(batch.sealed(1, 0, 0))))
    assert [each.key for each in found] == columns["key"].to_pylist()
    assert [each.value for each in found] == columns["value"].to_pylist()
    assert [each.timestamp for each in found] == columns["timestampMs"].to_pylist()
    assert [len(each.headers) for each in found] == [0, 0, 1, 0]


def test_keys_go_where_kafka_s_own_producers_send_them(
    node: NodeProcess, admin: AdminClient, writer: TopicWriter
) -> None:
    theirs, ours = make_topic(admin, 7), make_topic(admin, 7)
    keys = [f"key-{number}".encode() for number in range(100)]
    producer = Producer({"bootstrap.servers": node.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(theirs, key=key, value=b"v", timestamp=NOON_MS)
    assert not producer.flush(30)

    topic = pa.array([ours] * 100)
    writer.write(frame(key=pa.array(keys), value=pa.array([b"v"] * 100), topic=topic))

    def where(topic: str) -> dict[bytes, int]:
        return {row["key"]: row["partition"] for row in kept(node, topic)}

    assert where(ours) == where(theirs)


def test_records_without_a_key_go_to_all_partitions(node: NodeProcess, admin: AdminClient) -> None:
    """By many writers of little, as the tasks of a query are, and by one of much."""
    little, much = make_topic(admin, 4), make_topic(admin, 4)
    for _ in range(60):
        with closing(TopicWriter(node.bootstrap, little)) as to:
            to.write(frame(value=pa.array([b"v"] * 3)))
    with closing(TopicWriter(node.bootstrap, much)) as to:
        for _ in range(5):
            to.write(frame(value=pa.array([b"v" * 100] * 4000)))

    def counts(topic: str) -> Counter[int]:
        return Counter(row["partition"] for row in kept(node, topic))

    assert sorted(counts(little)) == [0, 1, 2, 3]
    assert max(counts(little).values()) < 120, "of 180"
    assert sorted(counts(much)) == [0, 1, 2, 3]
    assert max(counts(much).values()) < 5500, "of 20,000"


def test_a_partition_without_a_leader_is_tried_again(
    node: NodeProcess, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(admin, 2)
    monkeypatch.setattr(topic_writer, "RETRY_SECONDS", 0.01)
    leaderless(monkeypatch, times=3)
    with closing(TopicWriter(node.bootstrap, topic)) as to:
        to.write(frame(value=pa.array(["a", "b"]), partition=pa.array([0, 1])))
    assert {row["partition"] for row in kept(node, topic)} == {0, 1}

    monkeypatch.setattr(topic_writer, "PATIENCE_SECONDS", 0.05)
    leaderless(monkeypatch, times=10_000)
    told = f"{topic}-0 has no leader"
    with (
        closing(TopicWriter(node.bootstrap, topic)) as to,
        pytest.raises(BrokerRefused, match=told),
    ):
        to.write(frame(value=pa.array(["c"]), partition=pa.array([0])))


def test_records_without_a_key_pass_by_a_partition_without_a_leader(
    node: NodeProcess, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(admin, 3)
    with monkeypatch.context() as patch:
        leaderless(patch, times=10_000, partitions=frozenset({0, 2}))
        with closing(TopicWriter(node.bootstrap, topic)) as to:
            to.write(frame(value=pa.array([b"v" * 1000] * 500)))
    assert {row["partition"] for row in kept(node, topic)} == {1}


def test_a_stamping_topic_of_the_column_is_refused_as_well(
    node: NodeProcess, admin: AdminClient
) -> None:
    plain = make_topic(admin)
    stamped = make_topic(admin, message_timestamp_type="LogAppendTime")
    there = {"kafka.bootstrap.servers": node.bootstrap}
    columns = {
        "value": pa.array(["a", "b"]),
        "topic": pa.array([plain, stamped]),
        "timestampMs": pa.array([NOON_MS] * 2),
    }
    asked = sink_options(there, list(columns))
    with pytest.raises(BadOption, match=f"{stamped} stamps records with their arrival"):
        write_all(asked, iter([frame(**columns)]))
    assert kept(node, plain) == [], "nothing was written before it was noticed"

    write_all(sink_options({**there, "allowLogAppendTime": "true"}, list(columns)),
              iter([frame(**columns)]))  # fmt: skip
    without = {name: column for name, column in columns.items() if name != "timestampMs"}
    write_all(sink_options(there, list(without)), iter([frame(**without)]))
    assert len(kept(node, stamped)) == len(kept(node, plain)) == 2


def test_times_come_from_either_column_and_default_to_now(
    node: NodeProcess, admin: AdminClient
) -> None:
    topic = make_topic(admin)
    to = TopicWriter(node.bootstrap, topic)
    micros = pa.array([1_000_999, None, -1], pa.int64()).view(pa.timestamp("us", "UTC"))
    to.write(frame(value=pa.array(["a", "b", "c"]), timestamp=micros))
    to.write(frame(value=pa.array(["d"]), timestampMs=pa.array([7])))
    to.close()

    times = [row["timestampMs"] for row in kept(node, topic)]

    assert (times[0], times[2], times[3]) == (1000, -1, 7)
    assert times[1] > NOON_MS


def test_a_lost_answer_doubles_nothing(
    node: NodeProcess, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(admin)
    to = TopicWriter(node.bootstrap, topic)
    receive, calls = BrokerClient.receive, iter(range(100))

    def losing(client: BrokerClient, api: Any, version: int, number: int) -> Any:
        answer = receive(client, api, version, number)
        if api.name == "Produce" and next(calls) % 2 == 0:
            raise BrokerRefused("the answer is lost")
        return answer

    monkeypatch.setattr(BrokerClient, "receive", losing)
    for number in range(3):
        to.write(frame(value=pa.array([f"{number}-{index}" for index in range(5)])))
    to.close()

    found = [row["value"].decode() for row in kept(node, topic)]
    assert found == [f"{number}-{index}" for number in range(3) for index in range(5)]


def test_large_frames_become_batches_that_the_broker_takes(
    node: NodeProcess, admin: AdminClient
) -> None:
    topic = make_topic(admin)
    to = TopicWriter(node.bootstrap, topic)
    headers = pa.array([[{"key": "h", "value": b"x" * 100}]] * 5000, HEADERS)
    to.write(frame(value=pa.array([b"v" * 1000] * 5000), headers=headers))
    to.close()

    assert len(kept(node, topic)) == 5000


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_topic_that_takes_small_batches_gets_small_ones(
    node: NodeProcess, admin: AdminClient, codec: Codec
) -> None:
    """As Kafka's producers send them to it; each record once, in its order."""
    topic = make_topic(admin, max_message_bytes="5000")
    dice = random.Random(1)
    rows = [
        {
            "key": b"k", "value": dice.randbytes(dice.randint(0, 900)), "partition": 0,
            "timestampMs": NOON_MS + number,
            "headers": [{"key": "h", "value": b"%d" % number}] if number % 3 else None,
        }
        for number in range(300)
    ]  # fmt: skip
    schema = records_schema(headers=True, metadata=True)
    whole = pa.Table.from_pylist(rows, pa.schema([f for f in schema if f.name in KEPT]))
    with closing(TopicWriter(node.bootstrap, topic, codec)) as to:
        for batch in whole.to_batches(max_chunksize=170):
            to.write(batch)
        assert to.written == 300

    assert [row["value"] for row in kept(node, topic)] == [row["value"] for row in rows]
    assert [row["headers"] for row in kept(node, topic)] == [row["headers"] for row in rows]


def test_a_topic_made_again_with_fewer_partitions_is_told(
    node: NodeProcess, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(admin, 2)
    monkeypatch.setattr(topic_writer, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(topic_writer, "PATIENCE_SECONDS", 0.05)
    with closing(TopicWriter(node.bootstrap, topic)) as to:
        to.write(frame(value=pa.array(["a", "b"]), partition=pa.array([0, 1])))
        send = to._send_all

        def late() -> None:
            monkeypatch.setattr(to._leaders, "of", lambda _: [node.bootstrap])
            send()

        monkeypatch.setattr(to, "_send_all", late)
        with pytest.raises(BrokerRefused, match=f"{topic}-1 has no leader"):
            to.write(frame(value=pa.array(["c"]), partition=pa.array([1])))


def test_refusals_are_told(node: NodeProcess, admin: AdminClient) -> None:
    topic = make_topic(admin, message_timestamp_after_max_ms="1000")
    cases: list[tuple[str, type[Exception], str, dict[str, pa.Array]]] = [
        (topic, BrokerRefused, f"refuses records of {topic}-0: INVALID_TIMESTAMP",
         {"value": pa.array(["a"]), "timestampMs": pa.array([2**62])}),
        (topic, BadOption, "has 1 partitions, and a record asks for 4",
         {"value": pa.array(["a"]), "partition": pa.array([4])}),
        (topic, BrokerRefused, "MESSAGE_TOO_LARGE", {"value": pa.array([b"v" * 2_000_000])}),
        ("nowhere", NothingThere, "'nowhere' is not on", {"value": pa.array(["a"])}),
    ]  # fmt: skip
    for name, kind, told, columns in cases:
        with closing(TopicWriter(node.bootstrap, name)) as to, pytest.raises(kind, match=told):
            to.write(frame(**columns))


def test_options_that_cannot_be_meant(node: NodeProcess, admin: AdminClient) -> None:
    there = {"kafka.bootstrap.servers": node.bootstrap}
    stamped = make_topic(admin, message_timestamp_type="LogAppendTime")
    for given, columns, told in (
        ({**there, "topic": "t"}, ["key"], "needs the column value"),
        (there, ["value"], "option topic or the column topic"),
        ({**there, "topic": "t"}, ["value", "colour"], "colour is no column of a record"),
        ({**there, "topic": "t", "compression": "brotli"}, ["value"], "none of none, gzip"),
        ({**there, "topics": "t"}, ["value"], "there is no option 'topics'"),
        ({"topic": "t"}, ["value"], "kafka.bootstrap.servers is needed"),
        ({**there, "topic": stamped}, ["value", "timestamp"], "stamps records with their arrival"),
    ):
        with pytest.raises(BadOption, match=told):
            sink_options(given, columns)
    sink_options({**there, "topic": stamped, "allowLogAppendTime": "true"}, RECORDS.names)
    sink_options({**there, "topic": stamped}, ["key", "value"])


def test_spark_writes_a_frame_and_a_stream(
    spark: "SparkSession", node: NodeProcess, admin: AdminClient, tmp_path: Path
) -> None:
    source, copy, streamed = (make_topic(admin, 2) for _ in range(3))
    produce(node, source, jumping(60))
    there = options(node, source, includeHeaders="true")
    to = {"kafka.bootstrap.servers": node.bootstrap, "topic": copy}

    frame = spark.read.format("horolog").options(**there).load()
    frame.write.format("horolog").options(**to).mode("append").save()
    query = (
        spark.readStream.format("horolog")
        .options(**there, startingOffsets="earliest")
        .load()
        .writeStream.format("horolog")
        .options(**{**to, "topic": streamed})
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(100)

    def ordered(topic: str) -> list[dict[str, Any]]:
        return sorted(kept(node, topic), key=repr)

    assert ordered(copy) == ordered(streamed) == ordered(source)
