"""The price of access control: one broker with entries beside one without, requests in turns."""

import statistics
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from tests.bench import process, topics
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.frames import batch_of, produce
from tests.bench.peers import Peer, remove
from tests.bench.single_cells import RECORD_BYTES
from tests.bench.wire import BenchFailed, Wire
from tests.support.clients.plain_talk import request_of

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SETTINGS = {"authorizer.class.name": AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
BLOCK_REQUESTS = 500
PAIRS = 21
"""Two equal processes differ by up to 3 %, by where their memory lies: the middle pair tells, and
many short pairs tell more than a few long ones."""
ENTRIES_A_REQUEST = 1000
TOPIC, LITERAL, ALL, ALLOW = 2, 3, 2, 3


class Side:
    """One of the two brokers: a connection, and the price of each block of requests."""

    def __init__(self, pid: int, wire: Wire, request: bytes) -> None:
        """The topic is there."""
        self.pid, self.wire, self.request = pid, wire, request
        self.seconds: list[float] = []
        self.cpu: list[float] = []

    def block(self) -> None:
        """So many requests, one under way."""
        cpu, began = process.cpu_seconds(self.pid), time.perf_counter()
        for _ in range(BLOCK_REQUESTS):
            self.wire.send(self.request)
            self.wire.receive()
        self.seconds.append(time.perf_counter() - began)
        self.cpu.append(process.cpu_seconds(self.pid) - cpu)


def measure(entries: int, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Ratios of a broker with entries to one without: the medians of pairs."""
    count = PAIRS if scale.seconds >= 1 else 1
    pairs = [_compare(entries, peer, scale.seconds / 2) for _ in range(count)]
    return {
        "time": statistics.median(ratio for ratio, _ in pairs),
        "CPU": statistics.median(ratio for _, ratio in pairs),
    }


def _compare(entries: int, peer: Peer, seconds: float) -> tuple[float, float]:
    """Time and CPU of a new broker with entries, each beside a new one without."""
    with ExitStack() as stack:
        guarded = _side(stack, peer, entries)
        bare = _side(stack, peer, 0)
        for side in (guarded, bare):
            side.block()
            side.seconds.clear()
            side.cpu.clear()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for side in (guarded, bare):
                side.block()
        ratios = [a / b for a, b in zip(guarded.seconds, bare.seconds, strict=True)]
        return statistics.median(ratios), sum(guarded.cpu) / sum(bare.cpu)


def _side(stack: ExitStack, peer: Peer, entries: int) -> Side:
    directory = peer.fresh_directory()
    node = peer.start_another(directory, SETTINGS if entries else {})
    stack.callback(remove, directory)
    stack.callback(node.stop)
    name = topics.unique_name("rights")
    topics.create(node.bootstrap, name)
    wire = stack.enter_context(Wire(node.bootstrap))
    _add(wire, name, entries)
    return Side(node.pid, wire, produce(name, batch_of(RECORD_BYTES, 1), acks=1))


def _add(wire: Wire, name: str, entries: int) -> None:
    """One entry lets the bench in; the others are of other users and topics."""
    rows = [_entry(f"other-{number}", f"User:{number}") for number in range(entries)]
    rows[:1] = [_entry(name, "User:ANONYMOUS")] if entries else []
    for at in range(0, entries, ENTRIES_A_REQUEST):
        request = request_of("CreateAcls", 3, creations=rows[at : at + ENTRIES_A_REQUEST])
        made = wire.call("CreateAcls", 3, request)
        if any(each.error_code for each in made.results):
            raise BenchFailed(f"an entry was refused: {made.results[0]}")


def _entry(topic: str, principal: str) -> Mapping[str, object]:
    return {
        "resource_type": TOPIC, "resource_name": topic, "resource_pattern_type": LITERAL,
        "principal": principal, "host": "*", "operation": ALL, "permission_type": ALLOW,
    }  # fmt: skip


FIGURES = (
    Figure("time", "ratio", "lower", under=1.02),
    Figure("CPU", "ratio", "lower", under=1.02),
)
CELLS = tuple(
    Cell(
        f"rights-produce-{entries}", FIGURES, partial(measure, entries),
        starts_nodes=True, only_ours=True,
    )
    for entries in (10, 10_000)
)  # fmt: skip
