"""Changes of share partitions that cannot be written: memory has what the log has, and no more."""

import asyncio
import random
from collections import deque
from typing import Any

import pytest

from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.share.state.coordinator import ShareChange
from broker.share.state.remembered import SharePartitionState
from broker.share.states import StateBatch
from protocol.errors import ErrorCode, KafkaError
from tests.support.worlds.transaction_world import TransactionWorld
from tests.unit.broker.share.state.test_share_coordinator import made, states

ACKNOWLEDGED, AVAILABLE = 2, 0


class HeldWrites:
    """Writes of the state topic that wait for the test to say what becomes of them."""

    def __init__(self, world: TransactionWorld) -> None:
        self._topic: Any = states(world).topic
        self._real = self._topic.write
        self._topic.write = self._hold
        self._waiting: deque[tuple[tuple[Any, ...], Deferred[Any]]] = deque()

    def _hold(self, *write: Any) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()
        self._waiting.append((write, answer))
        return answer

    def __len__(self) -> int:
        return len(self._waiting)

    async def next(self, *, counts: bool, is_answered: bool = True) -> None:
        write, answer = self._waiting.popleft()
        if counts:
            written = self._real(*write)
            result = await wait_for(written) if isinstance(written, Deferred) else written
        if not counts:
            answer.fail(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif is_answered:
            answer.resolve(result)
        else:  # as by a node whose lease was over for a moment
            answer.fail(KafkaError(ErrorCode.NOT_COORDINATOR))

    async def throw(self, dice: random.Random) -> None:
        """Whatever may become of the next one."""
        await self.next(counts=dice.random() < 0.7, is_answered=dice.random() < 0.8)

    def end(self) -> None:
        self._topic.write = self._real


def acknowledged(*offsets: int) -> ShareChange:
    batches = [StateBatch(each, each, ACKNOWLEDGED, 1) for each in offsets]
    return ShareChange(1, 0, 0, len(batches), batches)


def shown(state: SharePartitionState) -> tuple[object, ...]:
    return state.state_epoch, state.start_offset, state.finished, state.batches


async def test_of_two_refused_changes_of_one_turn_none_is_left() -> None:
    """Else a record whose acknowledgement was refused would never be delivered again."""
    world, key = await made()
    coordinator = states(world)
    await wait_for(coordinator.initialize(key, 1, 0))
    before, held = coordinator.states[key], HeldWrites(world)
    both = [coordinator.write(key, acknowledged(each)) for each in (0, 1)]
    await world.rests()
    while held:
        await held.next(counts=False)
    for each in both:
        with pytest.raises(KafkaError):
            await wait_for(each)
    assert coordinator.states[key] == before


async def test_a_partition_whose_beginning_is_refused_is_not_known() -> None:
    world, key = await made()
    coordinator = states(world)
    held = HeldWrites(world)
    both = [coordinator.initialize(key, 1, 0), coordinator.write(key, acknowledged(0))]
    await world.rests()
    while held:
        await held.next(counts=False)
    for each in both:
        with pytest.raises(KafkaError):
            await wait_for(each)
    assert key not in coordinator.states


async def test_what_was_answered_holds_behind_a_change_that_counts_unseen() -> None:
    """Its start is ahead of the one that the next change has."""
    world, key = await made()
    coordinator = states(world)

    async def change(start: int, *ranges: tuple[int, int]) -> None:
        batches = [StateBatch(*each, ACKNOWLEDGED, 1) for each in ranges]
        await wait_for(coordinator.write(key, ShareChange(1, 0, start, 0, batches)))

    await wait_for(coordinator.initialize(key, 1, 0))
    await change(50)
    await change(50, (61, 99))
    held = HeldWrites(world)
    unseen = asyncio.ensure_future(change(100, (50, 60)))
    await world.rests()
    await held.next(counts=True, is_answered=False)
    with pytest.raises(KafkaError):
        await unseen
    held.end()
    await change(51, (50, 50))
    again = await world.reborn()
    state = states(again).states[key]
    assert shown(state) == shown(coordinator.states[key])
    assert (state.start_offset, state.batches) == (51, [StateBatch(61, 99, ACKNOWLEDGED, 1)])


async def test_a_partition_that_was_forgotten_unseen_is_remembered_whole() -> None:
    world, key = await made()
    coordinator = states(world)
    await wait_for(coordinator.initialize(key, 1, 0))
    await wait_for(coordinator.write(key, acknowledged(3)))
    held = HeldWrites(world)
    forgetting = coordinator.delete(key)
    await world.rests()
    await held.next(counts=True, is_answered=False)
    with pytest.raises(KafkaError):
        await wait_for(forgetting)
    held.end()
    await wait_for(coordinator.write(key, acknowledged(5)))
    again = await world.reborn()
    assert shown(states(again).states[key]) == shown(coordinator.states[key])


@pytest.mark.parametrize("seed", range(60))
async def test_memory_and_log_agree_whatever_is_refused(seed: int) -> None:
    dice = random.Random(seed)
    world, key = await made(share_coordinator_snapshot_update_records_per_snapshot="3")
    coordinator = states(world)
    await wait_for(coordinator.initialize(key, 1, 0))
    held, answers, epoch = HeldWrites(world), list[Deferred[None]](), 1
    for _ in range(40):
        match dice.randrange(10):
            case 0:
                epoch += 1
                answers.append(coordinator.initialize(key, epoch, dice.randrange(5)))
            case 1 | 2 | 3:
                await world.rests()
            case 4 | 5 if held:
                await held.throw(dice)
            case _:
                batch = StateBatch(*[dice.randrange(20)] * 2, ACKNOWLEDGED, dice.randrange(1, 4))
                answers.append(coordinator.write(key, ShareChange(-1, 0, -1, -1, [batch])))
    await world.rests()
    while held:
        await held.throw(dice)
        await world.rests()
    held.end()
    for each in answers:
        assert each.settled
        each.listen(lambda *_: None)
    await wait_for(coordinator.write(key, ShareChange(-1, 0, -1, -1, [])))
    again = TransactionWorld(world.remains(), 1, **world.settings)
    await again.loaded()
    assert shown(states(again).states[key]) == shown(coordinator.states[key])
