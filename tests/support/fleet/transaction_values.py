"""Values of the logs of `transaction_world`: records, markers, and what coordinators remember."""

from enum import IntEnum
from typing import NamedTuple

from tests.support.fleet.machines.sim_host import Value


class Phase(IntEnum):
    """Memory of a coordinator about the newest transaction of a producer."""

    EMPTY = 0
    ONGOING = 1
    COMMIT = 2
    ABORT = 3
    COMMITTED = 4
    ABORTED = 5


ENDING = {Phase.COMMIT: Phase.COMMITTED, Phase.ABORT: Phase.ABORTED}


class State(NamedTuple):
    """A record of a coordinator."""

    epoch: int
    number: int
    phase: Phase

    def value(self, producer: int) -> Value:
        return Value(producer, (self.epoch * 1000 + self.number) * 8 + self.phase)


class TransactionId(NamedTuple):
    """A transaction as its client counts it."""

    producer: int
    epoch: int
    number: int

    def record(self, index: int) -> Value:
        return Value(self.producer, (self.epoch * 1000 + self.number) * 100 + index)


def transaction_of(record: Value) -> TransactionId:
    first = record.sequence // 100
    return TransactionId(record.producer, first // 1000, first % 1000)


class Mark(NamedTuple):
    """A marker in a log; `nonce` makes each one another."""

    producer: int
    epoch: int
    commits: bool
    nonce: int

    def value(self) -> Value:
        return Value(-1 - self.producer, (self.nonce * 1000 + self.epoch) * 2 + self.commits)


def mark_of(value: Value) -> Mark | None:
    """None for a record."""
    if value.producer >= 0:
        return None
    rest, commits = divmod(value.sequence, 2)
    return Mark(-1 - value.producer, rest % 1000, bool(commits), rest // 1000)
