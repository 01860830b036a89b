"""Transactions of 100 records of 1 KB through librdkafka, beside the same records without them.

Topics are as a user gets them, so with us every acknowledgement is on the disk. Without
transactions the producer waits after every 100 records, as a commit does.
"""

import time
from collections.abc import Callable, Mapping

from confluent_kafka import Producer

from tests.bench.cell import Cell, Figure, Scale, rate
from tests.bench.frames import payload
from tests.bench.peers import Peer
from tests.bench.topics import topic
from tests.bench.wire import BenchFailed

RECORDS = 100
RECORD_BYTES = 1000
PATIENCE_SECONDS = 30
PLAIN = Figure("of plain", "ratio", "higher")


def measure(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """MB a second in transactions, and what part that is of the rate without."""
    with topic(peer.bootstrap, "transactions", config={}) as name:
        shared = {"bootstrap.servers": peer.bootstrap, "linger.ms": 0}
        plain = Producer({**shared, "acks": "all", "enable.idempotence": True})
        without = _rate(name, plain, lambda: _flush(plain), scale.seconds)
        producer = Producer({**shared, "transactional.id": name})
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()

        def commit() -> None:
            producer.commit_transaction(PATIENCE_SECONDS)
            producer.begin_transaction()

        within = _rate(name, producer, commit, scale.seconds)
        producer.abort_transaction(PATIENCE_SECONDS)
    return {"rate": within, "of plain": within / without}


def _flush(producer: Producer) -> None:
    if producer.flush(PATIENCE_SECONDS):
        raise BenchFailed("not everything was acknowledged")


def _rate(name: str, producer: Producer, end: Callable[[], None], seconds: float) -> float:
    value = payload(RECORD_BYTES)
    producer.produce(name, value, partition=0)
    end()  # the connection is there, and the partition known
    rounds, began = 0, time.perf_counter()
    while rounds < 2 or time.perf_counter() - began < seconds:
        for _ in range(RECORDS):
            producer.produce(name, value, partition=0)
        end()
        rounds += 1
    return rounds * RECORDS * RECORD_BYTES / 1e6 / (time.perf_counter() - began)


CELLS = (Cell("transactions-100x1kb", (rate(must=1.0), PLAIN), measure),)
