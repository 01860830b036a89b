"""confluent-kafka (librdkafka): idempotent producers, every codec, assigned partitions, times."""

from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.conformance.conftest import ELSEWHERE, MakeTopic
from tests.conformance.samples import CODECS, FIRST_TIME_MS, STEP_MS, Sample, offset_at, samples

EXERCISES = {
    "confluent-kafka": "codecs, acks, idempotence, offsets by time, both kinds of record time",
}

COUNT = 3000


def produce(bootstrap: str, topic: str, records: list[Sample], **settings: object) -> list[Message]:
    """Writes all to partition 0 and returns the delivery reports."""
    reports: list[Message] = []

    def delivered(error: object, message: Message) -> None:
        assert error is None, error
        reports.append(message)

    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=0,
            on_delivery=delivered,
            timestamp=record.timestamp,
            headers=list(record.headers),
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    return reports


def consumer_of(bootstrap: str) -> Consumer:
    options = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    return Consumer(options)


def consumer_at(bootstrap: str, topic: str, offset: int) -> Consumer:
    consumer = consumer_of(bootstrap)
    consumer.assign([TopicPartition(topic, 0, offset)])
    return consumer


def read(consumer: Consumer, count: int) -> list[Message]:
    got: list[Message] = []
    while len(got) < count:
        batch = consumer.consume(count - len(got), timeout=30)
        assert batch, f"silence after {len(got)} of {count}"
        for message in batch:
            assert message.error() is None, message.error()
        got += batch
    return got


def as_sample(message: Message) -> Sample:
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Sample(message.key(), message.value(), message.timestamp()[1], headers)


@pytest.mark.parametrize("codec", CODECS)
def test_an_idempotent_producer_and_an_assigned_consumer(
    bootstrap: str, make_topic: MakeTopic, codec: str
) -> None:
    topic, records = make_topic(), samples(COUNT)
    settings = {"enable.idempotence": True, "compression.type": codec, "batch.num.messages": 500}
    reports = produce(bootstrap, topic, records, **settings)
    assert [message.offset() for message in reports] == list(range(COUNT))
    with closing(consumer_at(bootstrap, topic, 0)) as consumer:
        messages = read(consumer, COUNT)
    assert [as_sample(message) for message in messages] == records
    assert [message.offset() for message in messages] == list(range(COUNT))


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement(
    bootstrap: str, make_topic: MakeTopic, acks: int | str
) -> None:
    topic, records = make_topic(), samples(200)
    produce(bootstrap, topic, records, acks=acks)
    with closing(consumer_at(bootstrap, topic, 0)) as consumer:
        assert [as_sample(message) for message in read(consumer, 200)] == records


def test_a_consumer_starts_in_the_middle_of_a_batch(bootstrap: str, make_topic: MakeTopic) -> None:
    topic, records = make_topic(), samples(1000)
    produce(bootstrap, topic, records, **{"linger.ms": 500})
    with closing(consumer_at(bootstrap, topic, 777)) as consumer:
        assert [as_sample(message) for message in read(consumer, 223)] == records[777:]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_offsets_for_times(bootstrap: str, make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic()
    settings = {"compression.type": codec, "batch.num.messages": 100}
    produce(bootstrap, topic, samples(COUNT), **settings)
    with closing(consumer_at(bootstrap, topic, 0)) as consumer:
        for time_ms in (0, FIRST_TIME_MS, FIRST_TIME_MS + 1, FIRST_TIME_MS + 12_345):
            (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, time_ms)], timeout=30)
            assert found.offset == offset_at(time_ms)
        beyond = TopicPartition(topic, 0, FIRST_TIME_MS + COUNT * STEP_MS)
        (found,) = consumer.offsets_for_times([beyond], timeout=30)
        assert found.offset == -1, "the end of the partition"


def test_the_ends_and_the_newest_time(
    bootstrap: str, make_topic: MakeTopic, admin: AdminClient
) -> None:
    topic = make_topic()
    records = samples(100)
    produce(bootstrap, topic, [*records[50:], *records[:50]])
    partition = TopicPartition(topic, 0)
    for spec, offset in (
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 100),
        (OffsetSpec.max_timestamp(), 49),
        (OffsetSpec.for_timestamp(FIRST_TIME_MS + 60 * STEP_MS), 10),
    ):
        (answer,) = admin.list_offsets({partition: spec}).values()
        assert answer.result(30).offset == offset


def test_log_append_time_replaces_the_claimed_time(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    produce(bootstrap, topic, samples(10))
    with closing(consumer_at(bootstrap, topic, 0)) as consumer:
        times = {message.timestamp() for message in read(consumer, 10)}
    ((kind, time_ms),) = times
    assert kind == 2
    assert time_ms > FIRST_TIME_MS


def test_a_record_over_the_limit_is_refused(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="1000")
    with pytest.raises(AssertionError, match="MSG_SIZE_TOO_LARGE"):
        produce(bootstrap, topic, [Sample(b"k", b"x" * 2000, FIRST_TIME_MS)])


@pytest.mark.skipif(bool(ELSEWHERE), reason="Kafka lets the question wait for the whole poll")
def test_who_asks_for_the_ends_while_a_poll_waits_is_answered_at_once(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    produce(bootstrap, topic, samples(10))
    patient = {"fetch.wait.max.ms": 60_000, "socket.timeout.ms": 90_000, "group.id": "patient"}
    with closing(Consumer({"bootstrap.servers": bootstrap, **patient})) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        read(consumer, 10)
        assert consumer.poll(0.5) is None
        for _ in range(3):
            assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 10)


def test_an_unknown_topic_is_named(bootstrap: str) -> None:
    topic = "nobody-made-this"
    with (
        closing(consumer_at(bootstrap, topic, 0)) as consumer,
        pytest.raises(KafkaException, match=r"UNKNOWN_(TOPIC|PARTITION)"),
    ):
        consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
