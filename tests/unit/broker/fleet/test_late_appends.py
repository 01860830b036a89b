"""Appends of a life that is over, which were still being checked on a thread when it ended."""

import asyncio
import threading
from typing import Any

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.builder import build_batch
from storage.log.log import Log
from tests.unit.broker.fleet.test_local_logs import NOW, Committed, Node

SECONDS = 10.0


class SlowRules:
    """Rules of a log for which a batch takes long to check, until it may go on."""

    def __init__(self, log: Log) -> None:
        self._rules = log._appender._batch_rules
        self.begun, self.may_go_on = threading.Event(), threading.Event()
        log._appender._batch_rules = self  # type: ignore[assignment]

    def check(self, *args: Any) -> Any:
        checked = self._rules.check(*args)
        self.begun.set()
        self.may_go_on.wait(SECONDS)
        return checked


def late(log: Log, epoch: int) -> Any:
    batch = memoryview(bytearray(build_batch([(NOW, None, b"x" * 100)])))
    return log.append(batch, acks_all=True, leader_epoch=epoch)


async def test_an_append_that_is_being_checked_when_its_log_is_cut_harms_nothing() -> None:
    """The next leader's records are at these offsets of the same file by then."""
    node, committed = Node(), Committed()
    log = await node.load(committed, 1)
    committed.add(1, node.write(log, range(3), epoch=1))
    log.mark_durable(3)
    node.write(log, range(3, 5), epoch=1)  # not committed when the life ends
    rules = SlowRules(log.log)
    under_way = asyncio.ensure_future(asyncio.to_thread(late, log.log, 1))
    await asyncio.to_thread(rules.begun.wait, SECONDS)
    node.host.shards.end(log)
    goes_on = threading.Timer(0.2, rules.may_go_on.set)
    goes_on.start()
    again = await node.load(committed, 2)
    assert (rules.may_go_on.is_set(), again.end_offset) == (True, 3), "it was not waited for"
    committed.add(2, node.write(again, range(3, 13), epoch=2))
    again.mark_durable(13)
    acknowledged = again.batches(3, 13, 1 << 20)
    await asyncio.gather(under_way, return_exceptions=True)
    assert again.batches(3, 13, 1 << 20) == acknowledged
    assert node.values(again) == list(range(13))


async def test_an_append_of_an_earlier_leader_is_refused_once_the_next_one_loads() -> None:
    """Nothing had to be cut, so the log is the same: its epochs would go back."""
    node, committed = Node(), Committed()
    log = await node.load(committed, 1)
    committed.add(1, node.write(log, range(3), epoch=1))
    log.mark_durable(3)
    node.host.shards.end(log)
    again = await node.load(committed, 2)
    assert again.log is log.log
    with pytest.raises(KafkaError) as refused:
        late(log.log, 1)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert again.end_offset == 3
    late(again.log, 2)
    assert (again.end_offset, again.durable_offset) == (4, 3)
