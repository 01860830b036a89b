"""Drives prebuilt produce requests as fast as the broker takes them, and keeps the time of each.

A request is a prebuilt buffer that goes out by `sendall`, and responses are read in bulk. All
answers to one frame have one length and differ in the base offset only; the first is decoded, the
error codes of the others are looked at where the first one's was.
"""

import select
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import NamedTuple

from protocol.errors import ErrorCode
from tests.bench.frames import PRODUCE_VERSION
from tests.bench.wire import LENGTH, BenchFailed, Wire, answer

RECEIVE_BYTES = 1 << 18
SMALL_BYTES = 1 << 14
# Length 4, header 5, topics 1 + name, partitions 1, index 4: what lies before the error code.
ERROR_CODE_AFTER_NAME = 4 + 5 + 1 + 1 + 1 + 4


class Pumped(NamedTuple):
    """What happened: how long it took, and how long each request was away."""

    seconds: float
    latencies_ns: list[int]

    @property
    def per_second(self) -> float:
        return len(self.latencies_ns) / self.seconds

    def percentile_ms(self, percent: float) -> float:
        return percentile(self.latencies_ns, percent) / 1e6


def percentile(values: list[int], percent: float) -> float:
    """The value below which `percent` of a hundred lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


class Answers:
    """Counts the produce answers in what a connection received."""

    def __init__(self, wire: Wire, request: bytes, topic: str) -> None:
        wire.send(request)
        first = wire.receive()
        decoded = answer("Produce", PRODUCE_VERSION, first)
        refuse(decoded.responses[0].partition_responses[0].error_code)
        self.size_bytes = LENGTH.size + len(first)
        self._error_at = ERROR_CODE_AFTER_NAME + len(topic.encode())
        self._left = b""

    def count(self, received: bytes) -> int:
        """How many whole answers have come; BenchFailed when one is a refusal."""
        data = self._left + received if self._left else received
        whole, size = divmod(len(data), self.size_bytes)[0], self.size_bytes
        for begin in range(0, whole * size, size):
            self.check(data, begin)
        self._left = data[whole * size :]
        return whole

    def check(self, data: bytes | memoryview, begin: int = 0) -> None:
        """BenchFailed when the answer that begins there is a refusal."""
        position = begin + self._error_at
        code = data[position : position + 2]
        if code != b"\0\0":
            refuse(int.from_bytes(code, "big", signed=True))


def refuse(code: int) -> None:
    """Raises BenchFailed unless `code` says that all is well."""
    if code:
        raise BenchFailed(f"the broker refused a batch: {ErrorCode(code).name}")


def pump(wire: Wire, topic: str, requests: Iterable[bytes], depth: int) -> Pumped:
    """Sends every request with up to `depth` of them under way. The first one warms up, untimed."""
    source = iter(requests)
    answers = Answers(wire, next(source), topic)
    if depth == 1:
        return back_and_forth(wire, answers, source)
    clock, send, receive = time.perf_counter_ns, wire.socket.sendall, wire.socket.recv
    away: deque[int] = deque()
    latencies: list[int] = []
    began = clock()
    for request in islice(source, depth):
        away.append(clock())
        send(request)
    while away:
        come = answers.count(receive(RECEIVE_BYTES) or closed())
        now = clock()
        for _ in range(come):
            latencies.append(now - away.popleft())
        for request in joined(list(islice(source, come)), away, clock):
            send(request)
    return Pumped((clock() - began) / 1e9, latencies)


def back_and_forth(wire: Wire, answers: Answers, requests: Iterable[bytes]) -> Pumped:
    """One request under way at a time: as little of our own work as can be between two of them."""
    clock, send, receive = time.perf_counter_ns, wire.socket.sendall, wire.socket.recv_into
    size, check = answers.size_bytes, answers.check
    room = memoryview(bytearray(SMALL_BYTES))
    latencies: list[int] = []
    began = clock()
    for request in requests:
        sent_at = clock()
        send(request)
        come = receive(room)
        if come < size:
            wire.fill(room[come:size])
        latencies.append(clock() - sent_at)
        check(room)
    return Pumped((clock() - began) / 1e9, latencies)


def joined(requests: list[bytes], away: deque[int], clock: Callable[[], int]) -> Iterator[bytes]:
    """What to send, in one piece where the requests are small; notes when each one goes."""
    if len(requests) > 1 and len(requests[0]) < SMALL_BYTES:
        away.extend([clock()] * len(requests))
        yield b"".join(requests)
        return
    for request in requests:
        away.append(clock())
        yield request


def closed() -> bytes:
    """What an empty read means."""
    raise BenchFailed("the broker closed the connection")


def for_seconds(seconds: float, request: bytes) -> Iterator[bytes]:
    """The same request over and over until the time is up, at least twice."""
    clock = time.monotonic
    deadline = clock() + seconds
    yield request
    yield request
    while clock() < deadline:
        yield request


def pump_many(
    bootstrap: str, topic: str, request: bytes, connections: int, seconds: float
) -> Pumped:
    """Many connections, each with one request under way."""
    with ExitStack() as open_wires, select.epoll() as poller:
        wires = [open_wires.enter_context(Wire(bootstrap)) for _ in range(connections)]
        by_fd = {wire.socket.fileno(): wire for wire in wires}
        answers = {fd: Answers(wire, request, topic) for fd, wire in by_fd.items()}
        for fd in by_fd:
            poller.register(fd, select.EPOLLIN)
        return _turn(poller, by_fd, answers, request, seconds)


def _turn(
    poller: select.epoll,
    wires: dict[int, Wire],
    answers: dict[int, Answers],
    request: bytes,
    seconds: float,
) -> Pumped:
    clock = time.perf_counter_ns
    began = clock()
    deadline = began + int(seconds * 1e9)
    sent_at, latencies = {}, []
    for fd, wire in wires.items():
        sent_at[fd] = clock()
        wire.send(request)
    while sent_at:
        for fd, _ in poller.poll():
            if not answers[fd].count(wires[fd].socket.recv(RECEIVE_BYTES) or closed()):
                continue
            now = clock()
            latencies.append(now - sent_at.pop(fd))
            if now < deadline:
                sent_at[fd] = now
                wires[fd].send(request)
    return Pumped((clock() - began) / 1e9, latencies)
