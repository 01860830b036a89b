"""One record of 100 bytes a request, unforced and durable: rates and how long each one is away."""

from collections.abc import Mapping
from functools import partial

from tests.bench.cell import Cell, Figure, Scale, latency, rate
from tests.bench.frames import batch_of, produce
from tests.bench.peers import Peer
from tests.bench.pump import Pumped, for_seconds, pump, pump_many
from tests.bench.topics import topic
from tests.bench.wire import Wire

RECORD_BYTES = 100


def figures_of(done: Pumped) -> Mapping[str, float]:
    return {
        "rate": done.per_second,
        "p50": done.percentile_ms(50),
        "p99": done.percentile_ms(99),
    }


def one_connection(durable: bool, depth: int, peer: Peer, scale: Scale) -> Mapping[str, float]:
    config, acks = (peer.fsync_config, -1) if durable else (peer.cached_config, 1)
    with topic(peer.bootstrap, "single", config=config) as name, Wire(peer.bootstrap) as wire:
        request = produce(name, batch_of(RECORD_BYTES, 1), acks=acks)
        pump(wire, name, for_seconds(scale.seconds / 5, request), depth)
        return figures_of(pump(wire, name, for_seconds(scale.seconds, request), depth))


def many_connections(connections: int, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Durable, one request under way on each connection."""
    with topic(peer.bootstrap, "single", config=peer.fsync_config) as name:
        request = produce(name, batch_of(RECORD_BYTES, 1), acks=-1)
        return figures_of(pump_many(peer.bootstrap, name, request, connections, scale.seconds))


def figures(must: float, aim: float, p99_must: float | None = None) -> tuple[Figure, ...]:
    return (rate("req/s", must, aim), latency(50), latency(99, p99_must))


CELLS = (
    Cell("single-raw-d1", figures(1.5, 2.5, 1.0), partial(one_connection, False, 1)),
    Cell("single-raw-d5", figures(1.5, 2.5, 1.0), partial(one_connection, False, 5)),
    Cell("durable-raw-d1", figures(0.8, 1.2), partial(one_connection, True, 1)),
    Cell("durable-raw-d5", figures(2, 5), partial(one_connection, True, 5)),
    Cell("durable-raw-50conn", figures(2, 5), partial(many_connections, 50)),
)
