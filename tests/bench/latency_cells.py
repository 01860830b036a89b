"""From produce() to the consumer's hand at a fixed rate, through librdkafka, one message each."""

import struct
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.bench.cell import Cell, Figure, Scale, latency
from tests.bench.client_cells import consumer_of
from tests.bench.peers import Peer
from tests.bench.pump import percentile
from tests.bench.topics import topic
from tests.bench.wire import BenchFailed

STAMP = struct.Struct(">q")
PADDING = bytes(100 - STAMP.size)
LEAST_MESSAGES = 50
WARM_UP = 20
ARRIVES_WITHIN_SECONDS = 30


class Listener(threading.Thread):
    """Receives messages and notes how old each one is (ns)."""

    def __init__(self, consumer: Consumer, expected: int) -> None:
        super().__init__()
        self._consumer, self._expected = consumer, expected
        self.ages_ns: list[int] = []

    def run(self) -> None:
        last = time.monotonic()
        while len(self.ages_ns) < self._expected:
            message = self._consumer.poll(1)
            if message is not None and message.error() is None:
                now = time.perf_counter_ns()
                self.ages_ns.append(now - STAMP.unpack_from(message.value() or b"")[0])
                last = time.monotonic()
            elif time.monotonic() - last > ARRIVES_WITHIN_SECONDS:
                return


def measure(a_second: int, durable: bool, peer: Peer, scale: Scale) -> Mapping[str, float]:
    count = WARM_UP + max(LEAST_MESSAGES, int(a_second * scale.seconds * 2))
    config = peer.fsync_config if durable else peer.cached_config
    settings = {"linger.ms": 0, "acks": -1 if durable else 1}
    producer = Producer({"bootstrap.servers": peer.bootstrap, **settings})
    with (
        topic(peer.bootstrap, "latency", config=config) as name,
        closing(consumer_of(peer.bootstrap)) as consumer,
    ):
        consumer.assign([TopicPartition(name, 0, 0)])
        listener = Listener(consumer, count)
        listener.start()
        send_evenly(producer, name, count, 1 / a_second)
        listener.join()
    if len(listener.ages_ns) < count:
        raise BenchFailed(f"{len(listener.ages_ns)} of {count} messages arrived")
    ages = listener.ages_ns[WARM_UP:]
    return {"p50": percentile(ages, 50) / 1e6, "p99": percentile(ages, 99) / 1e6}


def send_evenly(producer: Producer, name: str, count: int, interval: float) -> None:
    """One message each `interval` seconds, stamped with the moment of its sending."""
    due = time.perf_counter()
    for _ in range(count):
        time.sleep(max(0.0, due - time.perf_counter()))
        stamp = STAMP.pack(time.perf_counter_ns())
        producer.produce(name, stamp + PADDING, partition=0)
        producer.poll(0)
        due += interval
    producer.flush(ARRIVES_WITHIN_SECONDS)


def figures(must: float | None, aim: float | None) -> tuple[Figure, ...]:
    return (latency(50, must, aim), latency(99, must, aim))


CELLS = (
    Cell("latency-100-a-second", figures(1, 0.5), partial(measure, 100, False)),
    Cell("latency-500-a-second", figures(1, 0.5), partial(measure, 500, False)),
    Cell("latency-100-a-second-durable", figures(None, None), partial(measure, 100, True)),
)
