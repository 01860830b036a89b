"""Partitions that are put in service while a change of topics is being written to a file."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker.fleet.catalog.rows import OwnedShard, PartitionKey, PartitionRow
from broker.runtime.lanes import DiskLanes
from protocol.records.builder import build_batch
from tests.support.fleet.commits import HeldCommits
from tests.support.fleet.node_services import FleetNodeWorld, two_nodes

NOW = 1_700_000_000_000


PATIENCE = 10


async def bytes_of(_: Any) -> Any:
    raise AssertionError


async def led_again(node: FleetNodeWorld, key: PartitionKey, epoch: int) -> None:
    """A take-over: what was not committed is cut, so the log is another object."""
    row = PartitionRow(key, "t", 1, 0, (), None)
    log = await node.logs.load(row, OwnedShard(1, epoch), bytes_of)
    node.logs.serve(log, HeldCommits())


@asynccontextmanager
async def on_threads(node: FleetNodeWorld, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Files are written on threads, as in a broker."""
    lanes = DiskLanes(asyncio.get_running_loop())
    monkeypatch.setattr(node.broker.lane, "run", lanes.lane("logs").run)
    yield
    await lanes.close()


@pytest.mark.parametrize(("change", "step"), [("delete", "_write_state"), ("grow", "_make_log")])
async def test_a_partition_that_is_taken_over_meanwhile_stays_led(
    change: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, _ = two_nodes()
    topic_id, other_id = await node.create("t"), await node.create("other")
    await node.catches_up()
    key = PartitionKey(topic_id, 0)
    await led_again(node, key, 1)
    topics, image = node.broker.topics, node.image
    batch = build_batch([(NOW, None, b"uncommitted")])
    log = topics.image.topics["t"].partitions[0].log
    log.append(memoryview(bytearray(batch)), acks_all=True, leader_epoch=1)
    if change == "delete":
        assert await node.rows.delete_topic(other_id, 1000)
    else:
        assert await node.rows.grow_topic(topic_id, 1, [1])

    begun, may_go_on, does = threading.Event(), threading.Event(), getattr(topics, step)

    def slowly(*args: Any) -> Any:
        begun.set()
        assert may_go_on.wait(PATIENCE)
        return does(*args)

    monkeypatch.setattr(topics, step, slowly)
    async with on_threads(node, monkeypatch):
        following = asyncio.ensure_future(image.refresh())
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        await led_again(node, key, 2)
        served = topics.image.topics["t"].partitions[0]
        may_go_on.set()
        await following
    image.seen(await node.rows.nodes(), await node.rows.shards())
    assert topics.image.topics["t"].partitions[0] is served
    assert served.leader_elsewhere is None
    assert not served.log.is_closed
    assert ("other" in topics.image.topics) == (change == "grow")
    assert len(topics.image.topics["t"].partitions) == 1 + (change == "grow")
