"""What a user of librdkafka sees, through confluent-kafka's batch calls."""

import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from itertools import repeat

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.bench.cell import Cell, Scale, cpu, latency, rate
from tests.bench.frames import batch_of, payload, produce
from tests.bench.librdkafka import BatchProducer
from tests.bench.peers import Peer
from tests.bench.produce_cells import LABELS, RECORDS_A_BATCH
from tests.bench.pump import Pumped, pump
from tests.bench.single_cells import figures_of
from tests.bench.topics import topic
from tests.bench.wire import BenchFailed, Wire

BURST_BYTES = 4_000_000
MOST_BURST_RECORDS = 10_000
FLUSH_SECONDS = 120


def measure_produce(
    record_bytes: int, acks: int, codec: str, peer: Peer, scale: Scale
) -> Mapping[str, float]:
    """From the first call until the last acknowledgement."""
    burst = min(MOST_BURST_RECORDS, BURST_BYTES // record_bytes)
    bursts = max(2, scale.megabytes * 1_000_000 // (burst * record_bytes))
    settings = {
        "bootstrap.servers": peer.bootstrap,
        "acks": acks,
        "compression.type": codec,
        "linger.ms": 5,
        "queue.buffering.max.messages": 1_000_000,
        "delivery.report.only.error": True,
    }
    with (
        topic(peer.bootstrap, "client", config=peer.cached_config) as name,
        BatchProducer(name, settings) as producer,
    ):
        batch = producer.messages([payload(record_bytes, seed % 64) for seed in range(burst)])
        producer.send(producer.messages([payload(record_bytes)] * 10))
        producer.flush(FLUSH_SECONDS)
        before, began = peer.cpu_seconds(), time.perf_counter()
        for _ in range(bursts):
            producer.send(batch)
        producer.flush(FLUSH_SECONDS)
        seconds, after = time.perf_counter() - began, peer.cpu_seconds()
    return with_cpu(bursts * burst * record_bytes / 1e6, seconds, before, after)


def with_cpu(
    megabytes: float, seconds: float, before: float | None, after: float | None
) -> Mapping[str, float]:
    figures = {"rate": megabytes / seconds}
    if before is not None and after is not None:
        figures["broker CPU"] = (after - before) * 1000 / megabytes
    return figures


def measure_consume(record_bytes: int, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """From the first record that arrives to the last."""
    batch = batch_of(record_bytes, RECORDS_A_BATCH[record_bytes])
    batches = max(2, scale.megabytes * 1_000_000 // len(batch))
    wanted = batches * RECORDS_A_BATCH[record_bytes]
    with topic(peer.bootstrap, "consume", config=peer.cached_config) as name:
        with Wire(peer.bootstrap) as wire:
            pump(wire, name, repeat(produce(name, batch, acks=1), batches), 5)
        with closing(consumer_of(peer.bootstrap)) as consumer:
            consumer.assign([TopicPartition(name, 0, 0)])
            count = len(consumer.consume(1, timeout=30))
            before, began = peer.cpu_seconds(), time.perf_counter()
            while count < wanted:
                left = min(MOST_BURST_RECORDS, wanted - count)
                count += len(consumer.consume(left, timeout=1))
            seconds, after = time.perf_counter() - began, peer.cpu_seconds()
    return with_cpu(wanted * record_bytes / 1e6, seconds, before, after)


def consumer_of(bootstrap: str, **settings: object) -> Consumer:
    options = {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "enable.auto.commit": False,
        "queued.min.messages": 1_000_000,
        "queued.max.messages.kbytes": 262_144,
    }
    return Consumer({**options, **settings})


class Singles:
    """Keeps a fixed number of one-message requests under way until the time is up."""

    def __init__(self, bootstrap: str, name: str, in_flight: int, config: Mapping[str, object]):
        self._name, self._value = name, payload(100)
        self._in_flight = in_flight
        self._deadline = 0.0
        self.latencies_ns: list[int] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 0,
                "batch.num.messages": 1,
                "max.in.flight.requests.per.connection": in_flight,
                **config,
            }
        )

    def run(self, seconds: float) -> Pumped:
        self.latencies_ns = []
        began = time.perf_counter()
        self._deadline = began + seconds
        for _ in range(self._in_flight):
            self._send()
        while self._producer.flush(1):
            pass
        return Pumped(time.perf_counter() - began, self.latencies_ns)

    def _send(self) -> None:
        sent = time.perf_counter_ns()

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                raise BenchFailed(str(error))
            self.latencies_ns.append(time.perf_counter_ns() - sent)
            if time.perf_counter() < self._deadline:
                self._send()

        self._producer.produce(self._name, self._value, partition=0, on_delivery=delivered)


def measure_singles(in_flight: int, durable: bool, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """One message a request, through the client."""
    config = peer.fsync_config if durable else peer.cached_config
    with topic(peer.bootstrap, "client", config=config) as name:
        acks = {"acks": -1 if durable else 1}
        singles = Singles(peer.bootstrap, name, in_flight, acks)
        singles.run(scale.seconds / 5)
        return figures_of(singles.run(scale.seconds))


SINGLE_FIGURES = (rate("req/s"), latency(50), latency(99))
PRODUCE = ((100, None, None), (1000, 1.5, 2.5), (10_000, 1.5, 2.5))
CELLS = (
    *(
        Cell(
            f"produce-client-{LABELS[size]}-{label}",
            (rate(must=must, aim=aim), cpu()),
            partial(measure_produce, size, acks, "none"),
            fills_memory=True,
        )
        for label, acks in (("acks1", 1), ("all", -1))
        for size, must, aim in PRODUCE
    ),
    Cell("produce-client-1kb-lz4", (rate(), cpu()), partial(measure_produce, 1000, 1, "lz4")),
    *(
        Cell(
            f"consume-client-{LABELS[size]}",
            (rate(must=1, aim=1.3), cpu()),
            partial(measure_consume, size),
        )
        for size in RECORDS_A_BATCH
    ),
    *(
        Cell(
            f"{kind}-client-d{depth}",
            SINGLE_FIGURES,
            partial(measure_singles, depth, kind == "durable"),
        )
        for kind in ("single", "durable")
        for depth in (1, 5)
    ),
)
