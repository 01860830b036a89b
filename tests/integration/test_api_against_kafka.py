"""The same conversation with a real Kafka and with ours: codes, offsets and times must agree.

Where ours is better on purpose, `DELIBERATE` says so and why. Texts are not compared.
"""

import time
from typing import Any
from uuid import UUID

import pytest

from protocol.apis import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from protocol.records.batch import HEADER_BYTES, iter_headers, seal
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from tests.support.clients.administration_talk import administer
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

DELIBERATE = {
    "produce: wrong magic": "CORRUPT_MESSAGE makes clients try again, INVALID_RECORD does not",
    "produce: not enough replicas": "Kafka 4 takes the number of replicas for the minimum; "
    "who asks for two copies is not told here that there are two",
    "produce: junk in gzip": "Kafka has no name for it; INVALID_RECORD ends the retries",
    "produce: odd offsets in gzip": "same",
    "produce: odd offsets": "a delta out of its order is another record's offset",
    "produce: negative time packed anew": "Kafka fails where it would store the same time unpacked",
    "alter: message.timestamp.after.max.ms=1h": "we know units",
    "alter: check message.timestamp.after.max.ms=1h": "same",
    "alter: operation 9": "Kafka calls it an unexpected error of its own",
    "fetch: as a replica": "Kafka without authorizer serves whoever says to be a replica",
}

TIME_VALUES = {
    "message.timestamp.type": (
        "LogAppendTime",
        "CreateTime",
        "logappendtime",
        "NoTimestampType",
        "",
    ),
    "message.timestamp.before.max.ms": (
        "0",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "",
    ),
    "message.timestamp.after.max.ms": ("0", "-1", "1.5", "1h", " 7 "),
    "retention.ms": ("-1", "-2", "0", "9223372036854775807", "1e3"),
    "segment.ms": ("1", "0", "-1", "0x10"),
    "segment.jitter.ms": ("0", "-1"),
    "max.compaction.lag.ms": ("1", "0", "-1"),
    "min.compaction.lag.ms": ("0", "-1", "2"),
    "delete.retention.ms": ("0", "-1"),
    "file.delete.delay.ms": ("0", "-1"),
    "flush.ms": ("0", "-1"),
    "index.interval.bytes": ("0", "-1", "2147483648"),
    "segment.index.bytes": ("4", "3"),
}
DAY_MS = 86_400_000
DEFAULT = 5  # the source; Kafka names it by the key it came from, such as log.retention.hours
LOADING = 14
SETTLE_SECONDS = 1.0  # Kafka's controller answers before its broker knows


class Talk:
    """A conversation with one broker; `told` is what it said, by step."""

    def __init__(self, bootstrap: str, now_ms: int) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.client = WireClient(host, int(port))
        self.now = now_ms
        self.told: dict[str, Any] = {}
        self.ids: dict[str, UUID] = {}

    def call(self, request: Any, version: int) -> Any:
        return self.client.call(request, version)

    # -- topics

    def create(self, step: str, name: str, *, version: int = 7, **how: Any) -> None:
        configs = how.pop("configs", {})
        assigned = how.pop("assigned", [])
        validate_only = how.pop("validate_only", False)
        fields = {"num_partitions": 1, "replication_factor": 1, **how}
        topic = create_topics.CreatableTopic(
            name=name,
            configs=[
                create_topics.CreatableTopicConfig(name=key, value=value)
                for key, value in configs.items()
            ],
            assignments=[
                create_topics.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                for index, brokers in assigned
            ],
            **fields,
        )
        request = create_topics.CreateTopicsRequest(
            topics=[topic], validate_only=validate_only, timeout_ms=10_000
        )
        (result,) = self.call(request, version).topics
        self.ids[name] = result.topic_id
        self.told[f"create: {step}"] = (
            result.error_code,
            result.num_partitions,
            result.replication_factor,
        )
        if not result.error_code and not validate_only:
            self._wait_for(name)

    def _wait_for(self, name: str) -> None:
        """Kafka answers before the topic can be used."""
        query = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
        asked = list_offsets.ListOffsetsTopic(name=name, partitions=[query])
        request = list_offsets.ListOffsetsRequest(replica_id=-1, topics=[asked])
        while self.call(request, 5).topics[0].partitions[0].error_code:
            time.sleep(0.05)

    # -- records

    def produce(
        self,
        step: str,
        records: Any,
        *,
        topic: str = "t",
        index: int = 0,
        version: int = 9,
        **how: Any,
    ) -> None:
        data = produce.PartitionProduceData(index=index, records=records)
        topic_id = self.ids.get(topic, UUID(int=9))
        topics = [produce.TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])]
        request = produce.ProduceRequest(
            acks=how.pop("acks", -1), timeout_ms=5000, topic_data=topics, **how
        )
        (answer,) = self.call(request, version).responses[0].partition_responses
        self.told[f"produce: {step}"] = (
            answer.error_code,
            answer.base_offset,
            answer.log_append_time_ms,
            None if answer.error_code and not answer.record_errors else answer.log_start_offset,
            [each.batch_index for each in answer.record_errors],
        )

    def fetch(
        self,
        step: str,
        offset: int,
        *,
        topic: str = "t",
        index: int = 0,
        version: int = 11,
        **how: Any,
    ) -> None:
        wanted = fetch.FetchPartition(
            partition=index,
            fetch_offset=offset,
            partition_max_bytes=how.pop("partition_max_bytes", 1 << 20),
            current_leader_epoch=how.pop("epoch", -1),
        )
        topic_id = self.ids.get(topic, UUID(int=9))
        topics = [fetch.FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])]
        request = fetch.FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics, **how)
        response = self.call(request, version)
        self.told[f"fetch: {step}"] = (
            response.error_code,
            [
                (
                    each.error_code,
                    each.high_watermark,
                    each.last_stable_offset,
                    each.log_start_offset,
                    None if each.error_code else each.aborted_transactions,
                    [h.base_offset for _, h in iter_headers(memoryview(each.records or b""))],
                )
                for answer in response.responses
                for each in answer.partitions
            ],
        )

    def offsets(
        self, step: str, timestamp: int, *, topic: str = "t", version: int = 11, **how: Any
    ) -> None:
        query = list_offsets.ListOffsetsPartition(
            partition_index=how.pop("index", 0),
            timestamp=timestamp,
            current_leader_epoch=how.pop("epoch", -1),
        )
        asked = list_offsets.ListOffsetsTopic(name=topic, partitions=[query] * how.pop("times", 1))
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1, topics=[asked], timeout_ms=1000, **how
        )
        answers = self.call(request, version).topics[0].partitions
        self.told[f"offsets: {step}"] = [
            (each.error_code, each.timestamp, each.offset, each.leader_epoch) for each in answers
        ]


def batch(talk: Talk, *ages_ms: int, **how: Any) -> bytearray:
    """One record for each age."""
    return build_batch([(talk.now - age, b"k", b"v" * 50) for age in ages_ms], **how)


def converse(talk: Talk) -> None:
    """Every step of the conversation."""
    for part in (_topics, _produce, _idempotence, _fetch, _times, _partitions, _configs, _rest):
        part(talk)
    administer(talk.client, talk.told, "t")


def _topics(talk: Talk) -> None:
    talk.create("plain", "t")
    for version in range(2, 8):
        talk.create(f"v{version}", f"v{version}", version=version)
    talk.create("again", "t")
    talk.create("three partitions", "three", num_partitions=3)
    talk.create("defaults", "defaults", num_partitions=-1, replication_factor=-1)
    talk.create("collides", "v2.x")
    talk.create("collides really", "v2_x")
    for bad in ("", ".", "..", "a/b", "a" * 250, "ü"):
        talk.create(f"name {bad!r:.20}", bad)
    talk.create("no partitions", "x", num_partitions=0)
    talk.create("negative partitions", "x", num_partitions=-2)
    talk.create("no replicas", "x", replication_factor=0)
    talk.create("negative replicas", "x", replication_factor=-2)
    talk.create("three replicas", "x", replication_factor=3)
    talk.create("assigned and counted", "x", assigned=[(0, [1])])
    own = {"num_partitions": -1, "replication_factor": -1}
    talk.create("assigned", "assigned", assigned=[(0, [1]), (1, [1])], **own)
    talk.create("assigned with a gap", "x", assigned=[(1, [1])], **own)
    talk.create("assigned to nobody", "x", assigned=[(0, [])], **own)
    talk.create("assigned to a stranger", "x", assigned=[(0, [77])], **own)
    talk.create("assigned twice", "x", assigned=[(0, [1, 1])], **own)
    talk.create("unknown setting", "x", configs={"no.such.key": "1"})
    talk.create("bad value", "x", configs={"retention.ms": "soon"})
    talk.create("out of bounds", "x", configs={"segment.bytes": "1"})
    talk.create("null value", "x", configs={"retention.ms": None})
    talk.create("validate", "never", validate_only=True)
    twice = create_topics.CreatableTopic(name="twice", num_partitions=1, replication_factor=1)
    response = talk.call(create_topics.CreateTopicsRequest(topics=[twice, twice]), 7)
    talk.told["create: twice"] = [(each.name, each.error_code) for each in response.topics]
    names = [metadata.MetadataRequestTopic(name=name) for name in ("t", "nope", "a/b")]
    response = talk.call(metadata.MetadataRequest(topics=names, allow_auto_topic_creation=False), 9)
    talk.told["metadata"] = sorted(
        (each.name, each.error_code, len(each.partitions)) for each in response.topics
    )
    by_id = [metadata.MetadataRequestTopic(topic_id=UUID(int=4))]
    response = talk.call(metadata.MetadataRequest(topics=by_id), 12)
    talk.told["metadata: unknown id"] = [
        (each.name, each.topic_id, each.error_code) for each in response.topics
    ]


def _produce(talk: Talk) -> None:
    for version in range(3, 14):
        talk.produce(f"v{version}", batch(talk, 0, 0), version=version, topic="t")
    for codec in Codec:
        talk.produce(f"codec {codec}", batch(talk, 0, 0, codec=codec))
    talk.produce("zstd too early", batch(talk, 0, codec=Codec.ZSTD), version=6)
    for acks in (2, -2):
        talk.produce(f"acks {acks}", batch(talk, 0), acks=acks)
    talk.produce("unknown topic", batch(talk, 0), topic="nope")
    talk.produce("unknown partition", batch(talk, 0), index=5)
    talk.produce("unknown id", batch(talk, 0), topic="nope", version=13)
    good = bytes(batch(talk, 0))
    talk.produce("bad checksum", good[:-1] + b"\xff")
    talk.produce("cut short", good[:-1])
    talk.produce("two batches", good + good)
    talk.produce("nothing", b"")
    talk.produce("wrong magic", good[:16] + b"\x03" + good[17:])
    talk.produce("control", batch(talk, 0, control=True))
    talk.produce("offsets with gaps", batch(talk, 0, 0, offset_deltas=[0, 5]))
    talk.produce("base offset 7", batch(talk, 0, base_offset=7))
    talk.produce("future", batch(talk, 0, -DAY_MS, 0, -2 * DAY_MS))
    talk.produce("old", batch(talk, 9000 * DAY_MS))
    junk = build_batch([(talk.now, b"k", b"v" * 50)], codec=Codec.GZIP)
    junk[HEADER_BYTES:] = b"j" * (len(junk) - HEADER_BYTES)
    seal(junk, 0, len(junk))
    talk.produce("junk in gzip", junk)
    talk.produce("odd offsets in gzip", batch(talk, 0, 0, codec=Codec.GZIP, offset_deltas=[1, 0]))
    talk.create("odd", "odd")  # what only one of both stores lies where nobody looks
    talk.produce("odd offsets", batch(talk, 0, 0, offset_deltas=[1, 0]), topic="odd")
    talk.create("packs", "packs", configs={"compression.type": "lz4"})
    talk.produce("negative time packed anew", build_batch([(-2, b"k", b"v")]), topic="packs")
    talk.produce("negative time", build_batch([(-2, b"k", b"v")]), topic="defaults")
    talk.create("append time", "lat", configs={"message.timestamp.type": "LogAppendTime"})
    talk.create("compacted", "comp", configs={"cleanup.policy": "compact"})
    keyless = build_batch([(talk.now, None, b"v"), (talk.now, b"k", b"v"), (talk.now, None, b"")])
    talk.produce("keyless on compacted", keyless, topic="comp")
    talk.create("small", "small", configs={"max.message.bytes": "100"})
    talk.produce("too large", batch(talk, 0, 0), topic="small")
    talk.create("two in sync", "isr", configs={"min.insync.replicas": "2"})
    talk.produce("enough for acks 1", batch(talk, 0), topic="isr", acks=1)
    talk.produce("not enough replicas", batch(talk, 0), topic="isr")


def _idempotence(talk: Talk) -> None:
    def write(
        step: str, sequence: int, *, epoch: int = 0, producer: int = 4000, n: int = 1
    ) -> None:
        records = batch(
            talk, *[0] * n, producer_id=producer, producer_epoch=epoch, base_sequence=sequence
        )
        talk.produce(f"idempotent {step}", records, topic="v3")

    write("first", 0)
    write("again", 0)
    write("next", 1, n=3)
    write("gap", 9)
    write("next again", 1, n=3)
    for sequence in range(4, 10):
        write(f"go on {sequence}", sequence)
    write("older than five", 1, n=3)
    write("new epoch in the middle", 5, epoch=1)
    write("new epoch", 0, epoch=1)
    write("old epoch", 10, epoch=0)
    write("unknown producer in the middle", 17, producer=4001)
    talk.produce(
        "id without sequence", batch(talk, 0, producer_id=4002, producer_epoch=0), topic="v3"
    )


def _fetch(talk: Talk) -> None:
    for version in range(4, 19):
        talk.fetch(f"v{version}", 3, version=version)
    talk.fetch("end", 32)
    for offset in (999, -1, -7):
        talk.fetch(f"offset {offset}", offset)
    talk.fetch("one byte", 0, partition_max_bytes=1)
    talk.fetch("one byte in all", 0, max_bytes=1)
    talk.fetch("two batches", 0, partition_max_bytes=350)
    talk.fetch("committed", 0, isolation_level=1)
    talk.fetch("unknown topic", 0, topic="nope")
    talk.fetch("unknown id", 0, topic="nope", version=13)
    talk.fetch("unknown partition", 0, index=3)
    talk.fetch("newer epoch", 0, epoch=99)
    talk.fetch("as a replica", 0, replica_id=1)
    talk.fetch("unknown session", 0, session_id=77, session_epoch=4)
    first = _session(talk, 0, 0, 32)
    quiet = _session(talk, first.session_id, 1)
    wrong = _session(talk, first.session_id, 9)
    talk.told["fetch: session"] = [
        (each.error_code, each.session_id == first.session_id, len(each.responses))
        for each in (first, quiet, wrong)
    ]


def _session(talk: Talk, session_id: int, epoch: int, *offsets: int) -> Any:
    partitions = [
        fetch.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
        for offset in offsets
    ]
    request = fetch.FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=[fetch.FetchTopic(topic="t", partitions=partitions)] if partitions else [],
    )
    return talk.call(request, 11)


def _times(talk: Talk) -> None:
    talk.create("times", "times")
    for ages in ((500, 400), (900, 100), (300, 300), (600, 50)):
        talk.produce(f"times {ages}", batch(talk, *ages), topic="times", acks=1)
    for age in (10_000, 900, 501, 500, 450, 400, 399, 300, 101, 100, 99, 50, 49, 0, -5):
        talk.offsets(f"age {age}", talk.now - age, topic="times")
    for timestamp in range(-7, 0):
        for version in range(1, 12):
            talk.offsets(
                f"special {timestamp} v{version}", timestamp, topic="times", version=version
            )
    talk.offsets("committed", -1, topic="times", isolation_level=1)
    talk.offsets("unknown topic", -1, topic="nope")
    talk.offsets("unknown partition", -1, index=9)
    talk.offsets("newer epoch", -1, topic="times", epoch=99)
    talk.offsets("twice", -1, topic="times", times=2)
    for timestamp in (-1, -2, -3, 0):
        talk.offsets(f"empty {timestamp}", timestamp, topic="v7")


def _partitions(talk: Talk) -> None:
    def grow(step: str, name: str, count: int, assigned: Any = None, **how: Any) -> None:
        topic = create_partitions.CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=assigned
            and [
                create_partitions.CreatePartitionsAssignment(broker_ids=each) for each in assigned
            ],
        )
        request = create_partitions.CreatePartitionsRequest(
            topics=[topic], timeout_ms=10_000, **how
        )
        talk.told[f"grow: {step}"] = talk.call(request, 3).results[0].error_code

    grow("to four", "three", 4)
    grow("same", "three", 4)
    grow("fewer", "three", 2)
    grow("none", "three", 0)
    grow("unknown", "nope", 4)
    grow("too few assigned", "three", 6, [[1]])
    grow("assigned to a stranger", "three", 5, [[77]])
    grow("validate", "three", 5, validate_only=True)
    grow("assigned", "three", 5, [[1]])

    time.sleep(SETTLE_SECONDS)

    def page(step: str, limit: int, *names: str, cursor: Any = None) -> None:
        request = describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor
            and describe_topic_partitions.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        response = talk.call(request, 0)
        after = response.next_cursor
        talk.told[f"page: {step}"] = (
            [
                (topic.name, topic.error_code, [each.partition_index for each in topic.partitions])
                for topic in response.topics
            ],
            after and (after.topic_name, after.partition_index),
        )

    page("all of one", 100, "three")
    page("two of one", 2, "three")
    page("from the third", 2, "three", cursor=("three", 2))
    page("over topics", 3, "assigned", "three", "t")
    page("exactly one topic", 2, "assigned", "three")
    page("unknown", 100, "nope", "t")
    page("cursor on a topic not asked for", 100, "assigned", "three", cursor=("b", 0))


def _configs(talk: Talk) -> None:
    def step_by_step(
        step: str,
        name: str,
        key: str,
        change: tuple[int, Any],
        *,
        kind: int = 2,
        only_check: bool = False,
    ) -> None:
        operation, value = change
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                incremental_alter_configs.AlterableConfig(
                    name=key, config_operation=operation, value=value
                )
            ],
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[resource], validate_only=only_check
        )
        talk.told[f"alter: {step}"] = talk.call(request, 1).responses[0].error_code

    step_by_step("set", "t", "retention.ms", (0, "99999999"))
    step_by_step("bad", "t", "retention.ms", (0, "soon"))
    step_by_step("unknown key", "t", "no.such.key", (0, "1"))
    step_by_step("append to a number", "t", "retention.ms", (2, "1"))
    step_by_step("append", "t", "cleanup.policy", (2, "compact"))
    step_by_step("subtract", "t", "cleanup.policy", (3, "compact"))
    step_by_step("null", "t", "retention.ms", (0, None))
    step_by_step("operation 9", "t", "retention.ms", (9, "1"))
    step_by_step("unknown topic", "nope", "retention.ms", (0, "1"))
    step_by_step("bad topic", "a/b", "retention.ms", (0, "1"))
    step_by_step("unknown broker", "77", "log.retention.ms", (0, "1"), kind=4)
    step_by_step("broker", "1", "log.retention.ms", (0, "88888888"), kind=4)
    step_by_step("all brokers", "", "log.retention.bytes", (0, "77777777"), kind=4)
    step_by_step("fixed broker key", "1", "node.id", (0, "4"), kind=4)
    step_by_step("strange kind", "t", "retention.ms", (0, "1"), kind=99)

    for key, values in TIME_VALUES.items():
        for value in values:
            step_by_step(f"check {key}={value}", "v3", key, (0, value), only_check=True)
            step_by_step(f"{key}={value}", "v3", key, (0, value))

    def replace(step: str, name: str, values: dict[str, Any], kind: int = 2) -> None:
        resource = alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                alter_configs.AlterableConfig(name=key, value=value)
                for key, value in values.items()
            ],
        )
        request = alter_configs.AlterConfigsRequest(resources=[resource])
        talk.told[f"replace: {step}"] = talk.call(request, 2).responses[0].error_code

    replace("topic", "v4", {"retention.bytes": "5"})
    replace("other key", "v4", {"segment.ms": "600000"})
    replace("bad", "v4", {"segment.ms": "x"})
    replace("unknown", "nope", {"segment.ms": "600000"})

    time.sleep(SETTLE_SECONDS)

    def describe(step: str, name: str, *keys: str, kind: int = 2, version: int = 4) -> None:
        resource = describe_configs.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
        )
        request = describe_configs.DescribeConfigsRequest(
            resources=[resource], include_synonyms=True
        )
        (result,) = talk.call(request, version).results
        talk.told[f"describe: {step}"] = (
            result.error_code,
            sorted(
                (
                    each.name,
                    each.value,
                    each.config_source,
                    each.read_only,
                    each.config_type,
                    [(one.name, one.value) for one in each.synonyms if one.source != DEFAULT],
                )
                for each in result.configs
                if each.name != "min.insync.replicas"  # Kafka's controller sets it by itself
            ),
        )

    keys = ("retention.ms", "retention.bytes", "segment.bytes", "cleanup.policy", "segment.ms")
    describe("altered", "t", *keys)
    describe("replaced", "v4", *keys)
    describe("times", "v3", *TIME_VALUES)
    describe("plain", "v5", *keys, "max.message.bytes", "message.timestamp.type")
    describe("unknown key", "t", "no.such.key")
    describe("unknown topic", "nope")
    describe("bad topic", "a/b")
    describe("unknown broker", "77", kind=4)
    describe("broker", "1", "log.retention.ms", "log.retention.bytes", kind=4)
    describe("all brokers", "", kind=4)
    describe("strange kind", "t", kind=99)


def _rest(talk: Talk) -> None:
    def trim(step: str, topic: str, offset: int, index: int = 0) -> None:
        partition = delete_records.DeleteRecordsPartition(partition_index=index, offset=offset)
        request = delete_records.DeleteRecordsRequest(
            topics=[delete_records.DeleteRecordsTopic(name=topic, partitions=[partition])],
            timeout_ms=10_000,
        )
        (answer,) = talk.call(request, 2).topics[0].partitions
        talk.told[f"trim: {step}"] = (answer.error_code, answer.low_watermark)

    trim("to five", "times", 5)
    trim("back", "times", 2)
    trim("too far", "times", 99)
    trim("negative", "times", -2)
    trim("unknown", "nope", 0)
    trim("compacted", "comp", 0)
    for age in (900, 300, 50):
        talk.offsets(f"after trim {age}", talk.now - age, topic="times")
    talk.offsets("earliest after trim", -2, topic="times")
    talk.fetch("before the start", 2, topic="times")
    trim("to the end", "times", -1)

    def epoch(step: str, topic: str, wanted: int, current: int = -1) -> None:
        query = offset_for_leader_epoch.OffsetForLeaderPartition(
            partition=0, leader_epoch=wanted, current_leader_epoch=current
        )
        asked = offset_for_leader_epoch.OffsetForLeaderTopic(topic=topic, partitions=[query])
        request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=[asked])
        (answer,) = talk.call(request, 4).topics[0].partitions
        talk.told[f"epoch: {step}"] = (
            answer.error_code,
            answer.leader_epoch,
            answer.end_offset,
        )

    epoch("present", "t", 0)
    epoch("future", "t", 5)
    epoch("empty", "v7", 0)
    epoch("newer than ours", "t", 0, 99)
    epoch("unknown topic", "nope", 0)
    for step, fields in {
        "plain": {},
        "half": {"producer_id": 5},
        "known": {"producer_id": 5, "producer_epoch": 2},
        "empty transactional id": {"transactional_id": ""},
    }.items():
        request = init_producer_id.InitProducerIdRequest(transaction_timeout_ms=1000, **fields)
        while (answer := talk.call(request, 4)).error_code == LOADING:
            time.sleep(0.05)
        talk.told[f"producer id: {step}"] = (
            answer.error_code,
            answer.producer_id >= 0,
            answer.producer_epoch,
        )
    request = find_coordinator.FindCoordinatorRequest(key_type=9, coordinator_keys=["g"])
    answer = talk.call(request, 4).coordinators[0]
    talk.told["coordinator: strange kind"] = (answer.error_code, answer.node_id)

    def drop(step: str, *wanted: Any) -> None:
        states = [delete_topics.DeleteTopicState(**each) for each in wanted]
        request = delete_topics.DeleteTopicsRequest(topics=states, timeout_ms=10_000)
        talk.told[f"drop: {step}"] = sorted(
            (each.name or "", each.error_code) for each in talk.call(request, 6).responses
        )

    drop("by name", {"name": "v6"})
    drop("again", {"name": "v6"})
    drop("by id", {"topic_id": talk.ids["v7"]})
    drop("unknown id", {"topic_id": UUID(int=8)})
    drop("twice", {"name": "v5"}, {"name": "v5"})
    drop("neither", {})
    drop("both", {"name": "v5", "topic_id": talk.ids["t"]})


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> tuple[Talk, Talk]:
    if not available():
        pytest.skip("a real Kafka needs java and mvn")
    root = tmp_path_factory.mktemp("against")
    now = int(time.time() * 1000)
    with start_kafka(root / "kafka") as kafka, start_broker(root / "ours") as ours:
        talks = []
        for node in (kafka, ours):
            talks.append(Talk(node.bootstrap, now))
            converse(talks[-1])
            talks[-1].client.close()
        theirs, own = talks
    return theirs, own


def test_both_say_the_same(conversations: tuple[Talk, Talk]) -> None:
    kafka, ours = conversations
    differ = {
        step: {"kafka": told, "ours": ours.told.get(step)}
        for step, told in kafka.told.items()
        if step not in DELIBERATE and ours.told.get(step) != told
    }
    assert not differ
    assert kafka.told.keys() == ours.told.keys()
