"""`__share_group_state` is kept short, and nothing that was promised goes with what goes."""

import pytest

from broker.runtime.gathering import wait_for
from broker.share.state.key import ShareKey
from broker.share.state.remembered import SharePartitionState
from broker.share.states import StateBatch
from storage.log.log import Log
from tests.support.worlds.transaction_world import TransactionWorld
from tests.unit.broker.share.state.test_share_coordinator import change, done, made, states, stored

ONE = {"share_coordinator_state_topic_num_partitions": "1"}


async def accept(world: TransactionWorld, key: ShareKey, offsets: range) -> None:
    for offset in offsets:
        batch = StateBatch(offset, offset, 2, 1)
        await done(states(world).write(key, change(batch, start=offset, finished=1)))


def log_of(world: TransactionWorld) -> Log:
    return states(world).topic.partitions[0].log


async def found_again(world: TransactionWorld) -> dict[ShareKey, SharePartitionState]:
    again = await world.reborn()
    await states(again).load()
    return states(again).states


async def test_what_lies_before_the_oldest_snapshot_goes() -> None:
    world, key = await made(**ONE, share_coordinator_snapshot_update_records_per_snapshot="3")
    other = key._replace(group="h")
    await done(states(world).initialize(key, 1, 0))
    await done(states(world).initialize(other, 1, 0))
    await accept(world, key, range(8))
    await world.broker.share_pruning.prune()
    assert log_of(world).snapshot.log_start_offset == 1, "the other one is read from there"
    await done(states(world).initialize(other, 2, 0))
    await world.broker.share_pruning.prune()
    assert log_of(world).snapshot.log_start_offset == 9, "the last snapshot of the first"
    assert await found_again(world) == states(world).states


async def test_a_queue_that_rests_holds_no_records_back() -> None:
    world, key = await made(**ONE, share_coordinator_snapshot_update_records_per_snapshot="3")
    rests, pruning = key._replace(group="h"), world.broker.share_pruning
    await done(states(world).initialize(rests, 1, 0))
    await accept(world, rests, range(2))
    created_ms = states(world).summary(rests).created_ms
    await done(states(world).initialize(key, 1, 0))
    await pruning.renew()
    assert states(world).summary(rests).snapshot_epoch == 0, "it is not older than one interval"
    world.clock.advance(300_000)
    await accept(world, key, range(8))
    await pruning.renew()
    assert states(world).summary(rests).snapshot_epoch == 1
    last = stored(world)[-1]
    assert last.key == rests
    assert isinstance(last.value, SharePartitionState)
    assert last.value.created_ms == created_ms, "as Kafka tells a snapshot of what rests"
    assert last.value.written_ms == created_ms + 300_000
    await pruning.prune()
    assert log_of(world).snapshot.log_start_offset == 11, "the last snapshot of the one that works"
    assert await found_again(world) == states(world).states


async def test_queues_that_rest_cost_nothing() -> None:
    """Kafka writes all of them once more in each interval in which one of them works."""
    world, key = await made(**ONE)
    keys = [key._replace(group=f"g{number}") for number in range(120)]
    for each in keys:
        await done(states(world).initialize(each, 1, 0))
    await accept(world, keys[0], range(3))
    pruning = world.broker.share_pruning
    for _ in range(3):
        await pruning.renew()
        await pruning.prune()
    assert log_of(world).snapshot.log_end_offset == 123, "three records are no more than 120"
    await accept(world, keys[0], range(3, 200))
    await pruning.renew()
    await pruning.prune()
    await pruning.renew()
    snapshot = log_of(world).snapshot
    assert (snapshot.log_start_offset, snapshot.log_end_offset) == (320, 440)
    assert await found_again(world) == states(world).states


async def test_what_was_forgotten_holds_nothing_back() -> None:
    world, key = await made(**ONE)
    gone = key._replace(group="gone")
    await done(states(world).initialize(gone, 1, 0))
    await done(states(world).initialize(key, 1, 0))
    await done(states(world).delete(gone))
    await world.broker.share_pruning.prune()
    assert log_of(world).snapshot.log_start_offset == 1
    await done(states(world).delete(key))
    await world.broker.share_pruning.prune()
    assert log_of(world).snapshot.log_start_offset == 4
    assert await found_again(world) == {}


async def test_a_snapshot_that_is_not_durable_yet_replaces_none() -> None:
    world, key = await made(**ONE)
    await done(states(world).initialize(key, 1, 0))
    await accept(world, key, range(4))
    under_way = states(world).snapshot(key)
    first = states(world).needed.first(0, log_of(world).snapshot.log_end_offset)
    assert first == 0
    await wait_for(under_way)
    assert states(world).needed.first(0, log_of(world).snapshot.log_end_offset) == 5


async def test_a_first_snapshot_under_way_stays() -> None:
    world, key = await made(**ONE)
    await done(states(world).initialize(key._replace(group="gone"), 1, 0))
    await done(states(world).delete(key._replace(group="gone")))
    under_way = states(world).initialize(key, 1, 0)
    end = log_of(world).snapshot.log_end_offset
    assert states(world).needed.first(0, end + 5) == end
    await wait_for(under_way)
    await world.broker.share_pruning.prune()
    assert await found_again(world) == states(world).states


async def test_after_a_restart_it_goes_on() -> None:
    world, key = await made(**ONE)
    await done(states(world).initialize(key, 1, 0))
    await accept(world, key, range(9))
    again = await world.reborn()
    await again.broker.share_pruning.prune()
    assert log_of(again).snapshot.log_start_offset == 0, "not read yet"
    await states(again).load()
    await again.broker.share_pruning.renew()
    await again.broker.share_pruning.prune()
    assert log_of(again).snapshot.log_start_offset == 10
    assert states(again).states.keys() == {key}
    assert await found_again(again) == states(again).states


async def test_records_that_are_not_understood_stay() -> None:
    world, key = await made(**ONE)
    await done(states(world).initialize(key, 1, 0))
    await wait_for(states(world).topic.write(key.owner, [(b"\0\0", b"x")]))
    await accept(world, key, range(9))
    again = await world.reborn()
    await states(again).load()
    await done(states(again).snapshot(key))
    await again.broker.share_pruning.renew()
    await again.broker.share_pruning.prune()
    assert log_of(again).snapshot.log_start_offset == 0


@pytest.mark.parametrize("durability", ["os", "fsync"])
async def test_the_power_goes_after_what_came_before_has_gone(durability: str) -> None:
    world, key = await made(**ONE, horolog_durability=durability)
    await done(states(world).initialize(key, 1, 0))
    await accept(world, key, range(9))
    await done(states(world).snapshot(key))
    await world.broker.share_pruning.prune()
    again = TransactionWorld(world.fs.after_crash(7), world.seed + 1, **world.settings)
    await states(again).load()
    assert states(again).states == states(world).states


async def test_one_queue_that_fails_stops_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    world, key = await made(**ONE)
    keys = [key._replace(group=f"g{number}") for number in range(3)]
    for each in keys:
        await done(states(world).initialize(each, 1, 0))
    many = [StateBatch(at, at, 2, 1) for at in range(1, 60_001, 2)]
    await done(states(world).write(keys[0], change(*many, start=0)))
    more = [StateBatch(at, at, 2, 1) for at in range(60_001, 120_001, 2)]
    await done(states(world).write(keys[0], change(*more, start=0)))
    pruning = world.broker.share_pruning
    await pruning.renew()
    await accept(world, keys[1], range(50))
    await pruning.renew()
    epochs = [states(world).summary(each).snapshot_epoch for each in keys]
    assert epochs[2] == 1
    assert keys[0].owner in capsys.readouterr().err
