"""ShareFetch and ShareAcknowledge: what members get, say and hear (KIP-932, KIP-1206, KIP-1222)."""

from typing import Any

import pytest

from broker.partitions.partition import Partition
from broker.partitions.writer import PartitionWriter
from broker.runtime.deferred import Deferred
from broker.share.reading import ShareReading
from broker.share.state.key import ShareKey
from protocol.apis import share_acknowledge as ack
from protocol.errors import ErrorCode
from storage.errors import DiskError
from storage.files.file_slice import FetchData
from storage.index.txn_index import AbortedTxn
from storage.search.log_search import LogSearch
from storage.search.segment_access import NotInMemory
from tests.support.worlds.group_world import Promise
from tests.support.worlds.handler_world import ManualCommit
from tests.support.worlds.share_read_world import (
    ACCEPT,
    GROUP,
    LOCK_MS,
    REJECT,
    RELEASE,
    RENEW,
    ShareReadWorld,
    acquired,
    share_read_world,
    values_of,
)
from tests.support.worlds.transaction_world import Producer

SIX = (b"0", b"1", b"2", b"3", b"4", b"5")


@pytest.fixture
async def world() -> ShareReadWorld:
    return await share_read_world()


async def test_a_record_is_acquired_by_one_member_and_accepted(world: ShareReadWorld) -> None:
    await world.produce(*SIX)
    one, other = world.reader("m1"), world.reader("m2")
    answer = await one.fetch()
    assert answer.acquisition_lock_timeout_ms == LOCK_MS
    assert acquired(answer) == [(0, 5, 1)]
    assert values_of(answer) == list(SIX)
    assert await other.got() == []
    assert await one.code((0, 5, ACCEPT)) == 0
    assert await other.got() == []
    assert world.state().start_offset == 0
    assert world.state().finished == 6


async def test_what_is_released_goes_to_another_member_and_what_is_rejected_to_nobody(
    world: ShareReadWorld,
) -> None:
    await world.produce(*SIX)
    one, other = world.reader("m1"), world.reader("m2")
    await one.fetch()
    await other.fetch()
    assert await one.code((0, 5, ACCEPT, RELEASE, REJECT, RELEASE, RELEASE, ACCEPT)) == 0
    answer = await other.fetch()
    assert acquired(answer) == [(1, 1, 2), (3, 4, 2)]
    assert values_of(answer) == list(SIX)  # whole batches leave; the client takes what it holds


async def test_a_fetch_acknowledges_what_came_before(world: ShareReadWorld) -> None:
    await world.produce(*SIX)
    one = world.reader()
    await one.fetch()
    answer = await one.fetch((1, 5, ACCEPT))
    (topic,) = answer.responses
    (part,) = topic.partitions
    assert (part.partition_index, part.error_code, part.acknowledge_error_code) == (0, 0, 0)
    assert (part.records or b"", part.acquired_records) == (b"", [])
    answer = await one.fetch((1, 5, ACCEPT))
    part = answer.responses[0].partitions[0]
    assert part.acknowledge_error_code == ErrorCode.INVALID_RECORD_STATE


async def test_a_fetch_waits_for_an_append(world: ShareReadWorld) -> None:
    one = world.reader()
    waiting = one.begin(wait_ms=60_000)
    await world.turn()
    assert waiting.answer is None
    await world.produce(b"late")
    await world.turn()
    assert acquired(waiting.answer) == [(0, 0, 1)]


async def test_a_fetch_waits_for_a_release_and_for_the_end_of_a_lock(
    world: ShareReadWorld,
) -> None:
    await world.produce(*SIX)
    one, other = world.reader("m1"), world.reader("m2")
    await one.fetch()
    waiting = other.begin(wait_ms=600_000)
    await world.turn()
    assert waiting.answer is None
    assert await one.code((0, 2, RELEASE)) == 0
    await world.turn()
    assert acquired(waiting.answer) == [(0, 2, 2)]
    waiting = other.begin(wait_ms=600_000)
    await world.pass_ms(LOCK_MS - 1)
    assert waiting.answer is None
    await world.pass_ms(1)
    assert acquired(waiting.answer) == [(0, 2, 3), (3, 5, 2)]
    assert await one.code((3, 3, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE


async def test_the_end_of_a_session_releases(world: ShareReadWorld) -> None:
    await world.produce(*SIX)
    one, other = world.reader("m1"), world.reader("m2")
    await one.fetch()
    await other.fetch()
    answer = await one.acknowledge((0, 1, ACCEPT), epoch=-1)
    assert answer.responses[0].partitions[0].error_code == 0
    assert await other.got() == [(2, 5, 2)]
    answer = await one.acknowledge((0, 1, ACCEPT), epoch=-1)
    assert answer.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


async def test_the_end_of_a_connection_ends_its_sessions(world: ShareReadWorld) -> None:
    await world.produce(*SIX)
    one = world.reader("m1")
    assert await one.got() == [(0, 5, 1)]
    reads = world.broker.share_reads
    reads.connection_lost(2)
    assert len(reads.sessions) == 1
    reads.connection_lost(1)
    await world.turn()
    assert (len(reads.sessions), reads.partitions.count, reads.sessions.followed) == (0, 0, 0)
    assert await world.reader("m2").got() == [(0, 5, 2)]


async def test_epochs_of_sessions(world: ShareReadWorld) -> None:
    one = world.reader()
    assert (await one.fetch(epoch=3)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert (await one.acknowledge(epoch=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert (await one.fetch((0, 0, ACCEPT), epoch=0)).error_code == ErrorCode.INVALID_REQUEST
    assert (await one.fetch(epoch=0)).error_code == 0
    wrong = ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert (await one.fetch(epoch=2)).error_code == wrong
    assert (await one.acknowledge(epoch=0)).error_code == wrong
    assert (await one.acknowledge(epoch=1)).error_code == 0
    assert (await one.fetch(epoch=2)).error_code == 0


async def test_sessions_are_limited() -> None:
    world = await share_read_world(group_share_max_share_sessions="1")
    await world.reader("m1").fetch()
    waiting = world.reader("m2").begin(wait_ms=50)
    await world.turn()
    assert waiting.answer is None
    await world.passed(waiting)
    assert waiting.answer.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


async def test_a_lock_is_renewed(world: ShareReadWorld) -> None:
    await world.produce(*SIX)
    one = world.reader()
    await one.fetch()
    renewal = {"is_renew_ack": True, "max_bytes": 0, "max_records": 0, "min_bytes": 0}
    for _ in range(3):
        await world.pass_ms(LOCK_MS - 1)
        answer = await one.fetch((0, 5, RENEW), **renewal)
        assert answer.responses[0].partitions[0].acknowledge_error_code == 0
    assert await one.code((0, 5, RENEW)) == ErrorCode.INVALID_REQUEST
    assert await one.code((0, 5, RENEW), is_renew_ack=True) == 0
    assert (await one.fetch((0, 5, RENEW), is_renew_ack=True)).error_code == 42
    one.epoch -= 1
    await world.configure(share_renew_acknowledge_enable="false")
    refused = ErrorCode.INVALID_RECORD_STATE
    assert await one.code((0, 5, RENEW), is_renew_ack=True) == refused
    assert await one.code((0, 5, ACCEPT)) == 0


async def test_modes_of_acquisition(world: ShareReadWorld) -> None:
    await world.produce(*SIX)
    one, other = world.reader("m1"), world.reader("m2")
    assert await one.got(max_records=2, share_acquire_mode=1) == [(0, 1, 1)]
    assert await other.got(max_records=2) == [(2, 5, 1)]
    assert (await one.fetch(share_acquire_mode=2)).error_code == ErrorCode.INVALID_REQUEST


async def test_limits_of_deliveries_and_locks(world: ShareReadWorld) -> None:
    await world.configure(share_delivery_count_limit="2", share_record_lock_duration_ms="15000")
    await world.produce(b"a")
    one = world.reader()
    for count in (1, 2):
        answer = await one.fetch()
        assert answer.acquisition_lock_timeout_ms == 15_000
        assert acquired(answer) == [(0, 0, count)]
        await world.pass_ms(15_000)
    assert await one.got() == []


async def test_records_in_flight_are_limited(world: ShareReadWorld) -> None:
    await world.configure(share_partition_max_record_locks="100")
    for _ in range(30):
        await world.produce(*SIX)
    one = world.reader()
    first = await one.got(batch_size=1000)
    assert first == [(0, 101, 1)]
    assert await one.got() == []
    assert await one.code((0, 5, ACCEPT)) == 0
    assert await one.got() == [(102, 107, 1)]


@pytest.mark.parametrize(
    ("reset", "start"), [("latest", 6), ("earliest", 0), ("by_duration:PT0.004S", 2)]
)
async def test_a_first_fetch_decides_where_to_begin(reset: str, start: int) -> None:
    world = await share_read_world()
    await world.initialized(start=-1)
    await world.configure(share_auto_offset_reset=reset)
    await world.produce(*SIX, at=world.clock.now_ms() - 6)
    one = world.reader()
    await one.fetch()
    await world.turn()
    await world.produce(b"new")
    got = await one.got() or []
    again = await world.again()
    assert again.state().start_offset == start
    assert (await again.reader("m2").got())[0][0] == start
    assert got == [] or got[0][0] >= start


async def test_rights_are_asked_for(world: ShareReadWorld) -> None:
    await world.produce(*SIX)
    world.rights = world.only()
    assert (await world.reader().fetch()).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    refused = await world.reader().acknowledge((0, 0, ACCEPT))
    assert refused.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    world.rights = world.only("g")
    one = world.reader()
    part = (await one.fetch()).responses[0].partitions[0]
    assert part.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert await one.code((0, 0, ACCEPT)) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    world.rights = world.only("g", "t")
    assert await one.got() == [(0, 5, 1)]


async def test_unknown_partitions_have_errors_of_their_own(world: ShareReadWorld) -> None:
    one = world.reader("m1", ("t", 0), ("t", 9), ("t", 1))
    answer = await one.fetch()
    codes = {
        each.partition_index: each.error_code
        for topic in answer.responses
        for each in topic.partitions
    }
    assert codes == {
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        1: ErrorCode.UNKNOWN_SERVER_ERROR,  # nobody made its state
    }
    assert await one.code((0, 0, ACCEPT)) in {42, 121}


async def test_requests_without_sense_are_refused(world: ShareReadWorld) -> None:
    for fields in ({"member": ""}, {"member": "m" * 37}, {"member": "m", "group": ""}):
        reader = world.reader(**fields)
        assert (await reader.fetch()).error_code == ErrorCode.INVALID_REQUEST
        assert (await reader.acknowledge()).error_code == ErrorCode.INVALID_REQUEST
    assert (await world.reader().fetch(epoch=-2)).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "acks", [((3, 1, 1),), ((0, 3, 1, 2),), ((0, 0, 9),), ((0, 2, 1), (1, 3, 1)), ((0, 0),)]
)
async def test_ranges_without_sense_are_refused(world: ShareReadWorld, acks: Any) -> None:
    await world.produce(*SIX)
    one = world.reader()
    await one.fetch()
    assert await one.code(*acks) == ErrorCode.INVALID_REQUEST
    assert await one.code((0, 5, ACCEPT)) == 0


async def test_partitions_take_turns_and_share_the_bytes() -> None:
    world = await share_read_world()
    await world.initialized(partition=1)
    for partition in (0, 1):
        for _ in range(4):
            await world.produce(b"x" * 1000, partition=partition)
    one = world.reader("m1", ("t", 0), ("t", 1))
    seen = []
    for _ in range(4):
        answer = await one.fetch(max_bytes=2300)
        seen.append([part.partition_index for part in answer.responses[0].partitions])
    assert [sorted(each) for each in seen] == [[0, 1]] * 4
    assert seen[0] != seen[1]


async def test_no_more_partitions_are_read_than_a_member_may_have_records_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A member of a topic with many partitions costs what it gets, and each has its turn."""
    world = ShareReadWorld(None, 0)
    await world.make_topic(partitions=20)
    for index in range(20):
        await world.initialized(partition=index)
        await world.produce(*SIX, partition=index)
    read, plain = list[int](), Partition.read

    def noted(self: Partition, *args: Any, **how: Any) -> Any:
        read.append(self.index)
        return plain(self, *args, **how)

    monkeypatch.setattr(Partition, "read", noted)
    one = world.reader("m1", *(("t", index) for index in range(20)))
    got = [acquired(await one.fetch(max_records=6)) for _ in range(20)]
    assert got == [[(0, 5, 1)]] * 20
    assert len(read) <= 2 * 20
    assert set(read) == set(range(20))


async def test_a_partition_whose_aborted_transactions_cannot_be_read_keeps_back_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a member would hold records of others that it was never given."""
    world = await share_read_world()
    await world.initialized(partition=1)
    await world.produce(*SIX, partition=0)
    await world.produce(*SIX, partition=1)
    plain = ShareReading.fetched

    def broken(self: ShareReading, *args: Any) -> Any:
        if self.served.partition.index == 1:
            raise DiskError("x.txnindex", "read", "the disk is broken", 5)
        return plain(self, *args)

    monkeypatch.setattr(ShareReading, "fetched", broken)
    answer = await world.reader("m1", ("t", 0), ("t", 1)).fetch()
    found = {each.partition_index: each for each in answer.responses[0].partitions}
    assert found[1].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [(each.first_offset, each.last_offset) for each in found[0].acquired_records] == [(0, 5)]


async def test_the_log_start_passes_records(world: ShareReadWorld) -> None:
    await world.produce(*SIX)
    await world.produce(*SIX)
    one = world.reader()
    assert await one.got(max_records=1) == [(0, 5, 1)]
    world.partition().log.delete_records(8)
    assert await one.code((0, 5, ACCEPT)) == 0
    assert await one.got() == [(8, 11, 1)]


async def test_a_deleted_topic_ends_a_wait(world: ShareReadWorld) -> None:
    one = world.reader()
    waiting = one.begin(wait_ms=60_000)
    await world.turn()
    await world.delete_topic("t")
    await world.turn()
    part = waiting.answer.responses[0].partitions[0]
    assert part.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert world.broker.share_reads.partitions.count == 0


async def test_aborted_records_are_not_delivered_to_readers_of_committed_ones(
    world: ShareReadWorld,
) -> None:
    await world.configure(share_isolation_level="read_committed")
    await world.produce(b"before")
    producer = Producer(world, "x", version=2)
    await producer.begin()
    for value, commit in ((b"aborted", False), (b"kept", True)):
        await producer.write(value)
        await producer.end(commit=commit)
    await world.turn()
    one = world.reader()
    answer = await one.fetch()
    got = acquired(answer)
    held = {offset for first, last, _ in got for offset in range(first, last + 1)}
    assert held == {0, 2, 3, 4}  # 2 and 4 are markers
    await producer.write(b"open")
    waiting = one.begin(wait_ms=60_000)
    await world.turn()
    assert waiting.answer is None
    await producer.end()
    await world.turn()
    assert acquired(waiting.answer)[0][0] == 5


async def test_records_are_read_again_when_their_list_of_aborted_ones_has_left_meanwhile(
    world: ShareReadWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.configure(share_isolation_level="read_committed")
    producer = Producer(world, "x", version=2)
    await producer.begin()
    await producer.write(b"aborted")
    await producer.end(commit=False)
    await world.produce(b"kept")
    await world.turn()
    look, looks = LogSearch.aborted_in, list[int]()

    def left_at_first(search: LogSearch, offset: int, data: FetchData) -> list[AbortedTxn]:
        looks.append(offset)
        if len(looks) == 1:
            raise NotInMemory
        return look(search, offset, data)

    monkeypatch.setattr(LogSearch, "aborted_in", left_at_first)
    assert acquired(await world.reader().fetch())[-1][1] == 2
    assert looks == [0, 0]


async def test_a_failed_write_is_answered_and_undone(world: ShareReadWorld) -> None:
    await world.produce(*SIX)
    one = world.reader()
    await one.fetch()
    log = world.state_partition().log
    log.fail(DiskError("a log", "write", "refused", 5))
    assert await one.code((0, 5, ACCEPT)) != 0
    world.broker.share_reads.connection_lost(1)
    again = await world.again()
    assert await again.reader("m2").got() == [(0, 5, 1)]


async def test_acknowledged_records_stay_so_over_a_kill(world: ShareReadWorld) -> None:
    await world.produce(*SIX)
    one = world.reader()
    await one.fetch()
    assert await one.code((0, 5, ACCEPT, ACCEPT, RELEASE, REJECT, RELEASE, ACCEPT)) == 0
    again = await world.again()
    assert await again.reader("m2").got() == [(2, 2, 2), (4, 4, 2)]


class SlowWorld(ShareReadWorld):
    """A broker whose fsync thread waits for the test."""

    commit_kind = ManualCommit


async def test_an_acknowledgement_is_answered_when_records_and_state_are_durable() -> None:
    world = SlowWorld(None, 0, horolog_durability="by-acks")
    await world.make_topic(partitions=2)
    begun = world.broker.share_states.initialize(ShareKey("g", world.topic_id(), 0), 1, 0)
    for _ in range(3):
        await world.turn()
        world.commit.sync()
    assert begun.settled
    await world.produce(*SIX, acks=1)
    one = world.reader()
    assert await one.got() == [(0, 5, 1)]
    waiting = one.begin((0, 5, ACCEPT))
    log, state = world.partition().log, world.state_partition().log
    await world.turn()
    assert (waiting.answer, log.durable_offset) == (None, 0)
    before = state.snapshot.log_end_offset
    world.commit.sync()
    await world.turn()
    assert (waiting.answer, log.durable_offset) == (None, 6)
    assert (state.snapshot.log_end_offset, state.durable_offset) == (before + 1, before)
    world.commit.sync()
    await world.turn()
    part = waiting.answer.responses[0].partitions[0]
    assert (part.acknowledge_error_code, state.durable_offset) == (0, before + 1)


async def test_what_a_member_accepts_as_it_closes_is_given_to_nobody_before_that_is_durable(
    world: ShareReadWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records may be read before their fsync; the state of them is stored after it."""
    await world.produce(b"0", b"1")
    one, two, synced = world.reader("m1"), world.reader("m2"), Deferred[None]()
    assert await one.got() == [(0, 1, 1)]
    monkeypatch.setattr(PartitionWriter, "durable_up_to", lambda *_: synced)
    batch = ack.AcknowledgementBatch(first_offset=0, last_offset=1, acknowledge_types=[ACCEPT])
    part = ack.ShareAcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
    topic = ack.ShareAcknowledgeTopic(topic_id=world.topic_id(), partitions=[part])
    closes = ack.ShareAcknowledgeRequest(
        group_id=GROUP, member_id="m1", share_session_epoch=-1, topics=[topic]
    )
    closing = Promise(world, closes, 2)
    await world.turn()
    assert closing.answer is None
    monkeypatch.undo()
    assert await two.got() == []
    synced.resolve(None)
    await world.turn()
    assert closing.answer.responses[0].partitions[0].error_code == 0
    assert await two.got() == []
    assert (world.state().start_offset, world.state().finished) == (0, 2)
