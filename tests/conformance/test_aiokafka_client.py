"""aiokafka: idempotent producers, every codec, assigned partitions, times."""

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.conformance.conftest import MakeTopic
from tests.conformance.samples import CODECS, FIRST_TIME_MS, STEP_MS, Sample, offset_at, samples

EXERCISES = {
    "aiokafka": "all codecs, idempotence, offsets by time",
}

COUNT = 500


async def produce(
    bootstrap: str, topic: str, records: list[Sample], **settings: object
) -> list[int]:
    """Writes all to partition 0 and returns the offsets they got."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=20, **settings) as producer:
        sent = [
            await producer.send(
                topic, r.value, r.key, 0, timestamp_ms=r.timestamp, headers=list(r.headers)
            )
            for r in records
        ]
        return [(await future).offset for future in sent]


async def read(consumer: AIOKafkaConsumer, count: int) -> list[Sample]:
    got: list[Sample] = []
    while len(got) < count:
        polled = await consumer.getmany(timeout_ms=30_000)
        assert polled, f"silence after {len(got)} of {count}"
        for records in polled.values():
            got += [Sample(r.key, r.value, r.timestamp, tuple(r.headers)) for r in records]
    return got


@pytest.mark.parametrize("codec", CODECS)
async def test_an_idempotent_producer_and_an_assigned_consumer(
    bootstrap: str, make_topic: MakeTopic, codec: str
) -> None:
    topic, records = make_topic(), samples(COUNT)
    compression = None if codec == "none" else codec
    offsets = await produce(
        bootstrap, topic, records, enable_idempotence=True, compression_type=compression
    )
    assert offsets == list(range(COUNT))
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        assert await read(consumer, COUNT) == records


async def test_offsets_for_times_and_ends(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    await produce(bootstrap, topic, samples(COUNT))
    partition = TopicPartition(topic, 0)
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        for time_ms in (0, FIRST_TIME_MS, FIRST_TIME_MS + 1, FIRST_TIME_MS + 1234):
            found = await consumer.offsets_for_times({partition: time_ms})
            assert found[partition].offset == offset_at(time_ms)
        beyond = FIRST_TIME_MS + COUNT * STEP_MS
        assert await consumer.offsets_for_times({partition: beyond}) == {partition: None}
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: COUNT}
