"""Topics of every kind on one node, and everything that can be read back from them.

For the tests that take a node's directory elsewhere: to Kafka's dump tool, to another broker.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.conformance.conftest import create_topic
from tests.conformance.samples import CODECS, FIRST_TIME_MS, STEP_MS, Sample, samples
from tests.conformance.test_confluent_client import as_sample, consumer_of, produce, read

COUNT = 2000
LEADS_WITHIN_SECONDS = 30
RECENT_TOPIC = "of-today"
CUT_TOPIC = "cut-at-the-front"
SMALL_SEGMENTS = {"segment_bytes": "1048576", "index_interval_bytes": "512"}


class Stored(NamedTuple):
    offset: int
    record: Sample


def fill(bootstrap: str) -> dict[str, int]:
    """Writes the topics; name and number of partitions of each."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for codec in CODECS:
        topic = create_topic(admin, f"in-{codec}", **SMALL_SEGMENTS)
        settings = {"compression.type": codec, "enable.idempotence": True}
        produce(bootstrap, topic, samples(COUNT), **settings, **{"batch.num.messages": 100})
    create_topic(admin, "several-segments", **SMALL_SEGMENTS)
    produce(bootstrap, "several-segments", list(large(4000)), **{"batch.num.messages": 50})
    create_topic(admin, "stamped-by-the-broker", message_timestamp_type="LogAppendTime")
    produce(bootstrap, "stamped-by-the-broker", samples(300))
    create_topic(admin, "backwards-in-time", index_interval_bytes="100")
    backwards = samples(600)[::-1]
    produce(bootstrap, "backwards-in-time", backwards, **{"batch.num.messages": 20})
    create_topic(admin, CUT_TOPIC, **SMALL_SEGMENTS)
    produce(bootstrap, CUT_TOPIC, list(large(3000)), **{"batch.num.messages": 50})
    cut = TopicPartition(CUT_TOPIC, 0, 2500)
    admin.delete_records([cut])[cut].result(30)
    create_topic(admin, RECENT_TOPIC)  # producers of old records are forgotten at the next start
    produce(bootstrap, RECENT_TOPIC, recent(200), **{"enable.idempotence": True})
    create_topic(admin, "never-written", partitions=2)
    return topics_on(bootstrap)


def topics_on(bootstrap: str) -> dict[str, int]:
    """Names of the topics that people made, with their number of partitions."""
    listed = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics
    return {name: len(topic.partitions) for name, topic in listed.items() if name[:2] != "__"}


def recent(count: int) -> list[Sample]:
    """Records of right now."""
    now_ms = time.time_ns() // 1_000_000
    return [one._replace(timestamp=now_ms + index) for index, one in enumerate(samples(count))]


def large(count: int) -> Iterator[Sample]:
    """Enough bytes for several of the smallest segments, one record time in fifty dirty."""
    for index in range(count):
        time_ms = FIRST_TIME_MS + index * STEP_MS
        if index % 50 == 49:
            time_ms -= 1_000_000
        yield Sample(b"%d" % index, b"%d " % index * 150, time_ms)


def everything(bootstrap: str, topics: dict[str, int]) -> dict[tuple[str, int], list[Stored]]:
    """Every record of every partition, by topic and partition."""
    return {
        (topic, partition): list(contents(bootstrap, topic, partition))
        for topic, partitions in topics.items()
        for partition in range(partitions)
    }


def contents(bootstrap: str, topic: str, partition: int) -> Iterator[Stored]:
    with closing(consumer_of(bootstrap)) as consumer:
        start, end = ends(consumer, TopicPartition(topic, partition))
        consumer.assign([TopicPartition(topic, partition, start)])
        for message in read(consumer, end - start):
            yield Stored(message.offset(), as_sample(message))


def ends(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """First and next offset; a Kafka that has just started answers before it leads."""
    deadline = time.monotonic() + LEADS_WITHIN_SECONDS
    while True:
        try:
            return consumer.get_watermark_offsets(partition, timeout=30)
        except KafkaException as refusal:
            if time.monotonic() > deadline or "NOT_LEADER" not in str(refusal):
                raise
            time.sleep(0.05)


def offsets_by_time(bootstrap: str, topics: dict[str, int]) -> dict[tuple[str, int, int], int]:
    """Answers of by-time look-ups over the span of the samples and beyond."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    times = [FIRST_TIME_MS + delta for delta in (-1, 0, 1, 777, 9_995, 25_000, 39_000, 50_000)]
    everywhere = [TopicPartition(topic, p) for topic, count in topics.items() for p in range(count)]
    return {
        (asked.topic, asked.partition, time_ms): answer.result(30).offset
        for time_ms in times
        for asked, answer in admin.list_offsets(
            dict.fromkeys(everywhere, OffsetSpec.for_timestamp(time_ms))
        ).items()
    }
