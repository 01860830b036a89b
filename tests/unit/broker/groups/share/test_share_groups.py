"""Share groups at work: records in Kafka's batches, sessions, intervals, states that are made."""

from typing import Any

import pytest

from broker.groups.records.share import ShareRow
from protocol.errors import ErrorCode, KafkaError
from tests.support.worlds.share_group_world import Share, share_world

SESSION_MS = 45_000


def kinds(batches: list[list[ShareRow]]) -> list[list[int]]:
    return [[row.kind * (1 if row.value is not None else -1) for row in each] for each in batches]


def places(target: Any) -> list[int]:
    return sorted(index for indexes in target.values() for index in indexes)


def refusal(share: Share, member: str, epoch: int, *names: str) -> int:
    with pytest.raises(KafkaError) as refused:
        share.beat(member, epoch, *names)
    return refused.value.code


async def test_a_first_join_writes_kafkas_batches_and_is_answered_with_its_partitions() -> None:
    share = await share_world()
    heard = share.beat("a", 0, "t")
    assert (heard.epoch, places(heard.assigned)) == (3, [0, 1])
    batches = share.batches()
    assert kinds(batches) == [[10, 11, 13, 12, 14, 15], [15], [11, 13, 12, 14]]
    member, group, target, target_epoch, current, states = (row.value for row in batches[0])
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (group.epoch, target.topic_partitions, target_epoch.epoch) == (2, [], 2)
    assert (current.member_epoch, current.previous_member_epoch, current.assigned) == (2, 0, [])
    assert [each.partitions for each in states.initializing] == [[0, 1]]
    assert states.initialized == []
    (made,) = batches[1][0].value.initialized
    assert (made.topic_name, made.partitions) == ("t", [0, 1])
    group, target, target_epoch, current = (row.value for row in batches[2])
    assert (group.epoch, target_epoch.epoch) == (3, 3)
    assert (current.member_epoch, current.previous_member_epoch) == (3, 2)
    assert target.topic_partitions == current.assigned
    assert {epoch for epoch, _ in share.persister.states.values()} == {2}


async def test_a_member_that_leaves_is_taken_back_and_the_hash_of_no_topic_is_0() -> None:
    share = await share_world()
    share.beat("a", 0, "t")
    share.batches()
    heard = share.beat("a", -1)
    assert (heard.member_id, heard.epoch, heard.assigned) == ("a", -1, None)
    (batch,) = share.batches()
    assert kinds([batch]) == [[-14, -13, -10, 11]]
    assert (batch[3].value.epoch, batch[3].value.metadata_hash) == (4, 0)
    assert (share.group.state.value, share.footprint.total_bytes) == ("Empty", 0)
    assert refusal(share, "a", -1) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_later_member_gets_its_part_at_once_where_states_are_made() -> None:
    share = await share_world(group_share_assignment_interval_ms="0")
    share.beat("a", 0, "t")
    share.batches()
    heard = share.beat("b", 0, "t")
    assert (heard.epoch, len(places(heard.assigned))) == (4, 1)
    assert kinds(share.batches()) == [[10, 11, 13, 13, 12, 14]]
    again = share.beat("a", 3)
    assert (again.epoch, len(places(again.assigned))) == (4, 1)
    assert share.beat("a", 4).assigned is None


async def test_assignments_keep_their_interval() -> None:
    share = await share_world()
    share.beat("a", 0, "t")
    heard = share.beat("b", 0, "t")
    assert (heard.epoch, places(heard.assigned)) == (3, [])
    share.world.pass_ms(999)
    assert share.beat("b", 3).epoch == 3
    share.world.pass_ms(1)
    heard = share.beat("b", 3)
    assert (heard.epoch, len(places(heard.assigned))) == (4, 1)


async def test_a_clock_that_is_set_back_holds_no_assignment_up() -> None:
    share = await share_world()
    share.beat("a", 0, "t")
    share.world.clock.step(-86_400_000)
    assert share.beat("b", 0, "t").epoch == 4


async def test_epochs_are_checked() -> None:
    share = await share_world()
    share.beat("a", 0, "t")
    assert refusal(share, "a", 4) == ErrorCode.FENCED_MEMBER_EPOCH
    assert refusal(share, "a", 1) == ErrorCode.FENCED_MEMBER_EPOCH
    assert share.beat("a", 2).epoch == 3  # the answer with 3 may be lost
    assert refusal(share, "b", 3) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_group_that_is_full_takes_nobody_else() -> None:
    share = await share_world(group_share_max_size="1")
    share.beat("a", 0, "t")
    share.groups.check_room(share.group, "a")
    with pytest.raises(KafkaError, match="maximum capacity of 1 members"):
        share.groups.check_room(share.group, "b")


async def test_a_silent_member_goes_when_its_session_is_over() -> None:
    share = await share_world()
    share.beat("a", 0, "t")
    share.beat("b", 0, "t")
    share.world.pass_ms(SESSION_MS - 1)
    share.beat("b", 3)
    share.world.pass_ms(2)
    assert list(share.group.members) == ["b"]
    share.world.pass_ms(1000)
    assert places(share.beat("b", 4).assigned) == [0, 1]


async def test_who_joins_while_states_are_made_waits_with_the_first() -> None:
    share = await share_world()
    share.persister.waits = True
    first = share.beat("a", 0, "t")
    second = share.beat("b", 0, "t")
    assert (first, second) == ([], [])
    assert share.beat("a", 2).epoch == 2  # others are answered meanwhile
    share.persister.release()
    (a,), (b,) = first, second
    assert (a.epoch, b.epoch) == (3, 3)
    assert sorted([*places(a.assigned), *places(b.assigned)]) == [0, 1]
    assert len(share.persister.states) == 2


async def test_states_that_cannot_be_made_are_tried_again_by_a_heartbeat() -> None:
    share = await share_world()
    share.persister.fails = {1}
    heard = share.beat("a", 0, "t")
    assert places(heard.assigned) == [0]
    assert places(share.group.states.made) == [0]
    assert not share.group.states.making
    share.persister.fails = set()
    share.world.pass_ms(1000)
    share.beat("a", heard.epoch)
    assert places(share.group.states.made) == [0, 1]
    assert places(share.beat("a", heard.epoch).assigned) == [0, 1]


async def test_what_could_not_be_written_goes_with_the_next_write() -> None:
    share = await share_world(horolog_durability="fsync")
    came = share.beat("a", 0, "t")
    share.world.commit.fail()
    assert came[0].code == ErrorCode.NOT_COORDINATOR
    assert share.group.owed
    assert not share.persister.states


async def test_a_join_is_answered_when_all_of_it_is_durable() -> None:
    share = await share_world(horolog_durability="fsync")
    came = share.beat("a", 0, "t")
    for _ in range(2):
        share.world.commit.sync()
        assert came == []
    share.world.commit.sync()
    assert places(came[0].assigned) == [0, 1]


async def test_new_partitions_and_new_topics_are_read() -> None:
    share = await share_world()
    share.beat("a", 0, "t", "later")
    await share.world.make_topic("later", 1)
    share.world.pass_ms(1000)
    share.beat("a", 3)  # states are made
    heard = share.beat("a", share.group.members["a"].epoch)
    share.world.pass_ms(1000)
    heard = share.beat("a", heard.epoch)
    assert places(heard.assigned) == [0, 0, 1]
