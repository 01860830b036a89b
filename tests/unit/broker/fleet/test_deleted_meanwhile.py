"""Topics that are deleted, or grow, while something is on its way for them: others go on."""

import asyncio
import threading
from typing import Any
from uuid import UUID

import pytest

from broker.fleet.catalog.rows import (
    CommitAnswer,
    OwnedShard,
    PartitionKey,
    PartitionRow,
    TopicRow,
)
from broker.fleet.committer import NotCommitted
from broker.fleet.host import BytesOf, OwnedLog
from broker.fleet.times import FleetTimes
from broker.runtime.lanes import DiskLanes
from storage.log.log import Log
from tests.support.fleet.logs_alone import LogsAlone
from tests.support.fleet.machines.commit_store import CommitsInMemory
from tests.support.fleet.machines.sim_host import Disk, SimHost, Value
from tests.support.fleet.node_services import two_nodes
from tests.support.fleet.small_fleet import TIMES, SmallNode, rows_with
from tests.support.fleet.virtual_loop import run_virtual

GOES, STAYS = UUID(int=100), UUID(int=101)
TOPICS = TopicRow(GOES, "goes", [0]), TopicRow(STAYS, "stays", [1])


async def written_and_deleted(times: FleetTimes) -> tuple[SmallNode, list[BaseException | None]]:
    """Two topics of one node are written to, and one goes while an object is being put."""
    rows, host = await rows_with(*TOPICS), SimHost(Disk())
    node = SmallNode(rows, 1, host, store=CommitsInMemory(0.5), times=times)
    await asyncio.sleep(0.05)
    answers: list[BaseException | None] = []
    assert node.node.life is not None
    for topic_id in (GOES, STAYS):
        log = host.served[PartitionKey(topic_id, 0)]
        for number in range(3):
            end = log.append([Value(topic_id.int, number)], number, 0)
        node.node.life.committer.request(log.owned, end, answers.append)
    await asyncio.sleep(0.2)
    await rows.delete_topic(GOES, 1000)
    await asyncio.sleep(2)
    await node.stop()
    return node, answers


@pytest.mark.parametrize(
    "times",
    [TIMES._replace(inline_bytes=1, checkpoint=1e9), TIMES._replace(checkpoint=0.1)],
    ids=["commit", "checkpoint"],
)
def test_what_was_on_its_way_for_a_deleted_topic_ends_no_life(times: FleetTimes) -> None:
    node, answers = run_virtual(written_and_deleted(times))
    assert node.tally.lives == 1
    if node.tally.checkpoints == 0:
        assert node.tally.answers[CommitAnswer.NO_PARTITION.value] == 1
    assert [each for each in answers if not isinstance(each, NotCommitted)] in ([None], [None] * 2)


class Forgetful(LogsAlone):
    """The image of a node that hears of a deletion while the log is being loaded."""

    def __init__(self) -> None:
        self.gone = set[UUID]()

    def knows(self, row: PartitionRow) -> bool:
        return row.partition.topic_id not in self.gone


class DeletedOnTheWay(SimHost):
    """One topic goes while its log is being loaded."""

    def __init__(self, image: Forgetful) -> None:
        super().__init__(Disk())
        self._image = image
        self.ended = list[PartitionKey]()

    async def load(self, row: PartitionRow, shard: OwnedShard, bytes_of: BytesOf) -> OwnedLog:
        if row.topic == "goes":
            self._image.gone.add(GOES)
        return await super().load(row, shard, bytes_of)

    def end(self, log: OwnedLog) -> None:
        self.ended.append(log.partition)
        super().end(log)


def test_a_topic_that_goes_while_it_is_loaded_is_not_served() -> None:
    async def story() -> None:
        image = Forgetful()
        host = DeletedOnTheWay(image)
        node = SmallNode(await rows_with(*TOPICS), 1, host, image)
        await asyncio.sleep(1)
        assert list(host.served) == [PartitionKey(STAYS, 0)]
        assert host.ended == [PartitionKey(GOES, 0)]
        await node.stop()

    run_virtual(story())


async def test_partitions_that_a_row_does_not_have_yet_wait_for_the_next_one() -> None:
    node, _ = two_nodes()
    topic_id = await node.create("t", 1)
    await node.catches_up()
    before = node.image.rows
    assert await node.rows.grow_topic(topic_id, 1, [2, 3])
    await node.catches_up()
    assert node.shapes()["t"] == 3
    shards = {each.shard_id: each for each in await node.rows.shards()}
    node.led.led_elsewhere(before, shards)
    node.led.led_elsewhere(node.image.rows, shards)
    topic = node.broker.topics.image.by_id[topic_id]
    assert all(each.leadership is not None for each in topic.partitions)


async def test_topics_that_a_life_began_to_make_are_those_of_the_next_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread that makes a log goes on when the life ends, and the next life has that log."""
    first, second = two_nodes()
    await first.create("t")
    lanes = DiskLanes(asyncio.get_running_loop())
    monkeypatch.setattr(second.broker.lane, "run", lanes.lane("logs").run)
    logs, begun, may_go_on = second.broker.logs, threading.Event(), threading.Event()
    created = logs._created

    def slow(*args: Any) -> Log:
        if not begun.is_set():
            begun.set()
            may_go_on.wait(10)
        return created(*args)

    monkeypatch.setattr(logs, "_created", slow)
    of_a_life = asyncio.ensure_future(second.catches_up())
    await asyncio.to_thread(begun.wait, 10)
    of_a_life.cancel()
    await asyncio.gather(of_a_life, return_exceptions=True)
    of_the_next = asyncio.ensure_future(second.catches_up())
    await asyncio.sleep(0.1)
    may_go_on.set()
    await of_the_next
    await lanes.close()
    [partition] = second.broker.topics.image.topics["t"].partitions
    assert partition.log is logs.logs["t", 0]
