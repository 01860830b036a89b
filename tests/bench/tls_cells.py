"""The same work over TLS 1.3 with AES-256-GCM: one certificate, one cipher for both brokers."""

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from confluent_kafka import TopicPartition

from protocol.apis.api_versions import ApiVersionsRequest
from tests.bench import fresh_memory, process
from tests.bench.cell import Cell, Figure, Scale, cpu, rate
from tests.bench.client_cells import (
    BURST_BYTES,
    FLUSH_SECONDS,
    MOST_BURST_RECORDS,
    consumer_of,
    with_cpu,
)
from tests.bench.fetch_cells import MIB, RECORD_BYTES, RECORDS_A_BATCH, read_all
from tests.bench.frames import batch_of, payload, produce
from tests.bench.librdkafka import BatchProducer
from tests.bench.peers import Peer, remove
from tests.bench.produce_cells import DEPTH
from tests.bench.pump import pump
from tests.bench.topics import topic
from tests.bench.wire import TIMEOUT_SECONDS, Wire
from tests.support.clients.certificates import Authority
from tests.support.ports import free_port

CIPHERS = "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"
"""Best first: clients and both brokers take AES-256-GCM."""
CONNECTIONS = 300
SETTLE_SECONDS = 1.0


class TlsWire(Wire):
    """A connection with TLS."""

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        """The handshake is done."""
        Wire.__init__(self, address)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


@dataclass(frozen=True)
class Secured:
    """A node with a listener in the clear, for the stage, and one with TLS, which is measured."""

    plain: str
    secure: str
    pid: int
    authority: Authority
    authority_file: Path

    def cpu_seconds(self) -> float:
        """Seconds of CPU that it spent since its start."""
        return process.cpu_seconds(self.pid)

    @property
    def context(self) -> ssl.SSLContext:
        """For clients in Python."""
        return ssl.create_default_context(cadata=self.authority.pem)

    @property
    def client(self) -> Mapping[str, object]:
        """For librdkafka."""
        return {
            "bootstrap.servers": self.secure,
            "security.protocol": "ssl",
            "ssl.ca.location": str(self.authority_file),
        }


@contextmanager
def secured(peer: Peer) -> Iterator[Secured]:
    """A node of this kind, on an empty directory."""
    directory = peer.fresh_directory()
    directory.parent.mkdir(parents=True)
    authority = Authority()
    plain, secure = (f"127.0.0.1:{free_port()}" for _ in range(2))
    settings = {
        **peer.listeners(f"PLAINTEXT://{plain},SSL://{secure}"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.server().write(directory.parent / "server.pem")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.write(directory.parent / "authority.pem")),
        "ssl.enabled.protocols": "TLSv1.3",
        "ssl.cipher.suites": CIPHERS,
    }
    node = peer.start_another(directory, settings, plain)
    try:
        file = directory.parent / "authority.pem"
        yield Secured(plain, secure, node.pid, authority, file)
    finally:
        node.stop()
        remove(directory)


def measure_produce(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """By librdkafka, from the first call until the last acknowledgement.

    It sends a record of TLS for one or two of its own, and so spends more CPU on a MB than our
    broker: on few cores its own work bounds the rate, and the broker's share is what is judged.
    """
    burst = min(MOST_BURST_RECORDS, BURST_BYTES // RECORD_BYTES)
    bursts = max(2, scale.megabytes * 1_000_000 // (burst * RECORD_BYTES))
    options = {
        "acks": 1, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000,
        "delivery.report.only.error": True,
    }  # fmt: skip
    with (
        secured(peer) as node,
        topic(node.plain, "tls", config=peer.cached_config) as name,
        BatchProducer(name, {**node.client, **options}) as producer,
    ):
        batch = producer.messages([payload(RECORD_BYTES, seed % 64) for seed in range(burst)])
        for _ in range(max(1, bursts // 5)):
            producer.send(batch)
        producer.flush(FLUSH_SECONDS)
        if scale.touches_memory:  # the host took it back while the node started
            fresh_memory.touch()
        before, began = node.cpu_seconds(), time.perf_counter()
        for _ in range(bursts):
            producer.send(batch)
        producer.flush(FLUSH_SECONDS)
        seconds, after = time.perf_counter() - began, node.cpu_seconds()
    return with_cpu(bursts * burst * RECORD_BYTES / 1e6, seconds, before, after)


def measure_raw_produce(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """By prebuilt requests, five under way, in TLS records of the largest size.

    The client's work is small, and the broker is the limit.
    """
    count = max(2, scale.megabytes * 1_000_000 // (RECORD_BYTES * RECORDS_A_BATCH))
    with (
        secured(peer) as node,
        topic(node.plain, "tls", config=peer.cached_config) as name,
        TlsWire(node.secure, node.context) as wire,
    ):
        request = produce(name, batch_of(RECORD_BYTES, RECORDS_A_BATCH), acks=1)
        pump(wire, name, repeat(request, max(2, count // 5)), DEPTH)
        if scale.touches_memory:
            fresh_memory.touch()
        before = node.cpu_seconds()
        done = pump(wire, name, repeat(request, count + 1), DEPTH)
        after = node.cpu_seconds()
    return with_cpu(count * RECORDS_A_BATCH * RECORD_BYTES / 1e6, done.seconds, before, after)


@contextmanager
def _filled(peer: Peer, scale: Scale) -> Iterator[tuple[Secured, str, int]]:
    """A node, a topic, and the number of records in it."""
    batch = batch_of(RECORD_BYTES, RECORDS_A_BATCH)
    count = max(2, scale.megabytes * 1_000_000 // len(batch))
    with secured(peer) as node, topic(node.plain, "tls", config=peer.cached_config) as name:
        with Wire(node.plain) as wire:
            pump(wire, name, (produce(name, batch, acks=1) for _ in range(count)), DEPTH)
        yield node, name, count * RECORDS_A_BATCH


def measure_consume(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """By librdkafka, the second pass over the log."""
    with _filled(peer, scale) as (node, name, wanted):
        _consume(node, name, wanted)
        before = node.cpu_seconds()
        seconds = _consume(node, name, wanted)
        return with_cpu(wanted * RECORD_BYTES / 1e6, seconds, before, node.cpu_seconds())


def _consume(node: Secured, name: str, wanted: int) -> float:
    """Seconds from the first record that arrives to the last."""
    with closing(consumer_of(node.secure, **node.client)) as consumer:
        consumer.assign([TopicPartition(name, 0, 0)])
        count = len(consumer.consume(1, timeout=30))
        began = time.perf_counter()
        while count < wanted:
            count += len(consumer.consume(min(MOST_BURST_RECORDS, wanted - count), timeout=1))
        return time.perf_counter() - began


def measure_fetch(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """By prebuilt requests for 1 MiB, the second pass over the log."""
    with _filled(peer, scale) as (node, name, end), TlsWire(node.secure, node.context) as wire:
        sum(read_all(wire, name, MIB, end))
        before, began = node.cpu_seconds(), time.perf_counter()
        megabytes = sum(read_all(wire, name, MIB, end)) / 1e6
        seconds = time.perf_counter() - began
        return with_cpu(megabytes, seconds, before, node.cpu_seconds())


def measure_handshakes(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Whole handshakes without resumption, one after the other."""
    with secured(peer) as node:
        _shake_hands(node, scale.seconds)
        before = node.cpu_seconds()
        count = _shake_hands(node, scale.seconds)
        spent = (node.cpu_seconds() - before) / count * 1000
        return {"rate": count / scale.seconds, "broker CPU": spent}


def _shake_hands(node: Secured, seconds: float) -> int:
    host, _, port = node.secure.rpartition(":")
    context, count = node.context, 0
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        bare = socket.create_connection((host, int(port)), TIMEOUT_SECONDS)
        with context.wrap_socket(bare, server_hostname="localhost"):
            count += 1
    return count


def _greet(wire: Wire) -> None:
    wire.call("ApiVersions", 0, ApiVersionsRequest())


def measure_connections(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Memory of a connection that has said ApiVersions and waits."""
    with secured(peer) as node, ExitStack() as held:
        context = node.context
        _greet(held.enter_context(TlsWire(node.secure, context)))
        time.sleep(SETTLE_SECONDS)
        before = process.resident_mib(node.pid)
        for _ in range(CONNECTIONS):
            _greet(held.enter_context(TlsWire(node.secure, context)))
        time.sleep(SETTLE_SECONDS)
        return {"memory": (process.resident_mib(node.pid) - before) * 1024 / CONNECTIONS}


CELLS = (
    Cell(
        "tls-produce-client-1kb",
        (rate(), cpu(must=0.67, aim=0.5)),
        measure_produce,
        starts_nodes=True,
    ),
    Cell(
        "tls-produce-raw-1kb",
        (rate(must=1.5, aim=2), cpu()),
        measure_raw_produce,
        starts_nodes=True,
    ),
    Cell(
        "tls-consume-client-1kb", (rate(must=1.5, aim=2), cpu()), measure_consume, starts_nodes=True
    ),
    Cell("tls-fetch-raw-1mib", (rate(must=1.5, aim=2), cpu()), measure_fetch, starts_nodes=True),
    Cell(
        "tls-handshakes",
        (rate("/s"), Figure("broker CPU", "ms each", "lower")),
        measure_handshakes,
        starts_nodes=True,
    ),
    Cell(
        "tls-connection",
        (Figure("memory", "KiB", "lower"),),
        measure_connections,
        starts_nodes=True,
        most_rounds=3,
    ),
)
