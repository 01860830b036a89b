"""kafka-python: idempotent producers, every codec, assigned partitions, times."""

from contextlib import closing

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.conformance.conftest import MakeTopic
from tests.conformance.samples import CODECS, FIRST_TIME_MS, STEP_MS, Sample, offset_at, samples

EXERCISES = {
    "kafka-python": "all codecs, idempotence, offsets by time",
}

COUNT = 500


def produce(bootstrap: str, topic: str, records: list[Sample], **settings: object) -> list[int]:
    """Writes all to partition 0 and returns the offsets they got."""
    with closing(KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20, **settings)) as producer:
        sent = [
            producer.send(
                topic, r.value, r.key, list(r.headers), partition=0, timestamp_ms=r.timestamp
            )
            for r in records
        ]
        producer.flush(timeout=60)
        return [future.get(timeout=30).offset for future in sent]


def read(consumer: KafkaConsumer, count: int) -> list[Sample]:
    got: list[Sample] = []
    while len(got) < count:
        polled = consumer.poll(timeout_ms=30_000)
        assert polled, f"silence after {len(got)} of {count}"
        for records in polled.values():
            got += [Sample(r.key, r.value, r.timestamp, tuple(r.headers)) for r in records]
    return got


@pytest.mark.parametrize("codec", CODECS)
def test_an_idempotent_producer_and_an_assigned_consumer(
    bootstrap: str, make_topic: MakeTopic, codec: str
) -> None:
    topic, records = make_topic(), samples(COUNT)
    compression = None if codec == "none" else codec
    offsets = produce(
        bootstrap, topic, records, enable_idempotence=True, compression_type=compression
    )
    assert offsets == list(range(COUNT))
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        assert read(consumer, COUNT) == records


def test_offsets_for_times_and_ends(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    produce(bootstrap, topic, samples(COUNT))
    partition = TopicPartition(topic, 0)
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)) as consumer:
        for time_ms in (0, FIRST_TIME_MS, FIRST_TIME_MS + 1, FIRST_TIME_MS + 1234):
            found = consumer.offsets_for_times({partition: time_ms})
            assert found[partition].offset == offset_at(time_ms)
        beyond = FIRST_TIME_MS + COUNT * STEP_MS
        assert consumer.offsets_for_times({partition: beyond}) == {partition: None}
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: COUNT}
