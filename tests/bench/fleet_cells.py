"""From produce() to its acknowledgement of three brokers as one, beside three Kafka brokers.

Kafka keeps three copies of a record and answers when two have it (in their page caches); ours when
PostgreSQL has committed it. All of it is on this machine: brokers, PostgreSQL, the object store; in
the cells `-far` each request to the store takes 30 ms longer.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.bench.cell import Cell, Scale, latency
from tests.bench.far_store import farther
from tests.bench.peers import Peer, remove
from tests.bench.pump import percentile
from tests.bench.wire import BenchFailed
from tests.support.fleet.brokers import FleetOfBrokers, engines
from tests.support.kafka.kafka_oracle import full_kafka
from tests.support.ports import free_port
from tests.support.tier.s3_server import S3Server

NODES, PARTITIONS = (1, 2, 3), 12
MESSAGE_BYTES = 1000
RATES = (1, 5, 20)
FAR_SECONDS = 0.03
SETTLED_SECONDS = 8.0
"""After the start, until shards or leaders no longer move."""
WARM_SECONDS = 30.0
"""Of the same traffic before it is measured: three virtual machines compile on the same cores."""
READY_WITHIN_SECONDS = 60


@contextmanager
def started_fleet(
    peer: Peer, way: Callable[[S3Server], AbstractContextManager[S3Server]] = nullcontext
) -> Iterator[FleetOfBrokers]:
    """Three new brokers; `way`: to their store."""
    directory = peer.fresh_directory()
    directory.parent.mkdir(parents=True)
    try:
        with engines() as (database, store), way(store) as reached:
            fleet = FleetOfBrokers(directory.parent, database, reached)
            try:
                for node in NODES:
                    fleet.start(node, {"horolog.fleet.lease.ms": "5000"})
                yield fleet
            finally:
                fleet.end()
    finally:
        remove(directory)


@contextmanager
def cluster(peer: Peer, store_seconds: float) -> Iterator[str]:
    """Three new brokers of the peer's kind; where clients reach them."""
    with ExitStack() as stack:
        if peer.name == "horolog":
            way = partial(farther, seconds=store_seconds) if store_seconds else nullcontext
            yield stack.enter_context(started_fleet(peer, way)).bootstrap
        else:
            yield from _kafkas(peer, stack)


def _kafkas(peer: Peer, stack: ExitStack) -> Iterator[str]:
    ports, controller = {node: free_port() for node in NODES}, free_port()
    for node, port in ports.items():
        listener = f"PLAINTEXT://127.0.0.1:{port}"
        is_first = node == NODES[0]
        settings = {
            "node.id": str(node),
            "process.roles": "broker,controller" if is_first else "broker",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": listener + f",CONTROLLER://127.0.0.1:{controller}" * is_first,
            "advertised.listeners": listener,
            "min.insync.replicas": "2",
        }
        directory = peer.fresh_directory().with_name(f"node-{node}")
        started = full_kafka(directory, settings, listen=f"127.0.0.1:{port}")
        stack.callback(remove, directory)
        stack.callback(started.kill)
    yield ",".join(f"127.0.0.1:{port}" for port in ports.values())


def _is_made(admin: AdminClient) -> bool:
    """False while whoever was asked does not know of all brokers."""
    topic = NewTopic("bench", PARTITIONS, len(NODES))
    try:
        admin.create_topics([topic])["bench"].result(60)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.INVALID_REPLICATION_FACTOR:
            raise
        return False
    return True


def make_topic(bootstrap: str) -> Producer:
    """Waits for all brokers and for leaders; a producer to the topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    end = time.monotonic() + READY_WITHIN_SECONDS
    while not _is_made(admin):
        if time.monotonic() > end:
            raise BenchFailed("a broker is not there")
        time.sleep(0.1)
    while True:
        found = admin.list_topics("bench", timeout=10).topics["bench"].partitions.values()
        if len(found) == PARTITIONS and all(each.leader > 0 for each in found):
            break
        if time.monotonic() > end:
            raise BenchFailed("a partition has no leader")
        time.sleep(0.1)
    return Producer({
        "bootstrap.servers": bootstrap, "acks": -1, "linger.ms": 5,
        "queue.buffering.max.messages": 1_000_000,
    })  # fmt: skip


def measure(megabytes: int, store_seconds: float, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Times to the acknowledgement at so many MB/s."""
    with cluster(peer, store_seconds) as bootstrap:
        share = min(1.0, scale.seconds)
        time.sleep(SETTLED_SECONDS * share)
        producer = make_topic(bootstrap)
        send(producer, megabytes, WARM_SECONDS * share)
        took = send(producer, megabytes, scale.seconds * 2)
    return {"p50": percentile(took, 50) / 1e6, "p99": percentile(took, 99) / 1e6}


def send(producer: Producer, megabytes: int, seconds: float) -> list[int]:
    """Messages evenly, a burst each millisecond; the time of each to its acknowledgement (ns)."""
    value, took, failed = os.urandom(MESSAGE_BYTES), list[int](), list[str]()
    a_tick = megabytes * 1_000_000 / MESSAGE_BYTES / 1000
    began, sent = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < seconds:
        while sent < elapsed * 1000 * a_tick:
            producer.produce("bench", value, on_delivery=partial(_took, took, failed, _now()))
            sent += 1
        producer.poll(0.001)
    if producer.flush(60) or failed:
        raise BenchFailed(f"not acknowledged: {failed[:3]}")
    return took


def _now() -> int:
    return time.perf_counter_ns()


def _took(took: list[int], failed: list[str], at: int, error: object, _: object) -> None:
    if error is not None:
        failed.append(str(error))
    took.append(_now() - at)


CELLS = tuple(
    Cell(
        f"fleet-ack-{each}{name}",
        (latency(50, 1.0), latency(99, 1.0)),
        partial(measure, each, seconds),
        starts_nodes=True,
    )
    for each in RATES
    for name, seconds in (("", 0.0), ("-far", FAR_SECONDS))
)
