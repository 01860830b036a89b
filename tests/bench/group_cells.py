"""Groups: commits of offsets, a rebalance of 100 members, and what waits in memory.

Commits go over connections that each keep a few under way, as many consumers do together; with us
each is on the disk when it is answered, with a Kafka in the page cache. A rebalance is timed from
the last member's join to the last member's part. The cell of delays holds 50,000 sessions and
100,000 waiting fetches in the structures that the broker uses.
"""

import asyncio
import time
import tracemalloc
from collections.abc import Mapping
from contextlib import ExitStack

from broker.groups.consumer.embedded import Subscription
from broker.partitions.fetch_waiters import FetchWaiters
from broker.runtime.deadlines import Deadline, Deadlines, GroupTime
from protocol.apis.find_coordinator import FindCoordinatorRequest
from protocol.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.codec import encode_bytes
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.peers import Peer
from tests.bench.pump import percentile
from tests.bench.topics import topic
from tests.bench.wire import BenchFailed, Wire, answer, frame
from tests.support.disk.simenv import SimClock

CONNECTIONS, UNDER_WAY = 20, 5
MEMBERS = 100
PATIENCE_SECONDS = 60
BEGINS_WITHIN_SECONDS = 0.1
HELD_BACK = {"group.initial.rebalance.delay.ms": "3000", "offsets.topic.num.partitions": "1"}
JOIN, SYNC, COMMIT = ("JoinGroup", 9), ("SyncGroup", 5), ("OffsetCommit", 9)
SUBSCRIPTION = b"\0\0" + encode_bytes(Subscription(topics=["a topic that all read"]), 0)
SESSIONS, FETCHES = 50_000, 100_000

RATE = Figure("rate", "commits/s", "higher")
CPU = Figure("broker CPU", "us/commit", "lower", must=1.0, under=200.0)
WITHIN = Figure("p50", "ms", "lower", must=1.0, under=300.0)


def commits(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Commits that are answered in a second."""
    with topic(peer.bootstrap, "commits", config={}) as name, ExitStack() as stack:
        wires = [stack.enter_context(Wire(peer.bootstrap)) for _ in range(CONNECTIONS)]
        _find_coordinator(wires[0], [f"{name}-{number}" for number in range(CONNECTIONS)])
        frames = [_commit(name, number) * UNDER_WAY for number in range(CONNECTIONS)]
        _round_of_commits(wires, frames)
        before, rounds, began = peer.cpu_seconds(), 0, time.perf_counter()
        while rounds < 2 or time.perf_counter() - began < scale.seconds:
            _round_of_commits(wires, frames)
            rounds += 1
        seconds, count = time.perf_counter() - began, rounds * CONNECTIONS * UNDER_WAY
        after = peer.cpu_seconds()
    figures = {"rate": count / seconds}
    if before is not None and after is not None:
        figures["broker CPU"] = (after - before) * 1e6 / count
    return figures


def _commit(name: str, number: int) -> bytes:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=number)
    topics = [OffsetCommitRequestTopic(name=name, partitions=[part])]
    return frame(*COMMIT, OffsetCommitRequest(group_id=f"{name}-{number}", topics=topics))


def _round_of_commits(wires: list[Wire], frames: list[bytes]) -> None:
    for wire, request in zip(wires, frames, strict=True):
        wire.send(request)
    for wire in wires:
        for _ in range(UNDER_WAY):
            told = answer(*COMMIT, wire.receive())
            if told.topics[0].partitions[0].error_code:
                raise BenchFailed("a commit was refused")


def _find_coordinator(wire: Wire, groups: list[str]) -> None:
    """Waits until the groups have a coordinator that answers."""
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=groups)
    end = time.monotonic() + PATIENCE_SECONDS
    while any(each.error_code for each in wire.call("FindCoordinator", 4, asked).coordinators):
        if time.monotonic() > end:
            raise BenchFailed("no coordinator")
        time.sleep(0.1)
    request = _commit_nothing(groups[0])
    while any(p.error_code for t in wire.call(*COMMIT, request).topics for p in t.partitions):
        time.sleep(0.1)


def _commit_nothing(group: str) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    name = group.rsplit("-", 1)[0]
    topics = [OffsetCommitRequestTopic(name=name, partitions=[part])]
    return OffsetCommitRequest(group_id=group, topics=topics)


class Member:
    """One member of the group, with a connection of its own."""

    def __init__(self, wire: Wire, group: str) -> None:
        self.wire = wire
        self.request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )
        self.request.member_id = wire.call(*JOIN, self.request).member_id
        self.generation = -1

    def join(self) -> None:
        self.wire.send(frame(*JOIN, self.request))

    def joined(self) -> list[str]:
        """The members, of the one that leads."""
        told = answer(*JOIN, self.wire.receive())
        if told.error_code:
            raise BenchFailed(f"a join was refused: {told.error_code}")
        self.generation = told.generation_id
        return [each.member_id for each in told.members]

    def sync(self, names: list[str]) -> None:
        request = SyncGroupRequest(
            group_id=self.request.group_id,
            generation_id=self.generation,
            member_id=self.request.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=b"a" * 50) for each in names
            ],
        )
        self.wire.send(frame(*SYNC, request))

    def synced(self) -> None:
        if answer(*SYNC, self.wire.receive()).error_code:
            raise BenchFailed("a sync was refused")


def rebalance(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """From the last join to the last part, of a group that has all its members already."""
    with ExitStack() as stack:
        node = stack.enter_context(peer.start_another(peer.fresh_directory(), HELD_BACK))
        name = stack.enter_context(topic(node.bootstrap, "rebalance", config={}))
        wires = [stack.enter_context(Wire(node.bootstrap)) for _ in range(MEMBERS)]
        _find_coordinator(wires[0], [f"{name}-0"])
        members = [Member(wire, name) for wire in wires]
        _generation(members)
        times = [_generation(members) for _ in range(max(3, int(scale.seconds * 3)))]
    return {"p50": percentile(times, 50) / 1e6}


def _generation(members: list[Member]) -> int:
    """One generation; ns. The one that leads joins first: that begins the rebalance.

    Afterwards the one that leads is the first of the members.
    """
    members[0].join()
    time.sleep(BEGINS_WITHIN_SECONDS)
    for each in members[1:-1]:
        each.join()
    time.sleep(BEGINS_WITHIN_SECONDS)
    began = time.perf_counter_ns()
    members[-1].join()
    names = [each.joined() for each in members]
    for each, known in zip(members, names, strict=True):
        each.sync(known)
    for each in members:
        each.synced()
    ended = time.perf_counter_ns()
    leads = next(number for number, known in enumerate(names) if known)
    members.insert(0, members.pop(leads))
    return ended - began


def delays(_: Peer, scale: Scale) -> Mapping[str, float]:
    """What 50,000 sessions and 100,000 waiting fetches cost: bytes and microseconds each."""
    part = min(1.0, scale.lookups / 500)
    return asyncio.run(_delays(max(100, int(SESSIONS * part)), max(100, int(FETCHES * part))))


async def _delays(sessions: int, fetches: int) -> Mapping[str, float]:
    loop, clock = asyncio.get_running_loop(), SimClock()
    deadlines, waiters = Deadlines(loop, GroupTime(clock, clock)), FetchWaiters(loop)
    tracemalloc.start()
    members = [Deadline() for _ in range(sessions)]
    for each in members:
        deadlines.set(each, 45_000)
    waiting = [waiters.register([number % 1000], 1, 60_000, _nothing) for number in range(fetches)]
    held_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    began = time.perf_counter()
    for _ in range(3):
        clock.advance(3000)
        for each in members:
            deadlines.set(each, 45_000)  # a heartbeat
    beat = (time.perf_counter() - began) / (3 * sessions)
    began = time.perf_counter()
    for number in range(1000):
        waiters.wake(number, 1)
    woken = (time.perf_counter() - began) / fetches
    entries = len(deadlines)
    deadlines.close()
    del waiting
    return {
        "held": held_bytes / (sessions + fetches),
        "heap": entries / sessions,
        "heartbeat": beat * 1e6,
        "wake": woken * 1e6,
    }


def _nothing() -> None:
    """Nobody is answered."""


CELLS = (
    Cell("commits-20x5", (RATE, CPU), commits),
    Cell("rebalance-100", (WITHIN,), rebalance, starts_nodes=True),
    Cell(
        "delays-150k",
        (
            Figure("held", "bytes each", "lower", under=600.0),
            Figure("heap", "entries each", "lower", under=1.1),
            Figure("heartbeat", "us", "lower", under=20.0),
            Figure("wake", "us", "lower", under=50.0),
        ),
        delays,
        only_ours=True,
    ),
)
