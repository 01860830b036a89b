"""Living clients that speak as Kafka 0.8 to 0.10 did: records in all old codecs, there and back.

kafka-python with an old `api_version` sends formats 0 and 1 and checks every CRC it gets;
librdkafka with an old `broker.version.fallback` (and kcat, which has it inside) sends format 0.
"""

import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Consumer, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.worlds.broker_process import start_broker

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

MakeTopic = Callable[..., str]
COUNT = 200
CODECS = ["none", "gzip", "snappy", "lz4"]
VERSIONS = [(0, 8, 2), (0, 9), (0, 10), (0, 10, 1), (0, 11)]
FALLBACKS = ["0.8.2", "0.9.0", "0.10.0", "0.10.2", "0.11.0"]
with_codecs = pytest.mark.parametrize("codec", CODECS)
with_versions = pytest.mark.parametrize("version", VERSIONS, ids=str)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with start_broker(tmp_path_factory.mktemp("old") / "data") as node:
        yield node.bootstrap


@pytest.fixture
def make_topic(bootstrap: str, request: pytest.FixtureRequest) -> MakeTopic:
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def make(**config: str) -> str:
        name = f"old-{abs(hash(request.node.name))}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, 1, 1, config=settings)])[name].result(30)
        return name

    return make


def values() -> list[bytes]:
    return [b"value %d " % n * (n % 7) for n in range(COUNT)]


def produce(bootstrap: str, topic: str, version: tuple[int, ...], codec: str, now: int) -> None:
    """Writes all values, a millisecond apart."""
    with closing(
        KafkaProducer(
            bootstrap_servers=bootstrap,
            api_version=version,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=False,
            linger_ms=10,
        )
    ) as producer:
        sent = [
            producer.send(topic, value, b"key", partition=0, timestamp_ms=now + n)
            for n, value in enumerate(values())
        ]
        producer.flush(timeout=60)
        assert [each.get(timeout=30).offset for each in sent] == list(range(COUNT))


def consume(bootstrap: str, topic: str, version: tuple[int, ...], start: int = 0) -> list[object]:
    """Reads to the end; the client checks the CRCs."""
    with closing(
        KafkaConsumer(
            bootstrap_servers=bootstrap, api_version=version, group_id=None, check_crcs=True
        )
    ) as consumer:
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        consumer.seek_to_end()
        assert consumer.position(place) == COUNT
        if start:
            consumer.seek(place, start)
        else:
            consumer.seek_to_beginning()
        got: list[object] = []
        while len(got) < COUNT - start:
            polled = consumer.poll(timeout_ms=30_000)
            assert polled, f"silence after {len(got)}"
            got += polled[place]
        return got


@with_codecs
@with_versions
def test_kafka_python(
    bootstrap: str, make_topic: MakeTopic, version: tuple[int, ...], codec: str
) -> None:
    topic, now = make_topic(), time.time_ns() // 1_000_000
    produce(bootstrap, topic, version, codec, now)

    got = consume(bootstrap, topic, version)

    assert [(r.offset, r.key, r.value) for r in got] == [
        (n, b"key", value) for n, value in enumerate(values())
    ]
    timed = version >= (0, 10)
    assert [r.timestamp for r in got] == [now + n if timed else None for n in range(COUNT)]
    if version >= (0, 10, 1):
        assert offset_at(bootstrap, topic, version, now + COUNT // 2) == (COUNT // 2, now + 100)
        assert offset_at(bootstrap, topic, version, now + COUNT) is None


def offset_at(
    bootstrap: str, topic: str, version: tuple[int, ...], time_ms: int
) -> tuple[int, int] | None:
    """The first record at or after a time, as ListOffsets 1 tells it."""
    with closing(
        KafkaConsumer(bootstrap_servers=bootstrap, api_version=version, group_id=None)
    ) as consumer:
        place = TopicPartition(topic, 0)
        found = consumer.offsets_for_times({place: time_ms})[place]
        return None if found is None else (found.offset, found.timestamp)


@with_codecs
@pytest.mark.parametrize("newer", [(0, 10), None], ids=str)
def test_formats_pass_between_old_and_new_clients(
    bootstrap: str, make_topic: MakeTopic, codec: str, newer: tuple[int, ...] | None
) -> None:
    """What one age wrote the others read, from the middle too."""
    topic, now = make_topic(), time.time_ns() // 1_000_000
    produce(bootstrap, topic, (0, 9), codec, now)
    for version in (newer, (0, 9)):
        got = consume(bootstrap, topic, version, start=COUNT // 2)
        assert [r.value for r in got] == values()[COUNT // 2 :]
    assert {r.timestamp for r in consume(bootstrap, topic, newer)} == {-1}


@with_codecs
def test_a_topic_that_stamps(bootstrap: str, make_topic: MakeTopic, codec: str) -> None:
    topic, now = make_topic(message_timestamp_type="LogAppendTime"), time.time_ns() // 1_000_000
    produce(bootstrap, topic, (0, 10), codec, 1000)

    got = consume(bootstrap, topic, (0, 10))

    assert {r.timestamp_type for r in got} == {1}
    assert all(now <= r.timestamp <= now + 60_000 for r in got)


@with_codecs
@pytest.mark.parametrize("fallback", FALLBACKS)
def test_librdkafka(bootstrap: str, make_topic: MakeTopic, fallback: str, codec: str) -> None:
    topic, now = make_topic(), time.time_ns() // 1_000_000
    timed = not fallback.startswith(("0.8", "0.9"))
    old = {"api.version.request": False, "broker.version.fallback": fallback, "log_level": 0}
    errors: list[object] = []
    producer = Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 5, **old}
    )
    for n, value in enumerate(values()):
        producer.produce(
            topic, value, b"key", partition=0, on_delivery=lambda e, _: errors.append(e),
            **({"timestamp": now + n} if timed else {}),
        )  # fmt: skip
    assert producer.flush(60) == 0
    assert errors == [None] * COUNT

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", **old})
    try:
        assert consumer.get_watermark_offsets(Place(topic, 0), timeout=30) == (0, COUNT)
        consumer.assign([Place(topic, 0, 0)])
        got = []
        while len(got) < COUNT:
            message = consumer.poll(30)
            assert message is not None, f"silence after {len(got)}"
            assert message.error() is None
            got.append((message.offset(), message.key(), message.value(), message.timestamp()))
        if fallback in {"0.10.2", "0.11.0"}:  # ListOffsets 1 came with 0.10.1
            (place,) = consumer.offsets_for_times([Place(topic, 0, now + 100)], timeout=30)
            assert place.offset == 100
    finally:
        consumer.close()
    times = [(TIMESTAMP_CREATE_TIME, now + n) for n in range(COUNT)]
    if not timed:
        times = [(TIMESTAMP_NOT_AVAILABLE, 0)] * COUNT
    assert [row[:3] for row in got] == [(n, b"key", value) for n, value in enumerate(values())]
    assert [row[3] for row in got] == times


@pytest.mark.skipif(not shutil.which("kcat"), reason="kcat is not installed")
@with_codecs
def test_kcat(bootstrap: str, make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic()
    lines = "".join(f"line {n}\n" for n in range(COUNT))

    def kcat(*arguments: str, text: str = "") -> str:
        command = ["kcat", "-b", bootstrap, "-q", "-t", topic, "-p", "0", *arguments]
        old = ["-X", "api.version.request=false", "-X", "broker.version.fallback=0.9.0"]
        done = subprocess.run(
            [*command, *old], input=text, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    kcat("-P", "-z", codec, text=lines)
    assert kcat("-C", "-o", "beginning", "-e", "-f", "%s\n") == lines
