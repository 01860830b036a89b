"""A million records that a share group holds at a time: memory of the broker for each of them.

Many share partitions with as many records in flight as each may have, acquired by one member. A
first group has read and accepted the same records before, so that what the reading itself takes is
there on both sides; a JVM's heap may then take in more without growing. Then every other record is
accepted: no two neighbours are alike any more.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import repeat
from uuid import UUID

from protocol.apis.alter_share_group_offsets import (
    AlterShareGroupOffsetsPartition,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsTopic,
)
from protocol.apis.share_acknowledge import AcknowledgementBatch
from protocol.apis.share_fetch import ShareFetchPartition, ShareFetchRequest, ShareFetchTopic
from protocol.errors import ErrorCode
from tests.bench import process, topics
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.frames import batch_of, produce
from tests.bench.peers import Peer, remove
from tests.bench.pump import pump
from tests.bench.share_member import (
    ACCEPT,
    FETCH,
    MAX_BYTES,
    MAX_RECORDS,
    MAX_WAIT_MS,
    PATIENCE_SECONDS,
    find_coordinator,
    topic_id,
)
from tests.bench.wire import BenchFailed, Wire

RECORDS_A_MEGABYTE = 1250
"""So that the full scale has a million records."""
LOCKS, RECORD_BYTES, RECORDS_A_BATCH = 4000, 100, 500
SETTINGS = {
    "group.share.partition.max.record.locks": str(LOCKS),
    "group.share.max.record.lock.duration.ms": "3600000",
    "group.share.record.lock.duration.ms": "3600000",
}
SETTLE_SECONDS = 1.0

Held = dict[int, list[tuple[int, int]]]
"""Ranges of offsets by their partition, both ends included."""


class Holder:
    """The only member of a group: its session has all partitions of a topic."""

    def __init__(self, wire: Wire, group: str, topic: UUID, partitions: int) -> None:
        """It has asked for nothing."""
        self._wire, self._group, self._topic, self._partitions = wire, group, topic, partitions
        self._epoch = 0

    def fetch(self, done: Mapping[int, Sequence[tuple[int, int]]]) -> Held:
        """Accepts some ranges, and says what it holds more."""
        wanted = done if self._epoch else dict.fromkeys(range(self._partitions), ())
        parts = [
            ShareFetchPartition(
                partition_index=index,
                acknowledgement_batches=[
                    AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=[ACCEPT]
                    )
                    for first, last in ranges
                ],
            )
            for index, ranges in wanted.items()
        ]
        asked = [ShareFetchTopic(topic_id=self._topic, partitions=parts)] if parts else []
        request = ShareFetchRequest(
            group_id=self._group, member_id="holder", share_session_epoch=self._epoch,
            max_wait_ms=MAX_WAIT_MS, min_bytes=1, max_bytes=MAX_BYTES, max_records=MAX_RECORDS,
            batch_size=MAX_RECORDS, topics=asked, forgotten_topics_data=[],
        )  # fmt: skip
        told = self._wire.call(*FETCH, request)
        self._epoch += 1
        _refuse(told.error_code)
        found: Held = {}
        for part in (part for each in told.responses for part in each.partitions):
            _refuse(part.error_code)
            _refuse(part.acknowledge_error_code)
            got = [(each.first_offset, each.last_offset) for each in part.acquired_records]
            if got:
                found[part.partition_index] = got
        return found

    def hold(self, wanted: int, *, accepts: bool) -> Held:
        """All that it got of so many records; accepts them at once, or keeps them."""
        all_of: Held = {}
        done: Held = {}
        got, end = 0, time.monotonic() + PATIENCE_SECONDS
        while got < wanted or (accepts and done):
            found = self.fetch(done if accepts else {})
            done = found
            for index, ranges in found.items():
                all_of.setdefault(index, []).extend(ranges)
                got += sum(last - first + 1 for first, last in ranges)
            if found:
                end = time.monotonic() + PATIENCE_SECONDS
            elif time.monotonic() > end:
                raise BenchFailed(f"no more than {got} records of {wanted} can be had")
        return all_of


def begin_all(wire: Wire, group: str, topic: str, partitions: int) -> None:
    """A group that reads all partitions from their first record on."""
    places = [
        AlterShareGroupOffsetsPartition(partition_index=index, start_offset=0)
        for index in range(partitions)
    ]
    wanted = [AlterShareGroupOffsetsTopic(topic_name=topic, partitions=places)]
    request = AlterShareGroupOffsetsRequest(group_id=group, topics=wanted)
    end = time.monotonic() + PATIENCE_SECONDS
    while code := find_coordinator(wire, group) or _set(wire, request):
        if time.monotonic() > end:
            raise BenchFailed(f"a share group cannot begin: {ErrorCode(code).name}")
        time.sleep(0.1)


def _set(wire: Wire, request: AlterShareGroupOffsetsRequest) -> int:
    told = wire.call("AlterShareGroupOffsets", 0, request)
    codes = [part.error_code for each in told.responses for part in each.partitions]
    return int(told.error_code or max(codes, default=0))


def _refuse(code: int) -> None:
    if code:
        raise BenchFailed(f"a member of a share group was refused: {ErrorCode(code).name}")


def measure_in_flight(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Resident bytes for each record that one group holds."""
    partitions = max(scale.megabytes * RECORDS_A_MEGABYTE // LOCKS, 1)
    count, directory = partitions * LOCKS, peer.fresh_directory()
    node = peer.start_another(directory, SETTINGS)
    try:
        name = topics.unique_name("held")
        topics.create(node.bootstrap, name, partitions)
        with Wire(node.bootstrap) as wire:
            fill(wire, name, partitions)
            holders = [holder(wire, each, name, partitions) for each in ("first", "second")]
            holders[0].hold(count, accepts=True)
            before = resident_bytes(node.pid)
            began = time.perf_counter()
            held = holders[1].hold(count, accepts=False)
            seconds = time.perf_counter() - began
            held_bytes = resident_bytes(node.pid)
            for index, ranges in held.items():
                holders[1].fetch({index: every_other(ranges)})
            scattered = resident_bytes(node.pid)
    finally:
        node.stop()
        remove(directory)
    return {
        "as acquired": (held_bytes - before) / count,
        "scattered": (scattered - before) / count,
        "whole": scattered / (1 << 20),
        "acquired": count / seconds,
    }


def fill(wire: Wire, name: str, partitions: int) -> None:
    batch = batch_of(RECORD_BYTES, RECORDS_A_BATCH)
    for index in range(partitions):
        request = produce(name, batch, acks=1, partition=index)
        pump(wire, name, repeat(request, LOCKS // RECORDS_A_BATCH), 5)


def holder(wire: Wire, group: str, name: str, partitions: int) -> Holder:
    begin_all(wire, group, name, partitions)
    return Holder(wire, group, topic_id(wire, name), partitions)


def every_other(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(at, at) for first, last in ranges for at in range(first + 1, last + 1, 2)]


def resident_bytes(pid: int) -> float:
    time.sleep(SETTLE_SECONDS)
    return process.resident_mib(pid) * (1 << 20)


CELLS = (
    Cell(
        "share-in-flight-1m",
        (
            Figure("as acquired", "B each", "lower", must=1.0),
            Figure("scattered", "B each", "lower"),
            Figure("whole", "MiB", "lower", must=1.0),
            Figure("acquired", "records/s", "higher"),
        ),
        measure_in_flight,
        starts_nodes=True,
        most_rounds=3,
        fills_memory=True,
    ),
)
