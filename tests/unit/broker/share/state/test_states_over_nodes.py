"""States of share partitions that another node of a fleet remembers: what was answered holds,
whichever requests and answers are lost, doubled and late, and an old leader changes nothing.
"""

import asyncio
import random
from typing import Any

import pytest

from broker.fleet.peers.peers import PeerSilent, PeerUnreached
from broker.partitions.leadership import NOBODY, Leadership
from broker.runtime.gathering import wait_for
from broker.share.state.coordinator import ShareChange
from broker.share.state.key import ShareKey
from broker.share.state.over_nodes import routed
from broker.share.state.over_nodes.routed import RoutedShareStates
from broker.share.states import ACKNOWLEDGED, AVAILABLE, StateBatch
from protocol.errors import ErrorCode, KafkaError
from protocol.registry import api_of
from tests.support.fleet.hand_lease import HandLease
from tests.support.worlds.transaction_world import TransactionWorld

SMALL = {"share_coordinator_state_topic_num_partitions": "2"}
HERE, THERE, EPOCH = 1, 2, 5
HISTORIES, STEPS = 150, 25


class TwoNodes:
    """A leader of partitions, and the share coordinator at another node; between them what a test
    wants.
    """

    def __init__(self, seed: int = 0) -> None:
        self.leader, self.remote = (TransactionWorld(None, 0, **SMALL) for _ in range(2))
        self.dice = random.Random(seed)
        self.faults = 0.0
        """Share of requests to which something happens."""
        self.loses_answers = False
        """Of all that is asked."""
        self.late: list[Any] = []
        self.asked: list[str] = []

    async def begin(self) -> None:
        for each in (self.leader, self.remote):
            await each.make_topic(partitions=2)
            await each.broker.share_states.topic.make()
        topic_id = self.leader.broker.topics.image.topics["t"].topic_id
        assert topic_id == self.remote.broker.topics.image.topics["t"].topic_id
        self.key = ShareKey("g", topic_id, 0)
        for partition in self.leader.broker.share_states.topic.partitions:
            partition.led_by(Leadership(THERE, EPOCH, is_here=False))
        self.remote.broker.share_states.shared(self.remote.clock.monotonic, THERE)
        await self.lead()
        self.leader.broker.share_states.shared(self.leader.clock.monotonic, HERE)
        self.states = self.node()

    def node(self) -> RoutedShareStates:
        """A node's way to the coordinator."""
        broker = self.leader.broker
        ticks = iter(range(1_000_000))
        return RoutedShareStates(
            broker.share_states, broker.topics, self.ask, lambda: next(ticks) / 1000
        )

    async def lead(self) -> None:
        states = self.remote.broker.share_states
        for partition in states.topic.partitions:
            states.loading.gain(partition)
            await states.lead(partition)

    async def move(self) -> None:
        """The coordinator goes, and another one reads what it has left."""
        states = self.remote.broker.share_states
        for partition in states.topic.partitions:
            states.lead_no_more(partition)
        assert not states.states
        await self.lead()

    async def ask(self, node_id: int, request: Any) -> Any:
        assert node_id == THERE
        self.asked.append(type(request).__name__)
        if self.late and self.dice.random() < 0.3:
            await self.carry_out(self.late.pop(self.dice.randrange(len(self.late))))
        if self.loses_answers:
            await self.carry_out(request)
            raise PeerSilent("the answer is lost")
        if self.dice.random() >= self.faults:
            return await self.carry_out(request)
        match self.dice.randrange(5):
            case 0:
                raise PeerUnreached("nothing was sent")
            case 1:
                self.late.append(request)
                raise PeerSilent("it comes late")
            case 2:
                await self.carry_out(request)
                raise PeerSilent("the answer is lost")
            case 3:
                await self.carry_out(request)
                self.late.append(request)
                raise PeerSilent("the answer is lost, and a copy comes late")
            case _:
                await self.move()
                return await self.carry_out(request)

    async def carry_out(self, request: Any) -> Any:
        return await self.remote.call(request, api_of(type(request)).max_version)

    def write(self, states: RoutedShareStates, change: ShareChange) -> Any:
        return wait_for(states.write(self.key, change))


@pytest.fixture
async def nodes(monkeypatch: pytest.MonkeyPatch) -> TwoNodes:
    monkeypatch.setattr(routed, "FIRST_PAUSE_SECONDS", 0.0)
    made = TwoNodes()
    await made.begin()
    return made


def change(
    *batches: StateBatch, start: int = 0, state_epoch: int = 1, leader_epoch: int = EPOCH
) -> ShareChange:
    return ShareChange(state_epoch, leader_epoch, start, 0, batches)


async def refused(answer: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        await answer
    return ErrorCode(error.value.code)


async def test_what_one_node_stores_another_one_reads(nodes: TwoNodes) -> None:
    states, key = nodes.states, nodes.key
    await wait_for(states.initialize(key, 1, -1))
    assert (await wait_for(states.read(key, EPOCH))).start_offset == -1
    await nodes.write(states, change(StateBatch(0, 4, ACKNOWLEDGED, 1), start=0))
    await nodes.move()
    found = await wait_for(states.read(key, EPOCH + 1))
    assert (found.state_epoch, found.start_offset) == (1, 0)
    assert found.batches == [StateBatch(0, 4, ACKNOWLEDGED, 1)]
    summary = await wait_for(states.summary(key))
    assert (summary.start_offset, summary.leader_epoch) == (0, EPOCH + 1)
    await wait_for(states.delete(key))
    assert (await wait_for(states.summary(key))).start_offset == -1


async def test_changes_that_wait_go_together(nodes: TwoNodes) -> None:
    states, key = nodes.states, nodes.key
    await wait_for(states.initialize(key, 1, 0))
    nodes.asked.clear()
    first = states.write(key, change(StateBatch(0, 0, ACKNOWLEDGED, 1)))
    await asyncio.sleep(0)  # it is on its way
    rest = [
        states.write(key, change(StateBatch(each, each, ACKNOWLEDGED, 1))) for each in range(1, 50)
    ]
    other = states.write(key, change(StateBatch(50, 50, ACKNOWLEDGED, 1), leader_epoch=EPOCH + 1))
    read = states.read(key, EPOCH + 1)
    late = states.write(key, change(StateBatch(51, 51, ACKNOWLEDGED, 1), leader_epoch=EPOCH + 1))
    for each in (first, *rest, other):
        await wait_for(each)
    assert (await wait_for(read)).batches == [StateBatch(0, 50, ACKNOWLEDGED, 1)]
    await wait_for(late)
    assert nodes.asked == [
        *["WriteShareGroupStateRequest"] * 3,
        "ReadShareGroupStateRequest",
        "WriteShareGroupStateRequest",
    ]


async def test_changes_that_go_together_fail_together(nodes: TwoNodes) -> None:
    states, key = nodes.states, nodes.key
    await wait_for(states.initialize(key, 1, 0))
    await wait_for(states.read(key, EPOCH + 1))
    old = [states.write(key, change(StateBatch(each, each, 0, 1))) for each in range(3)]
    for each in old:
        assert await refused(wait_for(each)) == ErrorCode.FENCED_LEADER_EPOCH


async def test_an_old_leader_and_an_old_state_are_fenced(nodes: TwoNodes) -> None:
    states, key = nodes.states, nodes.key
    await wait_for(states.initialize(key, 2, 0))
    await wait_for(states.read(key, EPOCH + 1))
    one = StateBatch(0, 0, ACKNOWLEDGED, 1)
    old = change(one, state_epoch=2)
    assert await refused(nodes.write(states, old)) == ErrorCode.FENCED_LEADER_EPOCH
    assert await refused(wait_for(states.read(key, EPOCH))) == ErrorCode.FENCED_LEADER_EPOCH
    older = change(one, state_epoch=1, leader_epoch=EPOCH + 1)
    assert await refused(nodes.write(states, older)) == ErrorCode.FENCED_STATE_EPOCH
    again = wait_for(states.initialize(key, 1, -1))
    assert await refused(again) == ErrorCode.FENCED_STATE_EPOCH
    assert (await wait_for(states.read(key, EPOCH + 1))).batches == []


async def test_a_coordinator_without_a_lease_or_a_partition_is_no_coordinator(
    nodes: TwoNodes,
) -> None:
    share, key = nodes.remote.broker.share_states, nodes.key
    await wait_for(share.initialize(key, 1, 0))
    lease = HandLease()
    partition = share.topic.partitions[share.topic.index_of(key.owner)]
    partition.led_by(Leadership(THERE, EPOCH, is_here=True, lease=lease))
    assert share.summary(key).state_epoch == 1
    lease.is_held = False
    with pytest.raises(KafkaError) as error:
        share.summary(key)
    assert error.value.code == ErrorCode.NOT_COORDINATOR
    share.lead_no_more(partition)
    with pytest.raises(KafkaError) as error:
        share.summary(key)
    assert error.value.code == ErrorCode.NOT_COORDINATOR
    share.loading.gain(partition)
    with pytest.raises(KafkaError) as error:
        share.summary(key)
    assert error.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_while_nobody_leads_it_waits_and_not_for_ever(nodes: TwoNodes) -> None:
    topic = nodes.leader.broker.share_states.topic
    for partition in topic.partitions:
        partition.led_by(Leadership(NOBODY, EPOCH, is_here=False))
    waiting = nodes.states.summary(nodes.key)
    assert await refused(wait_for(waiting)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    waiting = nodes.states.summary(nodes.key)
    await asyncio.sleep(0)
    for partition in topic.partitions:
        partition.led_by(Leadership(THERE, EPOCH + 1, is_here=False))
    assert (await wait_for(waiting)).start_offset == -1


async def test_a_start_that_is_set_and_a_deletion_are_not_sent_twice(nodes: TwoNodes) -> None:
    states, key = nodes.states, nodes.key
    await wait_for(states.initialize(key, 1, -1))
    nodes.loses_answers = True
    started = wait_for(states.initialize(key, 1, 7))
    assert await refused(started) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await refused(wait_for(states.delete(key))) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert nodes.asked[1:] == ["InitializeShareGroupStateRequest", "DeleteShareGroupStateRequest"]


@pytest.mark.parametrize("seed", range(HISTORIES // 50))
async def test_what_was_answered_holds_over_all_faults(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader after another accepts and releases records; each reads what the one before left."""
    monkeypatch.setattr(routed, "FIRST_PAUSE_SECONDS", 0.0)
    for history in range(50):
        nodes = TwoNodes(seed * 1000 + history)
        await nodes.begin()
        nodes.faults = 0.4
        await _played(nodes)


async def _played(nodes: TwoNodes) -> None:
    dice, key = nodes.dice, nodes.key
    finished: set[int] = set()
    """Records whose end was answered."""
    counts: dict[int, int] = {}
    start, leader_epoch = 0, EPOCH
    await wait_for(nodes.states.initialize(key, 1, -1))
    for _ in range(STEPS):
        if dice.random() < 0.2:
            leader_epoch += 1
            found = await wait_for(nodes.node().read(key, leader_epoch))
            start = _checked(found, finished)
            continue
        open_ones = [each for each in range(start, start + 8) if each not in finished]
        some = dice.sample(open_ones, min(len(open_ones), dice.randint(1, 3)))
        for record in some:
            counts[record] = counts.get(record, 0) + 1
        changes = {
            record: StateBatch(
                record, record, ACKNOWLEDGED if dice.random() < 0.7 else AVAILABLE, counts[record]
            )
            for record in some
        }
        writes = {
            record: nodes.states.write(key, change(batch, start=start, leader_epoch=leader_epoch))
            for record, batch in changes.items()
        }
        for record, written in writes.items():
            try:
                await wait_for(written)
            except KafkaError as error:
                assert error.code == ErrorCode.COORDINATOR_NOT_AVAILABLE  # noqa: PT017
                continue
            if changes[record].state == ACKNOWLEDGED:
                finished.add(record)
        while start in finished:
            start += 1
    nodes.faults = 0.0
    for request in nodes.late:
        await nodes.carry_out(request)
    _checked(await wait_for(nodes.states.read(key, leader_epoch + 1)), finished)


def _checked(found: Any, finished: set[int]) -> int:
    """The state has every end that was answered; its first offset that is not finished."""
    stored = {
        offset
        for each in found.batches
        if each.state == ACKNOWLEDGED
        for offset in range(each.first, each.last + 1)
    }
    for record in finished:
        assert record < found.start_offset or record in stored, (record, found)
    start: int = max(found.start_offset, 0)
    while start in stored:
        start += 1
    finished |= stored | set(range(start))
    return start
