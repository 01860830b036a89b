"""Transactions through the handlers: what producers are told, what readers see, what time does."""

import asyncio
from typing import Any

import pytest

from broker.partitions.leadership import Leadership
from broker.topics.names import CONSUMER_OFFSETS
from broker.transactions.rules import ProducerClaim
from protocol.apis import add_partitions_to_txn, delete_groups, list_offsets, offset_commit
from protocol.errors import ErrorCode, KafkaError
from tests.support.worlds.handler_world import BATCH_TIME, ManualCommit
from tests.support.worlds.transaction_world import (
    GROUP,
    TIMEOUT_MS,
    Producer,
    TransactionWorld,
    producer,
    transaction_world,
)

BOTH = pytest.mark.parametrize("version", [1, 2])


@pytest.fixture
async def world() -> TransactionWorld:
    return await transaction_world()


@BOTH
async def test_the_largest_time_is_not_told_while_it_is_in_an_open_transaction(
    world: TransactionWorld, version: int
) -> None:
    await world.produce(b"before", at=BATCH_TIME - 1)
    one = await producer(world, version=version)
    assert await one.write(b"v") == 0
    assert await largest(world, committed=False) == (BATCH_TIME, 1)
    assert await largest(world, committed=True) == (-1, -1)
    assert await one.end() == 0
    await world.rests()
    assert await largest(world, committed=True) == await largest(world, committed=False)
    assert (await largest(world, committed=True))[1] >= 1


async def largest(world: TransactionWorld, *, committed: bool) -> tuple[int, int]:
    """Time and offset of ListOffsets -3."""
    query = list_offsets.ListOffsetsPartition(
        partition_index=0, timestamp=-3, current_leader_epoch=-1
    )
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(committed),
        topics=[list_offsets.ListOffsetsTopic(name="t", partitions=[query])],
    )
    answer = (await world.call(request, 7)).topics[0].partitions[0]
    assert answer.error_code == 0
    return answer.timestamp, answer.offset


@BOTH
async def test_committed_records_are_read_aborted_ones_are_not(
    world: TransactionWorld, version: int
) -> None:
    one = await producer(world, version=version)
    for number, commit in enumerate([True, False, True]):
        assert await one.write(b"%d" % number) == 0
        assert await one.write(b"also %d" % number, 1) == 0
        assert world.stable_offset() < world.partition().log.snapshot.high_watermark
        assert await one.end(commit=commit) == 0
        await world.rests()
    assert await world.committed() == [b"0", b"2"]
    assert await world.committed(partition=1) == [b"also 0", b"also 2"]
    assert world.stable_offset() == world.partition().log.snapshot.log_end_offset == 6


async def test_list_offsets_of_committed_records_ends_where_they_do(
    world: TransactionWorld,
) -> None:
    one = await producer(world)
    await one.write(b"a")
    for isolation, end in ((0, 1), (1, 0)):
        asked = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
        topic = list_offsets.ListOffsetsTopic(name="t", partitions=[asked])
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1, isolation_level=isolation, topics=[topic]
        )
        answer = (await world.call(request, 6)).topics[0].partitions[0]
        assert answer.offset == end


@BOTH
async def test_the_next_owner_fences_the_one_before(world: TransactionWorld, version: int) -> None:
    old = await producer(world, version=version)
    await old.write(b"old")
    new = await producer(world, version=version)
    assert new.producer_id == old.producer_id
    assert new.epoch > old.epoch
    assert world.stable_offset() == 2, "what was open is aborted"
    assert await old.send(b"zombie") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await old.join(0) == [ErrorCode.PRODUCER_FENCED]
    assert await old.join(0, api_version=1) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert await old.end() == ErrorCode.PRODUCER_FENCED
    assert await old.begin(goes_on=True) == ErrorCode.PRODUCER_FENCED
    assert await new.write(b"new") == 0
    assert await new.end() == 0
    await world.rests()
    assert await world.committed() == [b"new"]


async def test_a_producer_goes_on_with_the_next_epoch(world: TransactionWorld) -> None:
    one = await producer(world)
    was = one.producer_id, one.epoch
    assert await one.begin(goes_on=True) == 0
    assert (one.producer_id, one.epoch) == (was[0], was[1] + 1)
    now = one.epoch
    one.epoch = was[1]
    assert await one.begin(goes_on=True) == 0, "a repetition"
    assert one.epoch == now


async def test_epochs_end_and_another_id_takes_over(world: TransactionWorld) -> None:
    one = await producer(world)
    was = one.producer_id
    one.epoch = _set_epoch(world, 32_766)
    assert await one.write(b"a") == 0
    assert await one.end() == 0
    await world.rests()
    assert await one.begin() == 0
    assert (one.producer_id > was, one.epoch) == (True, 0)
    assert await one.write(b"b") == 0
    assert await one.end() == 0
    await world.rests()
    assert await world.committed() == [b"a", b"b"]


async def test_the_last_epoch_of_protocol_2_is_followed_by_another_id(
    world: TransactionWorld,
) -> None:
    one = await producer(world, version=2)
    was = one.producer_id
    one.epoch = _set_epoch(world, 32_766)
    assert await one.write(b"a") == 0
    claim = one.producer_id, one.epoch
    assert await one.end() == 0
    assert (one.producer_id > was, one.epoch) == (True, 0)
    await world.rests()
    one.producer_id, one.epoch = claim
    assert await one.end() == 0, "a repetition"
    assert await one.write(b"b") == 0
    assert await one.end() == 0
    await world.rests()
    assert await world.committed() == [b"a", b"b"]


def _set_epoch(world: TransactionWorld, epoch: int) -> int:
    from dataclasses import replace

    owner = world.broker.transactions.ids["x"]
    owner.facts = replace(owner.facts, producer_epoch=epoch)
    return epoch


async def test_an_end_is_repeated_but_not_turned_round(world: TransactionWorld) -> None:
    one = await producer(world)
    assert await one.end() == ErrorCode.INVALID_TXN_STATE, "nothing was begun"
    await one.write(b"a")
    assert await one.end() == 0
    await world.rests()
    assert await one.end() == 0
    assert await one.end(commit=False) == ErrorCode.INVALID_TXN_STATE
    await one.write(b"b")
    assert await one.end(commit=False) == 0
    await world.rests()
    assert await one.end() == ErrorCode.INVALID_TXN_STATE


async def test_protocol_2_may_abort_what_has_no_partition(world: TransactionWorld) -> None:
    one = await producer(world, version=2)
    epoch = one.epoch
    assert await one.end() == ErrorCode.INVALID_TXN_STATE
    assert await one.end(commit=False) == 0
    assert one.epoch == epoch + 1
    one.epoch = epoch
    await world.rests()
    assert await one.end(commit=False) == 0, "a repetition"
    assert one.epoch == epoch + 1


@BOTH
async def test_a_transaction_ends_when_its_time_is_over(
    world: TransactionWorld, version: int
) -> None:
    one = await producer(world, version=version)
    await one.write(b"late")
    await world.passes(TIMEOUT_MS - 1)
    assert world.stable_offset() == 0
    await world.passes(1)
    assert world.stable_offset() == 2
    assert await one.send(b"more") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await one.end() == ErrorCode.PRODUCER_FENCED
    assert await one.end(commit=False) == ErrorCode.PRODUCER_FENCED
    assert world.broker.transactions.steps.ended == {"timed_out": 1}
    assert await one.begin() == 0
    assert await one.write(b"again") == 0
    assert await one.end() == 0
    await world.rests()
    assert await world.committed() == [b"again"]


@BOTH
async def test_a_wall_clock_that_is_set_ends_nothing(world: TransactionWorld, version: int) -> None:
    one = await producer(world, version=version)
    await one.write(b"a")
    world.clock.step(30 * TIMEOUT_MS)
    await world.passes(1)
    assert await one.end() == 0


@BOTH
async def test_a_transaction_goes_on_over_a_kill(world: TransactionWorld, version: int) -> None:
    one = await producer(world, version=version)
    await one.write(b"before")
    one.world = again = await world.reborn()
    assert again.stable_offset() == 0
    assert await one.write(b"after") == 0
    assert await one.end() == 0
    await again.rests()
    assert await again.committed() == [b"before", b"after"]


async def test_what_a_kill_left_open_ends_when_its_time_is_over(world: TransactionWorld) -> None:
    one = await producer(world)
    await one.write(b"a")
    world.clock.advance(TIMEOUT_MS // 2)
    again = await world.reborn()
    await again.passes(TIMEOUT_MS // 2 - 1)
    assert again.stable_offset() == 0
    await again.passes(1)
    assert again.stable_offset() == 2
    assert await again.committed() == []


@pytest.mark.parametrize("commit", [True, False])
async def test_an_end_that_a_kill_cut_short_is_brought_to_its_end(
    world: TransactionWorld, commit: bool
) -> None:
    one = await producer(world)
    await one.write(b"a")
    await one.write(b"b", 1)
    assert await one.end(commit=commit) == 0  # answered before a marker is written
    again = await world.reborn()
    assert await again.committed() == ([b"a"] if commit else [])
    assert await again.committed(partition=1) == ([b"b"] if commit else [])


async def test_offsets_count_when_their_transaction_is_committed(world: TransactionWorld) -> None:
    for version, commit in ((1, True), (1, False), (2, True), (2, False)):
        one = await producer(world, version=version)
        before = (await world.offset())[0]
        assert await one.commit_offset(before + 7) == 0
        assert await world.offset() == (before, 0)
        assert await world.offset(stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        assert await one.end(commit=commit) == 0
        await world.rests()
        after = before + 7 if commit else before
        assert await world.offset(stable=True) == (after, 0)
    assert len(world.broker.groups.pending) == 0


@pytest.mark.parametrize("commit", [True, False])
async def test_offsets_of_an_open_transaction_wait_over_a_kill(
    world: TransactionWorld, commit: bool
) -> None:
    one = await producer(world)
    assert await one.commit_offset(7) == 0
    one.world = again = await world.reborn()
    assert await again.offset(stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert await one.end(commit=commit) == 0
    await again.rests()
    assert await again.offset(stable=True) == (7 if commit else -1, 0)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("commit", [True, False])
async def test_a_plain_commit_after_one_in_a_transaction_is_the_one_that_counts(
    world: TransactionWorld, commit: bool, restarts: bool
) -> None:
    one = await producer(world)
    assert await one.commit_offset(7) == 0
    assert await plain_commit(world, 9) == 0
    assert await world.offset() == (9, 0)
    assert await world.offset(stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    if restarts:
        one.world = world = await world.reborn()
        assert await world.offset(stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert await one.end(commit=commit) == 0
    await world.rests()
    assert await world.offset(stable=True) == (9, 0)
    again = await world.reborn()
    assert await again.offset(stable=True) == (9, 0)


@pytest.mark.parametrize("restarts", [False, True])
async def test_of_two_transactions_the_later_offset_counts_whichever_ends_first(
    world: TransactionWorld, restarts: bool
) -> None:
    one, other = await producer(world, "one"), await producer(world, "other")
    assert await one.commit_offset(7) == 0
    assert await other.commit_offset(9) == 0
    if restarts:
        one.world = other.world = world = await world.reborn()
    for each in (other, one):
        assert await each.end(commit=True) == 0
        await world.rests()
        assert await world.offset() == (9, 0)
    assert (await (await world.reborn()).offset())[0] == 9
    assert len(world.broker.groups.pending) == 0
    assert world.broker.groups.pending.size_bytes == 0


async def test_a_group_that_is_deleted_gets_no_offsets_from_a_transaction_before(
    world: TransactionWorld,
) -> None:
    one = await producer(world)
    assert await plain_commit(world, 3) == 0
    assert await one.commit_offset(7) == 0
    request = delete_groups.DeleteGroupsRequest(groups_names=[GROUP])
    assert (await world.call(request, 2)).results[0].error_code == 0
    assert await one.end(commit=True) == 0
    await world.rests()
    assert await world.offset() == (-1, 0)
    assert await (await world.reborn()).offset() == (-1, 0)


async def plain_commit(world: TransactionWorld, offset: int) -> int:
    """A commit outside of any transaction; its code."""
    part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = offset_commit.OffsetCommitRequestTopic(name="t", partitions=[part])
    request = offset_commit.OffsetCommitRequest(group_id=GROUP, topics=[topic])
    answer = await world.call(request, 8)
    return int(answer.topics[0].partitions[0].error_code)


async def test_who_may_commit_offsets_in_a_transaction(world: TransactionWorld) -> None:
    one = await producer(world, version=2)
    assert await one.commit_offset(1, generation_id=3, member_id="m") == (
        ErrorCode.ILLEGAL_GENERATION
    )
    assert await one.commit_offset(1) == 0
    assert await one.commit_offset(1, generation_id=3, member_id="m") == (
        ErrorCode.UNKNOWN_MEMBER_ID
    )
    zombie = Producer(world, "x", version=2)
    zombie.producer_id, zombie.epoch = one.producer_id, one.epoch - 1
    assert await zombie.commit_offset(1) == ErrorCode.PRODUCER_FENCED
    old = await producer(world, "y")
    old.version = 1
    assert await old.commit_offset(1, partition=99) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_partition_that_did_not_join_takes_nothing(world: TransactionWorld) -> None:
    one = await producer(world)
    assert await one.send(b"a") == ErrorCode.TRANSACTION_ABORTABLE
    stranger = Producer(world, "nobody")
    stranger.producer_id, stranger.epoch = one.producer_id, one.epoch
    assert await stranger.send(b"a") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    await one.join(0)
    assert await one.send(b"a", 1) == ErrorCode.TRANSACTION_ABORTABLE
    assert await one.send(b"a", 0) == 0
    assert world.partition("t", 1).log.snapshot.log_end_offset == 0


@BOTH
async def test_a_producer_that_jumps_sequences(world: TransactionWorld, version: int) -> None:
    one = await producer(world, version=version)
    await one.write(b"a")
    assert await one.send(b"b", sequence=9) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert await one.end() == 0
    await world.rests()
    assert await world.committed() == [b"a"]


async def test_by_protocol_2_an_unknown_producer_begins_with_sequence_0(
    world: TransactionWorld,
) -> None:
    one = await producer(world, version=2)
    assert await one.send(b"a", sequence=3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert await one.send(b"a") == 0


async def test_by_protocol_2_so_does_one_of_which_a_marker_alone_is_left(
    world: TransactionWorld,
) -> None:
    one = await producer(world, version=2)
    assert await one.send(b"a") == 0
    assert await one.end() == 0
    await world.rests()
    log = world.partition().log
    known = log.producers.get(one.producer_id)
    assert known is not None
    known.is_marker_alone, known.batches = True, ()
    assert await one.send(b"b", sequence=3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert await one.send(b"b", sequence=0) == 0


async def test_a_partition_that_is_led_elsewhere_knows_no_producers(
    world: TransactionWorld,
) -> None:
    """Its client goes on at the leader: an error about sequences would end it."""
    one = await producer(world, version=2)
    world.partition().led_by(Leadership(2, 7, is_here=False))
    assert await one.send(b"a", sequence=3) == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_leader_that_is_new_to_a_producer_has_it_send_again(
    world: TransactionWorld,
) -> None:
    one = await producer(world, version=2)
    now = world.clock.monotonic()
    world.partition().led_by(Leadership(1, 8, is_here=True, gained_at=now))
    assert await one.send(b"b", sequence=1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await one.send(b"a", sequence=0) == 0
    assert await one.send(b"b", sequence=1) == 0


async def test_partitions_that_cannot_join(world: TransactionWorld) -> None:
    one = await producer(world)
    unknown, skipped = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert await one.join(0, 9) == [skipped, unknown]
    assert await one.join(0, topic="none") == [unknown]
    denied = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]  # nobody has that right, as in Kafka
    assert await one.join(0, topic="__transaction_state") == denied
    assert not world.broker.transactions.steps.open


@BOTH
async def test_a_topic_that_is_deleted_holds_nobody_up(
    world: TransactionWorld, version: int
) -> None:
    from protocol.apis.delete_topics import DeleteTopicsRequest

    await world.make_topic("gone")
    one = await producer(world, version=version)
    await one.write(b"a")
    await one.write(b"b", topic="gone")
    await world.call(DeleteTopicsRequest(topic_names=["gone"], timeout_ms=1000), 5)
    assert await one.send(b"c", topic="gone") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await one.end() == 0
    await world.rests()
    assert await world.committed() == [b"a"]
    assert not world.broker.transactions.steps.open


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001, 2**31 - 1])
async def test_time_outs_that_are_refused(world: TransactionWorld, timeout_ms: int) -> None:
    one = Producer(world, "x")
    assert await one.begin(timeout_ms=timeout_ms) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert not world.broker.transactions.ids


async def test_ids_that_are_refused(world: TransactionWorld) -> None:
    assert await Producer(world, "").begin() == ErrorCode.INVALID_REQUEST
    assert await Producer(world, "x" * 5000).begin() == ErrorCode.INVALID_REQUEST


async def test_limits() -> None:
    world = await transaction_world(
        partitions=3, horolog_max_transactional_ids="2", horolog_max_transaction_partitions="2"
    )
    one = await producer(world, "a")
    await producer(world, "b")
    assert await Producer(world, "c").begin() == ErrorCode.POLICY_VIOLATION
    assert await one.join(0, 1, 2) == [ErrorCode.POLICY_VIOLATION] * 3
    assert await one.join(0, 1) == [0, 0]
    assert await one.join(2) == [ErrorCode.POLICY_VIOLATION]


async def test_a_thousand_open_transactions_end_by_their_time(world: TransactionWorld) -> None:
    for number in range(1000):
        one = await producer(world, f"x{number}")
        assert await one.write(b"v", number % 2) == 0
    assert len(world.broker.transactions.steps.open) == 1000
    again = await world.reborn()
    assert len(again.broker.transactions.steps.open) == 1000
    await again.passes(TIMEOUT_MS)
    assert not again.broker.transactions.steps.open
    for index in range(2):
        snapshot = again.partition("t", index).log.snapshot
        assert snapshot.last_stable_offset == snapshot.log_end_offset == 1000
        assert await again.committed(partition=index) == []


async def test_a_fetch_is_told_of_the_aborts_in_what_it_gets_alone() -> None:
    world = await transaction_world()
    await world.make_topic("small", index_interval_bytes="0")
    one = await producer(world)
    for number in range(200):
        assert await one.write(b"%d" % number, topic="small") == 0
        assert await one.end(commit=False) == 0
        await world.rests()
    answer = await world.fetched("small", 0, 0, max_bytes=300)
    assert 1 <= len(answer.aborted_transactions) < 5
    assert len((await world.fetched("small", 0, 0)).aborted_transactions) == 200
    assert await world.committed("small") == []


async def test_a_transaction_that_no_id_knows_of_is_aborted_at_the_start(
    world: TransactionWorld,
) -> None:
    one = await producer(world)
    await one.write(b"a")
    await one.write(b"b", 1)
    for name in world.fs.list_dir("/data"):
        if name.name.startswith("__transaction_state-"):
            for file in world.fs.list_dir(f"/data/{name.name}"):
                if file.name.endswith(".log"):
                    world.fs.open(f"/data/{name.name}/{file.name}").truncate(0)
    again = await world.reborn()
    for index in range(2):
        assert again.stable_offset(partition=index) == 2
        assert await again.committed(partition=index) == []
    assert again.broker.transactions.steps.ended == {"orphaned": 2}


async def test_ids_expire_when_nobody_uses_them(world: TransactionWorld) -> None:
    one, other = await producer(world, "a"), await producer(world, "b")
    await other.write(b"open")
    world.clock.advance(7 * 86_400_000)
    await world.broker.transactions.expire()
    assert set(world.broker.transactions.ids) == {"b"}
    assert await one.join(0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert set((await world.reborn()).broker.transactions.ids) == {"b"}


async def test_a_clock_in_doubt_forgets_nobody(world: TransactionWorld) -> None:
    await producer(world, "a")
    world.broker.clock_watch.look = lambda: True
    world.clock.advance(9 * 86_400_000)
    await world.broker.transactions.expire()
    assert set(world.broker.transactions.ids) == {"a"}


async def test_nothing_is_said_before_it_is_known(world: TransactionWorld) -> None:
    one = await producer(world)
    await one.write(b"a")
    again = TransactionWorld(world.fs.after_kill())
    one.world = again
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert await one.begin() == await one.end() == loading
    assert await one.join(0) == [loading]
    assert await one.send(b"b", 1) == ErrorCode.NOT_ENOUGH_REPLICAS, "clients try that again"
    await again.loaded()
    assert await one.end() == 0


@pytest.mark.parametrize("version", [4, 5])
async def test_what_brokers_ask_is_answered(world: TransactionWorld, version: int) -> None:
    one = await producer(world)
    await one.join(0)

    async def ask(index: int, **how: Any) -> int:
        named = add_partitions_to_txn.AddPartitionsToTxnTopic(name="t", partitions=[index])
        each = add_partitions_to_txn.AddPartitionsToTxnTransaction(
            transactional_id="x", producer_id=one.producer_id, producer_epoch=one.epoch,
            topics=[named], **how,
        )  # fmt: skip
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[each])
        answer = (await world.call(request, version)).results_by_transaction[0]
        return int(answer.topic_results[0].results_by_partition[0].partition_error_code)

    missing = ErrorCode.TRANSACTION_ABORTABLE if version > 4 else ErrorCode.INVALID_TXN_STATE
    assert await ask(0, verify_only=True) == 0
    assert await ask(1, verify_only=True) == missing
    assert await ask(1) == 0
    assert await ask(1, verify_only=True) == 0
    assert await ask(9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    owner = world.broker.transactions.ids["x"]
    assert owner.facts.client_version == 2, "as Kafka: brokers ask by version 2"


async def test_brokers_that_ask_do_not_wait_for_long(world: TransactionWorld) -> None:
    """Of one connection an answer comes after the other: the next producer must not wait."""
    one = await producer(world)
    transactions, claim = (
        world.broker.transactions,
        ProducerClaim("x", one.producer_id, one.epoch),
    )
    async with transactions.ids["x"].turn:
        with pytest.raises(KafkaError) as refused:
            await asyncio.wait_for(transactions.join_soon(claim, [("t", 0)]), 5)
    assert refused.value.code == ErrorCode.CONCURRENT_TRANSACTIONS
    await transactions.join_soon(claim, [("t", 0)])
    assert transactions.ids["x"].facts.partitions == {("t", 0)}


async def test_partitions_of_offsets_join_for_brokers_only(world: TransactionWorld) -> None:
    one = await producer(world)
    await world.broker.groups.topic.make()
    named = add_partitions_to_txn.AddPartitionsToTxnTopic(name=CONSUMER_OFFSETS, partitions=[0])
    each = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id="x", producer_id=one.producer_id, producer_epoch=one.epoch, topics=[named]
    )
    request = add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[each])
    [answer] = (await world.call(request, 5)).results_by_transaction
    assert answer.topic_results[0].results_by_partition[0].partition_error_code == 0
    assert await one.join(0, topic=CONSUMER_OFFSETS) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


async def test_the_end_of_a_transaction_wakes_who_waits_for_committed_records(
    world: TransactionWorld,
) -> None:
    one = await producer(world)
    await one.write(b"x" * 1000)
    waits = asyncio.ensure_future(world.fetched("t", 0, 0, wait_ms=60_000, min_bytes=900))
    await asyncio.sleep(0)
    assert not waits.done()
    assert await one.end() == 0
    answer = await asyncio.wait_for(waits, 5)
    assert len(answer.records) > 1000


async def test_requests_under_way_keep_their_order_while_a_partition_joins() -> None:
    """By protocol 2 the first one waits for the disk; those behind it must not overtake it."""
    world = SlowWorld(horolog_durability="by-acks")
    await world.make_topic()
    one = Producer(world, "x", version=2)
    beginning = asyncio.ensure_future(one.begin())
    await world.until(beginning)
    sent = []
    for number in range(6):
        sent.append(asyncio.ensure_future(one.send(b"%d" % number, sequence=number)))
        if number % 2:
            world.commit.sync()
        await asyncio.sleep(0)
    for each in sent:
        await world.until(each)
    assert [each.result() for each in sent] == [0] * 6
    ending = asyncio.ensure_future(one.end())
    await world.until(ending)
    for _ in range(5):
        world.commit.sync()
        await asyncio.sleep(0)
    assert await world.committed() == [b"%d" % number for number in range(6)]


class SlowWorld(TransactionWorld):
    """Whoever waits for the disk waits until the test says so."""

    commit_kind = ManualCommit

    async def until(self, done: asyncio.Future[Any]) -> None:
        while not done.done():
            await asyncio.sleep(0)
            self.commit.sync()


async def test_a_partition_that_moves_while_a_batch_waits_knows_no_producers() -> None:
    world = SlowWorld(horolog_durability="by-acks")
    making = asyncio.ensure_future(world.make_topic())
    await world.until(making)
    one = Producer(world, "one", version=2)
    await world.until(asyncio.ensure_future(one.begin()))
    sending = asyncio.ensure_future(one.send(b"a", sequence=3))
    await asyncio.sleep(0.01)
    assert not sending.done()
    world.partition().led_by(Leadership(2, 7, is_here=False))
    await world.until(sending)
    assert sending.result() == ErrorCode.NOT_LEADER_OR_FOLLOWER
