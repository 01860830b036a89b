"""Commits: who may, when they count, how long they are kept, what a restart makes of them."""

from typing import Any

import pytest

from broker.groups.records.classic import group_key, offset_key
from broker.runtime.memory_account import MemoryClass
from protocol.apis import (
    delete_groups,
    delete_topics,
    describe_groups,
    join_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
)
from protocol.errors import ErrorCode as E
from protocol.records.batch import iter_headers
from protocol.records.record import read_records
from tests.support.worlds.group_world import (
    DAY_MS,
    GroupWorld,
    Promise,
    commit_request,
    group_world,
)

RETENTION_MS = 7 * DAY_MS


def records_of(world: GroupWorld) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values of `__consumer_offsets`, in order within each partition."""
    found = []
    for partition in world.broker.groups.topic.partitions:
        log, offset = partition.log, 0
        end = log.snapshot.log_end_offset
        while offset < end:  # a segment at a time
            data = log.read(offset, 1 << 20, up_to=end, min_one_batch=True).read()
            for position, header in iter_headers(memoryview(data)):
                rows = read_records(memoryview(data)[position:])
                found += [(row.key, row.value) for row in rows]
                offset = header.last_offset + 1
    return found


@pytest.mark.parametrize("version", range(2, 10))
async def test_every_version_commits_and_reads_back(version: int) -> None:
    world = await group_world()
    answer = world.now(commit_request(("t", 0, 7), ("t", 1, 8), metadata="so far"), version)
    assert [each.partitions[0].error_code for each in answer.topics] == [0, 0]
    assert world.offsets() == {("t", 0): 7, ("t", 1): 8}


@pytest.mark.parametrize("version", range(1, 10))
async def test_every_version_is_told_of_offsets(version: int) -> None:
    world = await group_world()
    world.commit_offsets(("t", 1, 8), metadata="so far")
    if version < 8:
        topics: Any = [offset_fetch.OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
        request = offset_fetch.OffsetFetchRequest(group_id="g", topics=topics)
        told = world.now(request, version)
    else:
        topics = [offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])]
        group = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=topics)
        told = world.now(offset_fetch.OffsetFetchRequest(groups=[group]), version).groups[0]
    parts = told.topics[0].partitions
    assert [(each.committed_offset, each.metadata) for each in parts] == [(-1, ""), (8, "so far")]
    assert told.error_code == 0


async def test_topics_by_their_ids() -> None:
    world = await group_world()
    topic_id = world.broker.topics.image.topics["t"].topic_id
    request = commit_request(("t", 1, 8), ("t", 0, 9))
    request.topics[0].topic_id = topic_id
    answer = world.now(request, 10)
    codes = [each.partitions[0].error_code for each in answer.topics]
    assert codes == [0, E.UNKNOWN_TOPIC_OR_PARTITION]
    wanted = [
        offset_fetch.OffsetFetchRequestTopics(topic_id=each, partition_indexes=[1])
        for each in (topic_id, world.env.rng.uuid())
    ]
    group = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=wanted)
    told = world.now(offset_fetch.OffsetFetchRequest(groups=[group]), 10).groups[0].topics
    assert [each.partitions[0].committed_offset for each in told] == [8, -1]
    assert told[1].partitions[0].error_code == E.UNKNOWN_TOPIC_ID
    everything = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None)
    told = world.now(offset_fetch.OffsetFetchRequest(groups=[everything]), 10).groups[0].topics
    assert [each.topic_id for each in told] == [topic_id]


async def test_each_offset_is_judged_by_itself() -> None:
    world = await group_world(offset_metadata_max_bytes="5")
    codes = world.commit_offsets(("t", 0, 1), ("t", 2, 1), ("nothing", 0, 1))
    assert codes == [0, E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert world.commit_offsets(("t", 1, 1), metadata="überlang") == [E.OFFSET_METADATA_TOO_LARGE]
    assert world.offsets() == {("t", 0): 1}


async def test_a_commit_counts_and_is_answered_when_it_is_durable() -> None:
    world = await group_world(horolog_durability="fsync")
    commit = Promise(world, commit_request(("t", 0, 1)), 9)
    assert commit.answer is None
    assert world.offsets() == {}
    world.commit.sync()
    assert commit.answer.topics[0].partitions[0].error_code == 0
    assert world.offsets() == {("t", 0): 1}
    refused = Promise(world, commit_request(("t", 0, 2)), 9)
    world.commit.fail()
    assert refused.answer.topics[0].partitions[0].error_code == E.NOT_COORDINATOR
    assert world.offsets() == {("t", 0): 1}


async def test_offsets_deleted_while_a_commit_is_under_way_stay_deleted() -> None:
    world = await group_world(horolog_durability="fsync")
    commit = Promise(world, commit_request(("t", 0, 1)), 9)
    deleted = Promise(world, delete_groups.DeleteGroupsRequest(groups_names=["g"]), 2)
    world.commit.sync()
    assert commit.answer.topics[0].partitions[0].error_code == 0
    assert deleted.answer is None
    world.commit.sync()
    assert deleted.answer.results[0].error_code == 0
    assert world.offsets() == {}
    again = world.restarted()
    await again.broker.groups.load()
    assert again.broker.groups.groups == {}


async def test_who_is_no_member_commits_to_an_empty_group_only() -> None:
    world = await group_world()
    assert world.commit_offsets(("t", 0, 1)) == [0]
    member = world.member()
    world.stable(member)
    assert world.commit_offsets(("t", 0, 2)) == [E.UNKNOWN_MEMBER_ID]
    assert member.commit(("t", 0, 3)) == [0]
    assert world.offsets() == {("t", 0): 3}
    nowhere = {"group_id": "nowhere", "generation_id_or_member_epoch": 3}
    assert world.commit_offsets(("t", 0, 2), **nowhere, version=8) == [E.ILLEGAL_GENERATION]
    assert world.commit_offsets(("t", 0, 2), **nowhere, version=9) == [E.GROUP_ID_NOT_FOUND]


async def test_a_commit_shows_that_a_member_lives() -> None:
    world = await group_world()
    member = world.member()
    world.stable(member)
    for _ in range(3):
        world.pass_ms(9000)
        assert member.commit(("t", 0, 1)) == [0]
    assert member.heartbeat() == 0


async def test_committed_offsets_are_bounded() -> None:
    world = await group_world(horolog_max_committed_offsets="1")
    assert world.commit_offsets(("t", 0, 1)) == [0]
    assert world.commit_offsets(("t", 0, 2)) == [0]
    assert world.commit_offsets(("t", 1, 2)) == [E.INVALID_COMMIT_OFFSET_SIZE]
    assert world.commit_offsets(("t", 1, 2), group_id="other") == [E.INVALID_COMMIT_OFFSET_SIZE]
    assert set(world.broker.groups.groups) == {"g"}


# --- how long they are kept ---


async def test_offsets_of_a_group_go_together_after_its_last_member() -> None:
    world = await group_world()
    member = world.member()
    world.stable(member)
    member.commit(("t", 0, 1))
    world.clock.advance(2 * RETENTION_MS)
    await world.broker.groups.expire()
    assert world.offsets() == {("t", 0): 1}
    member.leave()
    world.clock.advance(RETENTION_MS - 1)
    await world.broker.groups.expire()
    assert world.offsets() == {("t", 0): 1}
    world.clock.advance(1)
    await world.broker.groups.expire()
    assert world.broker.groups.groups == {}
    assert [value for _, value in records_of(world)][-2:] == [None, None]


async def test_offsets_of_who_was_never_a_member_go_one_by_one() -> None:
    world = await group_world()
    world.commit_offsets(("t", 0, 1))
    world.clock.advance(RETENTION_MS // 2)
    world.commit_offsets(("t", 1, 1))
    world.clock.advance(RETENTION_MS // 2)
    await world.broker.groups.expire()
    assert world.offsets() == {("t", 1): 1}


async def test_a_group_forgets_topics_that_it_reads_no_longer() -> None:
    world = await group_world()
    await world.make_topic("other")
    reads_t = b"\0\1" + b"\0\0\0\1" + b"\0\1t" + b"\xff\xff\xff\xff"
    member = world.member(protocols=(("range", reads_t),))
    world.stable(member)
    member.commit(("t", 0, 1), ("other", 0, 1))
    world.clock.advance(RETENTION_MS)
    await world.broker.groups.expire()
    assert world.offsets() == {("t", 0): 1}


async def test_an_old_client_gives_its_offsets_a_time_of_their_own() -> None:
    world = await group_world()
    world.commit_offsets(("t", 0, 1), retention_time_ms=1000, version=4)
    world.commit_offsets(("t", 1, 1), retention_time_ms=2**63 - 1, version=4)
    world.clock.advance(1000)
    await world.broker.groups.expire()
    assert world.offsets() == {("t", 1): 1}


async def test_offsets_of_a_deleted_topic_go_with_it() -> None:
    world = await group_world()
    await world.make_topic("gone")
    world.commit_offsets(("gone", 0, 1), ("t", 0, 2))
    topics = [delete_topics.DeleteTopicState(name="gone")]
    await world.call(delete_topics.DeleteTopicsRequest(topics=topics), 6)
    await world.make_topic("gone")
    assert world.offsets() == {("t", 0): 2}
    assert (offset_key("g", "gone", 0), None) in records_of(world)


async def test_offsets_of_an_older_topic_of_the_same_name_are_not_told() -> None:
    world = await group_world()
    world.commit_offsets(("t", 0, 2))
    world.group().offsets["t", 0].topic_id = world.env.rng.uuid()
    assert world.offsets() == {}


# --- administration ---


async def test_groups_are_deleted_when_nobody_is_in_them() -> None:
    world = await group_world()
    member = world.member(group_id="busy")
    world.stable(member)
    world.commit_offsets(("t", 0, 1))
    names = ["g", "busy", "nothing"]
    answer = world.now(delete_groups.DeleteGroupsRequest(groups_names=names), 2)
    codes = [each.error_code for each in answer.results]
    assert codes == [0, E.NON_EMPTY_GROUP, E.GROUP_ID_NOT_FOUND]
    assert {(group_key("g"), None), (offset_key("g", "t", 0), None)} <= set(records_of(world))
    assert world.offsets() == {}


def delete_offsets(world: GroupWorld, group_id: str = "g") -> offset_delete.OffsetDeleteResponse:
    topics = [
        offset_delete.OffsetDeleteRequestTopic(
            name=name, partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)]
        )
        for name in ("t", "other", "nothing")
    ]
    request = offset_delete.OffsetDeleteRequest(group_id=group_id, topics=topics)
    answer: offset_delete.OffsetDeleteResponse = world.now(request, 0)
    return answer


async def test_a_partition_that_is_named_many_times_is_answered_once() -> None:
    """Each answer of a deletion is a line of the audit, which one request could else fill."""
    world = await group_world()
    member = world.member()
    world.stable(member)
    member.commit(("t", 0, 1))
    member.leave()
    zero = offset_delete.OffsetDeleteRequestPartition(partition_index=0)
    topic = offset_delete.OffsetDeleteRequestTopic(name="t", partitions=[zero] * 500)
    request = offset_delete.OffsetDeleteRequest(group_id="g", topics=[topic, topic])
    answer = world.now(request, 0)
    found = [
        (each.name, [part.partition_index for part in each.partitions]) for each in answer.topics
    ]
    assert found == [("t", [0])]
    assert world.offsets() == {}


async def test_offsets_are_deleted_but_those_of_topics_that_are_read() -> None:
    world = await group_world()
    await world.make_topic("other")
    member = world.member(protocols=(("range", b"\0\1\0\0\0\1\0\1t"),))
    world.stable(member)
    member.commit(("t", 0, 1), ("other", 0, 1))
    answer = delete_offsets(world)
    assert [each.partitions[0].error_code for each in answer.topics] == [
        E.GROUP_SUBSCRIBED_TO_TOPIC,
        0,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert world.offsets() == {("t", 0): 1}
    member.leave()
    assert delete_offsets(world).topics[0].partitions[0].error_code == 0
    assert world.offsets() == {}
    assert delete_offsets(world, "nothing").error_code == E.GROUP_ID_NOT_FOUND
    connect = world.member(group_id="connect", protocol_type="connect")
    world.stable(connect)
    assert delete_offsets(world, "connect").error_code == E.NON_EMPTY_GROUP


async def test_groups_are_listed_by_state_and_type() -> None:
    world = await group_world()
    world.stable(world.member(group_id="busy"))
    world.commit_offsets(("t", 0, 1))

    def listed(**filters: list[str]) -> list[tuple[str, str, str]]:
        answer = world.now(list_groups.ListGroupsRequest(**filters), 5)
        return [(each.group_id, each.protocol_type, each.group_state) for each in answer.groups]

    busy, simple = ("busy", "consumer", "Stable"), ("g", "", "Empty")
    assert listed() == [busy, simple]
    assert listed(states_filter=["stable"]) == [busy]
    assert listed(states_filter=["Dead"]) == []
    assert listed(types_filter=["Classic"]) == [busy, simple]
    assert listed(types_filter=["consumer"]) == []


async def test_groups_are_described_as_kafka_describes_them() -> None:
    world = await group_world()
    member = world.member(instance="i")
    world.stable(member)
    request = describe_groups.DescribeGroupsRequest(
        groups=["g", "nope"], include_authorized_operations=True
    )
    known, missing = world.now(request, 6).groups
    assert (known.group_state, known.protocol_data) == ("Stable", "range")
    assert known.authorized_operations == 3400
    only = known.members[0]
    assert (only.client_id, only.client_host, only.group_instance_id) == ("test", "/10.0.0.9", "i")
    assert (only.member_metadata, only.member_assignment) == (b"r", b"part of 0")
    assert (missing.error_code, missing.error_message) == (69, "Group nope not found.")
    assert missing.group_state == "Dead"
    old = world.now(request, 5).groups[1]
    assert (old.error_code, old.group_state, old.authorized_operations) == (0, "Dead", 3400)


# --- restart ---


async def test_a_restart_forgets_nothing() -> None:
    world = await group_world()
    member, other = world.member(), world.member(instance="i")
    world.stable(member, other)
    member.commit(("t", 0, 5))
    world.commit_offsets(("t", 1, 6), group_id="simple")
    again = world.restarted()
    assert await told_while_loading(again, member.member_id) == {E.COORDINATOR_LOAD_IN_PROGRESS}
    await again.broker.groups.load()
    for each in (member, other):
        each.world = again
        assert each.heartbeat() == 0
        assert each.sync().answer.assignment.startswith(b"part of")
    assert again.offsets() == {("t", 0): 5}
    assert again.offsets("simple") == {("t", 1): 6}
    assert other.leave() == [0]
    assert member.heartbeat() == E.REBALANCE_IN_PROGRESS


async def told_while_loading(world: GroupWorld, member_id: str) -> set[int]:
    """What clients are told before the groups were read back; a heartbeat is taken kindly."""
    everything = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None)
    fetched = world.now(offset_fetch.OffsetFetchRequest(groups=[everything]), 9)
    committed = world.commit_offsets(("t", 0, 1))
    join = join_group.JoinGroupRequest(group_id="g", session_timeout_ms=9000, member_id=member_id)
    alive = world.member()
    alive.member_id, alive.generation = member_id, 1
    assert alive.heartbeat() == 0
    return {
        fetched.groups[0].error_code,
        committed[0],
        world.now(join, 9).error_code,
        world.now(list_groups.ListGroupsRequest(), 5).error_code,
        world.now(describe_groups.DescribeGroupsRequest(groups=["g"]), 6).groups[0].error_code,
        world.now(delete_groups.DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code,
    }


async def test_members_that_stay_away_after_a_restart_are_missed() -> None:
    world = await group_world()
    world.stable(world.member())
    again = world.restarted()
    await again.broker.groups.load()
    again.pass_ms(10_001)
    assert again.group().state.value == "Empty"


async def test_groups_of_a_damaged_partition_are_not_served_and_the_others_are() -> None:
    world = await group_world()
    names = [f"group-{n}" for n in range(6)]
    for name in names:
        world.commit_offsets(("t", 0, 1), group_id=name)
    topic = world.broker.groups.topic
    bad = topic.index_of(names[0])
    again = world.restarted()
    partition = again.broker.groups.topic.partitions[bad]
    path = f"/data/__consumer_offsets-{bad}/00000000000000000000.log"
    damaged = bytearray(again.fs.read_bytes(path))
    damaged[-1] ^= 1
    again.fs.open(path).write_at(0, bytes(damaged))
    assert partition.log.snapshot.log_end_offset
    await again.broker.groups.load()
    assert again.commit_offsets(("t", 0, 2), group_id=names[0]) == [E.COORDINATOR_NOT_AVAILABLE]
    good = next(name for name in names if topic.index_of(name) != bad)
    assert again.offsets(good) == {("t", 0): 1}


async def test_clients_may_not_write_to_the_topic_or_change_its_size() -> None:
    world = await group_world()
    answer = await world.produce(b"x", topic="__consumer_offsets")
    assert answer.error_code == E.INVALID_TOPIC_EXCEPTION
    topics = [delete_topics.DeleteTopicState(name="__consumer_offsets")]
    deleted = await world.call(delete_topics.DeleteTopicsRequest(topics=topics), 6)
    assert deleted.responses[0].error_code == E.INVALID_TOPIC_EXCEPTION


async def test_a_commit_of_nothing_makes_no_group() -> None:
    world = await group_world()
    empty = offset_commit.OffsetCommitRequest(group_id="nobody")
    assert world.now(empty, 9).topics == []
    assert "nobody" not in world.broker.groups.groups


async def test_offsets_of_a_topic_whose_deletion_was_cut_short_go_at_the_start() -> None:
    world = await group_world()
    world.commit_offsets(("t", 0, 1), ("t", 1, 2))
    world.group().offsets["t", 0].topic_id = world.env.rng.uuid()
    stored = world.broker.groups.commits.store(
        world.group(), {("t", 0): world.group().offsets["t", 0]}
    )
    assert stored.settled
    again = world.restarted()
    await again.broker.groups.load()
    assert list(again.group().offsets) == [("t", 1)]
    assert (offset_key("g", "t", 0), None) in records_of(again)


# --- memory ---


async def test_the_memory_of_committed_offsets_is_bounded_in_all_and_for_each_group() -> None:
    world = await group_world()
    world.broker.memory.limit_bytes = 1_000_000  # offsets: 100,000; one group: 25,000
    fat = [world.commit_offsets(("t", n % 2, 1), group_id=f"g{n // 2}", metadata="m" * 4000)
           for n in range(60)]  # fmt: skip
    stored = [codes for codes in fat if codes == [0]]
    assert 20 <= len(stored) <= 25
    assert fat[-1] == [E.INVALID_COMMIT_OFFSET_SIZE]
    commits = world.broker.groups.commits
    assert commits.stored_bytes <= 100_000
    assert world.broker.memory.refusals(MemoryClass.OFFSETS) == 60 - len(stored)
    assert world.commit_offsets(("t", 0, 2), group_id="g0", metadata="m" * 4000) == [0]
    assert world.commit_offsets(("t", 0, 3), group_id="g0", metadata="") == [0]
    for group_id in list(world.broker.groups.groups):
        gone = delete_groups.DeleteGroupsRequest(groups_names=[group_id])
        assert world.now(gone, 2).results[0].error_code == 0
    assert commits.stored_bytes == 0
    assert world.commit_offsets(("t", 0, 1), metadata="m" * 4000) == [0]


async def test_one_group_takes_a_quarter_of_the_memory_for_offsets_at_most() -> None:
    world = await group_world()
    await world.make_topic("wide", 100)
    world.broker.memory.limit_bytes = 10_000_000  # offsets: 1,000,000; one group: 250,000
    codes = [
        world.commit_offsets(("wide", n, 1), group_id="greedy", metadata="m" * 4000)[0]
        for n in range(100)
    ]
    assert 50 <= codes.count(0) <= 60
    assert codes[-1] == E.INVALID_COMMIT_OFFSET_SIZE
    assert world.commit_offsets(("wide", 0, 1), group_id="other", metadata="m" * 4000) == [0]
