"""A node's logs in a simulation: lists of batches, on a disk that may lose what is not synced.

A value is one record of one producer, `(producer, sequence)`. A log knows which it has, from its
own batches, and takes none twice, as a real one does by producer states.
"""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from broker.fleet.catalog.rows import OwnedShard, PartitionKey, PartitionRow
from broker.fleet.frame import StoredBatch
from broker.fleet.host import BytesOf, OwnedLog, ShardHost, WriteCommits
from tests.support.fleet.machines.sim_tier import SimTier

KEYS = 3


class Value(NamedTuple):
    """A record."""

    producer: int
    sequence: int

    def encoded(self) -> bytes:
        return b"%d,%d" % self

    @property
    def key(self) -> bytes:
        """The key of its record in a compacted topic."""
        return b"%d" % (self.sequence % KEYS)


def decoded(data: bytes) -> Value:
    producer, sequence = data.split(b",")
    return Value(int(producer), int(sequence))


class SimBatch(NamedTuple):
    """A record, with what its batch says."""

    epoch: int
    arrival_ms: int
    value: Value


class ServedLog(Protocol):
    """A log that clients may reach."""

    takes_writes: bool
    answers: bool

    @property
    def owned(self) -> OwnedLog:
        """As the committer knows it."""

    def append(self, values: Sequence[Value], sequence: int, now_ms: int) -> int:
        """The offset behind a batch; its first value is its producer's number `sequence` here."""

    def committed(self) -> list[SimBatch]:
        """All that readers see, from the log's start."""

    def by_offset(self) -> Mapping[int, SimBatch]:
        """The same, by offset."""


class Host(Protocol):
    """A process with logs."""

    served: dict[PartitionKey, ServedLog]
    tier: SimTier | None
    """Its segments in a store; None without."""

    @property
    def shards(self) -> ShardHost:
        """As the fleet has it."""


class MachineDisk(Protocol):
    """The disk of a machine."""

    def lose_tails(self, dice: random.Random) -> None:
        """A power cut."""

    def lose_all(self) -> None:
        """Another machine begins with this name."""

    def host(self, dice: random.Random) -> Host:
        """A process begins on it."""


class Disk:
    """Batches by partition that a node keeps over its restarts."""

    def __init__(self) -> None:
        self.logs: dict[PartitionKey, list[SimBatch]] = {}

    def lose_tails(self, dice: random.Random) -> None:
        """A power cut: of each log the end may go."""
        for batches in self.logs.values():
            del batches[dice.randint(0, len(batches)) :]

    def lose_all(self) -> None:
        self.logs = {}

    def host(self, _: random.Random) -> "SimHost":
        return SimHost(self)


class SimLog:
    """The log of one partition in one epoch."""

    def __init__(self, key: PartitionKey, shard: OwnedShard, batches: list[SimBatch]) -> None:
        self.partition = key
        self.shard = shard
        self._batches = batches
        self.durable_offset = len(batches)
        self.takes_writes = False
        self.answers = False
        self.takes_records = True

    @property
    def start_offset(self) -> int:
        return 0

    @property
    def end_offset(self) -> int:
        return len(self._batches)

    def __hash__(self) -> int:
        return id(self)

    @property
    def owned(self) -> OwnedLog:
        return self

    def append(self, values: Sequence[Value], _: int, now_ms: int) -> int:
        """The offset behind the value; that of its first arrival when it is there already."""
        [value] = values
        for offset, each in enumerate(self._batches):
            if each.value == value:
                return offset + 1
        arrival_ms = max(now_ms, self._batches[-1].arrival_ms if self._batches else 0)
        self._batches.append(SimBatch(self.shard.epoch, arrival_ms, value))
        return len(self._batches)

    def batches(self, begin: int, end: int, max_bytes: int) -> Sequence[StoredBatch]:
        end = min(end, begin + max(max_bytes // 4, 1))
        return [
            StoredBatch(offset, offset, 0, each.arrival_ms, each.value.encoded())
            for offset, each in enumerate(self._batches[begin:end], begin)
        ]

    def settled(self, offset: int) -> None:
        """A list knows all arrivals."""

    def mark_durable(self, offset: int) -> None:
        assert offset <= len(self._batches)
        self.durable_offset = max(self.durable_offset, offset)

    def committed(self) -> list[SimBatch]:
        return self._batches[: self.durable_offset]

    def by_offset(self) -> Mapping[int, SimBatch]:
        return dict(enumerate(self.committed()))


class SimHost:
    """The `ShardHost` of a node."""

    tier: SimTier | None = None

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.served: dict[PartitionKey, ServedLog] = {}

    @property
    def shards(self) -> ShardHost:
        return self

    async def load(self, row: PartitionRow, shard: OwnedShard, bytes_of: BytesOf) -> OwnedLog:
        """Keeps what the disk has of the same epochs and fetches the rest."""
        mine = self._disk.logs.get(row.partition, [])
        batches: list[SimBatch] = []
        for committed in row.spans:
            span = committed.span
            have = mine[span.base_offset : span.end_offset]
            if len(have) == span.end_offset - span.base_offset and all(
                each.epoch == span.epoch for each in have
            ):
                batches += have
                continue
            for arrived in await bytes_of(committed):
                batches.append(SimBatch(span.epoch, arrived.arrival_ms, decoded(arrived.data)))
            mine = mine[: span.base_offset]  # what follows was another history
        assert len(batches) == (row.spans[-1].span.end_offset if row.spans else 0)
        self._disk.logs[row.partition] = batches
        return SimLog(row.partition, shard, batches)

    def serve(self, log: OwnedLog, _: WriteCommits) -> None:
        assert isinstance(log, SimLog)
        log.takes_writes = log.answers = True
        self.served[log.partition] = log

    def end_writes(self, log: OwnedLog) -> None:
        assert isinstance(log, SimLog)
        log.takes_writes = False

    def end(self, log: OwnedLog) -> None:
        assert isinstance(log, SimLog)
        log.takes_writes = log.answers = False
        found = self.served.get(log.partition)
        if found is not None and found.owned is log:
            del self.served[log.partition]

    def remove(self, log: OwnedLog) -> None:
        self.end(log)
        self._disk.logs.pop(log.partition, None)
