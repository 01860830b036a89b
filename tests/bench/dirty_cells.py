"""What a batch of ten thousand bad times costs, policy by policy, against a good one.

Each round sends both kinds of request in turns to topics of one broker, one request at a time, and
compares the median of the round trips, and the broker's CPU. The answer of policy reject names ten
thousand records, which is a megabyte and a half of text, and is read here like any other.
"""

import time
from collections.abc import Mapping
from functools import partial
from statistics import median

from protocol.errors import ErrorCode
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.frames import batch_of, produce
from tests.bench.peers import Peer
from tests.bench.topics import delete, topic
from tests.bench.wire import BenchFailed, Wire

RECORDS = 10_000
RECORD_BYTES = 90  # of value: a batch of a megabyte, as large as is usual
POLICIES = ("reject", "accept", "clamp", "restamp", "quarantine")
LEAST_ROUNDS = 5
FIGURES = (
    Figure("times a good batch", "", "lower", under=2.0),
    Figure("good", "ms", "lower"),
    Figure("bad", "ms", "lower"),
    Figure("CPU of a good one", "ms", "lower"),
    Figure("CPU of a bad one", "ms", "lower"),
)


def measure(policy: str, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Round trips in ms, and the ratio of bad to good."""
    now = time.time_ns() // 1_000_000
    config = {**peer.cached_config, "horolog.timestamp.policy": policy, "retention.ms": "-1"}
    with topic(peer.bootstrap, "dirty", config=config) as name, Wire(peer.bootstrap) as wire:
        good = produce(name, batch_of(RECORD_BYTES, RECORDS, now), acks=1)
        bad = produce(name, batch_of(RECORD_BYTES, RECORDS, now * 1000), acks=1)
        wanted = {good: 0, bad: int(ErrorCode.INVALID_TIMESTAMP) if policy == "reject" else 0}
        for request in (good, bad):
            trip(wire, request, name, wanted[request])
        rounds = max(LEAST_ROUNDS, int(scale.seconds * 60))
        turns: dict[bytes, list[float]] = {good: [], bad: []}
        for number in range(rounds):
            for request in (good, bad) if number % 2 else (bad, good):
                turns[request].append(trip(wire, request, name, wanted[request]))
        cpu = [cpu_of(peer, wire, request, name, wanted[request], rounds) for request in turns]
        if policy == "quarantine":
            delete(peer.bootstrap, name + ".quarantine")
    good_ms, bad_ms = (median(times) for times in turns.values())
    return {
        "times a good batch": bad_ms / good_ms,
        "good": good_ms,
        "bad": bad_ms,
        "CPU of a good one": cpu[0],
        "CPU of a bad one": cpu[1],
    }


def trip(wire: Wire, request: bytes, name: str, wanted: int) -> float:
    """One request and its whole answer, in ms."""
    began = time.perf_counter_ns()
    wire.send(request)
    answer = wire.receive()
    took = (time.perf_counter_ns() - began) / 1e6
    at = 4 + 1 + 1 + 1 + len(name.encode()) + 1 + 4  # correlation id .. partition index
    code = int.from_bytes(answer[at : at + 2], "big", signed=True)
    if code != wanted:
        raise BenchFailed(f"the broker answered {code} where {wanted} was due")
    return took


def cpu_of(  # noqa: PLR0917 - private, called by position
    peer: Peer, wire: Wire, request: bytes, name: str, wanted: int, rounds: int
) -> float:
    """Milliseconds of the broker's CPU a request."""
    before = peer.cpu_seconds() or 0.0
    for _ in range(rounds):
        trip(wire, request, name, wanted)
    return ((peer.cpu_seconds() or 0.0) - before) * 1000 / rounds


CELLS = tuple(
    Cell(f"dirty-{policy}", FIGURES, partial(measure, policy), only_ours=True)
    for policy in POLICIES
)
