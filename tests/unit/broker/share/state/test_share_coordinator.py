"""The share coordinator: what it remembers, refuses, writes and reads back (KIP-932)."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.share.state.coordinator import NOTHING, ShareChange, ShareCoordinator
from broker.share.state.key import ShareKey
from broker.share.state.records import StoredShare, most_snapshot_bytes, read_row, snapshot_row
from broker.share.state.remembered import SharePartitionState
from broker.share.states import StateBatch
from protocol.apis import delete_topics
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import iter_headers
from protocol.records.record import iter_records
from tests.support.worlds.transaction_world import TransactionWorld

SMALL = {"share_coordinator_state_topic_num_partitions": "2"}


async def made(**settings: str) -> tuple[TransactionWorld, ShareKey]:
    """A broker with a topic, and one of its share partitions."""
    world = TransactionWorld(None, 0, **{**SMALL, **settings})
    await world.make_topic(partitions=2)
    topic = world.broker.topics.image.topics["t"]
    return world, ShareKey("g", topic.topic_id, 0)


def states(world: TransactionWorld) -> ShareCoordinator:
    found: ShareCoordinator = world.broker.share_states
    return found


async def done(answer: Any) -> Any:
    return await wait_for(answer) if isinstance(answer, Deferred) else answer


def change(*batches: StateBatch, start: int = -1, finished: int = -1, **epochs: int) -> ShareChange:
    return ShareChange(
        epochs.get("state_epoch", -1), epochs.get("leader_epoch", -1), start, finished, batches
    )


def stored(world: TransactionWorld) -> list[StoredShare]:
    """All records, in order within each partition."""
    found = []
    for partition in states(world).topic.partitions:
        log = partition.log
        data = log.read(0, 1 << 20, up_to=log.snapshot.log_end_offset, min_one_batch=True).read()
        for position, header in iter_headers(data):
            batch = memoryview(data)[position : position + header.size_bytes]
            found += [read_row(each.key or b"", each.value) for each in iter_records(batch)]
    return [each for each in found if each is not None]


async def refused(answer: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        await done(answer())
    return ErrorCode(error.value.code)


async def test_the_topic_is_kafkas() -> None:
    world, key = await made()
    await done(states(world).initialize(key, 1, -1))
    overrides = world.broker.config.topic_overrides("__share_group_state")
    assert overrides == {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    whole = TransactionWorld(None, 0)
    assert states(whole).topic.partition_count == 50
    owner = "g1:yETHvHfKRgOQhdusmy-Ofg:0"
    assert states(whole).topic.index_of(owner) == 1, "as a running Kafka 4.3 chooses"


async def test_snapshots_and_updates_come_in_kafkas_order() -> None:
    """The records that a running Kafka 4.3 wrote, with a snapshot after five updates."""
    world, key = await made(share_coordinator_snapshot_update_records_per_snapshot="5")
    share = states(world)
    await done(share.initialize(key, 2, -1))
    for count in (1, 2, 3):
        await done(share.write(key, change(StateBatch(0, 5, 0, count))))
    one, two, three = StateBatch(0, 0, 2, 4), StateBatch(1, 1, 0, 4), StateBatch(2, 2, 4, 4)
    await done(share.write(key, change(one, two, three, start=0, finished=2)))
    await done(share.write(key, change(StateBatch(1, 1, 4, 5), start=1, finished=2)))
    await done(share.write(key, change(StateBatch(3, 3, 2, 4), start=3, finished=0)))
    snapshots = [
        each.value for each in stored(world) if isinstance(each.value, SharePartitionState)
    ]
    assert len(stored(world)) == 7
    assert [each.snapshot_epoch for each in snapshots] == [0, 1]
    assert snapshots[0][:6] == (0, 2, 0, -1, -1, [])
    assert snapshots[1][1:5] == (2, 0, 3, 0)
    assert snapshots[1].batches == [StateBatch(3, 3, 2, 4), StateBatch(4, 5, 0, 3)]
    assert share.summary(key).updates == 0


async def test_a_restart_finds_what_was_remembered() -> None:
    world, key = await made(share_coordinator_snapshot_update_records_per_snapshot="3")
    share, other = states(world), key._replace(partition=1, group="h")
    await done(share.initialize(other, 5, 17))
    await done(share.initialize(key, 2, 0))
    for offset in range(8):
        batch = StateBatch(offset, offset, 2, 1)
        await done(share.write(key, change(batch, start=offset, finished=1)))
    await done(share.initialize(key._replace(group="gone"), 1, 0))
    await done(share.delete(key._replace(group="gone")))
    again = await world.reborn()
    await states(again).load()
    assert states(again).states == share.states
    assert states(again).summary(key).start_offset == 7
    assert states(again).summary(other)[1:4] == (5, 0, 17)


async def test_what_is_not_read_yet_is_not_answered() -> None:
    world, key = await made()
    await done(states(world).initialize(key, 2, 0))
    share = states(TransactionWorld(world.remains(), world.seed + 1, **world.settings))
    for call in (
        lambda: share.initialize(key, 2, 0),
        lambda: share.read(key, 0),
        lambda: share.write(key, change()),
        lambda: share.delete(key),
        lambda: share.summary(key),
    ):
        assert await refused(call) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await share.load()
    assert (await done(share.read(key, 0))).start_offset == 0


async def test_older_epochs_are_fenced() -> None:
    world, key = await made()
    share = states(world)
    await done(share.initialize(key, 4, 0))
    assert (await done(share.read(key, 3))).leader_epoch == 0, "as it was before this leader"
    assert await refused(lambda: share.initialize(key, 3, 0)) == ErrorCode.FENCED_STATE_EPOCH
    assert await refused(lambda: share.read(key, 2)) == ErrorCode.FENCED_LEADER_EPOCH
    assert await refused(lambda: share.read(key, -1)) == ErrorCode.FENCED_LEADER_EPOCH
    write = change(StateBatch(0, 0, 2, 1), state_epoch=4, leader_epoch=2)
    assert await refused(lambda: share.write(key, write)) == ErrorCode.FENCED_LEADER_EPOCH
    write = write._replace(leader_epoch=3, state_epoch=3)
    assert await refused(lambda: share.write(key, write)) == ErrorCode.FENCED_STATE_EPOCH
    assert share.summary(key).batches == []
    await done(share.write(key, write._replace(state_epoch=4)))
    await done(share.initialize(key, 5, 9))
    assert share.summary(key)[:4] == (1, 5, 0, 9)


async def test_an_older_leader_stays_fenced_when_a_partition_begins_again() -> None:
    """Also after a restart; one that was forgotten knows no leader."""
    world, key = await made()
    await done(states(world).initialize(key, 1, 0))
    await done(states(world).read(key, 3))
    await done(states(world).initialize(key, 2, 5))
    again = await world.reborn()
    await states(again).load()
    for share in (states(world), states(again)):
        assert share.summary(key)[:4] == (1, 2, 0, 5)
        assert await refused(lambda: share.read(key, 2)) == ErrorCode.FENCED_LEADER_EPOCH  # noqa: B023
        write = change(StateBatch(5, 5, 2, 1), state_epoch=2, leader_epoch=2)
        assert await refused(lambda: share.write(key, write)) == ErrorCode.FENCED_LEADER_EPOCH  # noqa: B023
    share = states(again)
    await done(share.delete(key))
    await done(share.initialize(key, 1, 0))
    assert (await done(share.read(key, 0))).state_epoch == 1


async def test_unknown_share_partitions_are_refused_as_kafka_does() -> None:
    world, key = await made()
    share = states(world)
    unknown, beyond = key._replace(topic_id=UUID(int=7)), key._replace(partition=2)
    assert await refused(lambda: share.read(key, 0)) == ErrorCode.INVALID_REQUEST
    assert await refused(lambda: share.write(key, change())) == ErrorCode.INVALID_REQUEST
    assert share.summary(key) == NOTHING
    await done(share.delete(key))
    for each in (unknown, beyond):
        for call in (share.delete, share.summary, lambda key: share.initialize(key, 1, 0)):
            code = await refused(lambda call=call, each=each: call(each))  # type: ignore[misc]
            assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for each in (key._replace(partition=-1), key._replace(topic_id=UUID(int=0))):
        assert await refused(lambda each=each: share.summary(each)) == ErrorCode.INVALID_REQUEST  # type: ignore[misc]


async def test_changes_of_one_turn_are_one_batch_for_each_state_partition() -> None:
    world, key = await made(share_coordinator_state_topic_num_partitions="1")
    share = states(world)
    await share.topic.make()
    keys = [key._replace(group=f"g{number}") for number in range(20)]
    answers = [share.initialize(each, 1, 0) for each in keys]
    assert not any(each.settled for each in answers)
    await asyncio.gather(*map(wait_for, answers))
    log = share.topic.partitions[0].log
    data = log.read(0, 1 << 20, up_to=log.snapshot.log_end_offset, min_one_batch=True).read()
    assert [header.record_count for _, header in iter_headers(data)] == [20]


async def test_large_turns_are_cut_at_the_size_of_a_batch() -> None:
    world, key = await made(share_coordinator_state_topic_num_partitions="1")
    share = states(world)
    await share.topic.make()
    many = tuple(
        StateBatch(offset, offset, 2 * (offset // 2 % 2), 1) for offset in range(0, 80_000, 2)
    )
    keys = [key._replace(group=f"g{number}") for number in range(3)]
    answers = [share.initialize(each, 1, 0) for each in keys]
    answers += [share.write(each, change(*many)) for each in keys]
    await asyncio.gather(*map(wait_for, answers))
    log = share.topic.partitions[0].log
    data = log.read(0, 1 << 22, up_to=log.snapshot.log_end_offset, min_one_batch=True).read()
    assert [header.record_count for _, header in iter_headers(data)] == [4, 1, 1]


async def test_what_could_not_be_written_is_taken_back() -> None:
    world, key = await made(share_coordinator_state_topic_num_partitions="1")
    share = states(world)
    await done(share.initialize(key, 1, 0))
    before = share.summary(key)
    many = tuple(StateBatch(offset, offset, 2, 1) for offset in range(0, 200_000, 2))
    other = key._replace(partition=1)
    answers = [
        asyncio.ensure_future(wait_for(share.write(key, change(*many)))),
        asyncio.ensure_future(wait_for(share.initialize(other, 1, 0))),
    ]
    assert len(share.summary(key).batches) == len(many)
    found = await asyncio.gather(*answers, return_exceptions=True)
    assert isinstance(found[0], KafkaError)
    assert found[0].code == ErrorCode.MESSAGE_TOO_LARGE
    assert found[1] is None
    assert share.summary(key) == before
    await done(share.write(key, change(StateBatch(3, 3, 2, 1))))
    again = await world.reborn()
    await states(again).load()
    assert states(again).states == share.states


async def test_a_deleted_topic_is_forgotten() -> None:
    world, key = await made()
    await done(states(world).initialize(key, 1, 0))
    wanted = delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState(name="t")])
    await world.call(wanted, 6)
    await world.rests()
    assert states(world).states == {}
    assert stored(world)[-1] == StoredShare(key, None)
    again = await world.reborn()
    await states(again).load()
    assert states(again).states == {}


async def test_unreadable_records_are_counted_and_stepped_over() -> None:
    world, key = await made(share_coordinator_state_topic_num_partitions="1")
    share = states(world)
    await done(share.initialize(key, 1, 0))
    await wait_for(share.topic.write(key.owner, [(b"\0\0", b"x"), (b"\0\x09", b"x")]))
    again = await world.reborn()
    await states(again).load()
    assert states(again).states == share.states
    assert states(again).loading.unreadable_records == 1


async def test_a_snapshot_that_is_too_large_stops_no_change() -> None:
    world, key = await made(
        share_coordinator_state_topic_num_partitions="1",
        share_coordinator_snapshot_update_records_per_snapshot="1",
    )
    await done(states(world).initialize(key, 1, 0))
    for first in (0, 80_000):
        many = [StateBatch(at, at, 2, 1) for at in range(first + 1, first + 60_001, 2)]
        await done(states(world).write(key, change(*many, start=0)))
    for at in (160_001, 160_003, 160_005):
        await done(states(world).write(key, change(StateBatch(at, at, 2, 1), start=0)))
    remembered = states(world).summary(key)
    assert len(remembered.batches) == 60_003
    again = await world.reborn()
    await states(again).load()
    assert states(again).states[key].batches == remembered.batches
    await done(states(world).write(key, change(start=170_000)))
    assert states(world).summary(key).updates == 0, "a snapshot again, once it fits"


@pytest.mark.parametrize("ranges", [0, 1, 300])
def test_the_size_of_a_snapshot_is_not_taken_for_less(ranges: int) -> None:
    key = ShareKey("gr\u00fc\u00dfe" * 9, UUID(int=7), 1 << 30)
    batches = [StateBatch(at, at, 2, 1) for at in range(ranges)]
    state = NOTHING._replace(finished=1 << 30, batches=batches)
    name, value = snapshot_row(key, state)
    assert value is not None
    assert len(name) + len(value) <= most_snapshot_bytes(key, state) <= len(name + value) + 64
