"""Groups that the broker assigns: durable answers, time-outs, restarts, limits, migration."""

import asyncio
from typing import Any

import pytest

from broker.groups.consumer import regex
from broker.groups.consumer.embedded import EmbeddedAssignment, MemberPartitions, Subscription
from protocol.apis import consumer_group_describe, consumer_group_heartbeat, delete_groups
from protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.apis.offset_commit import OffsetCommitRequest
from protocol.codec import encode_bytes
from protocol.errors import ErrorCode as E
from tests.support.worlds.group_world import (
    DAY_MS,
    GROUP,
    GroupWorld,
    Promise,
    group_world,
    leave,
)
from tests.support.worlds.handler_world import altered

SESSION_MS = 45_000
LONG = 2**31 - 1


def beat(world: GroupWorld, member: str, epoch: int, **said: Any) -> Any:
    promise = ask(world, member, epoch, **said)
    assert promise.answer is not None, "it waits"
    return promise.answer


def ask(world: GroupWorld, member: str, epoch: int, **said: Any) -> Promise:
    """One heartbeat; who joins says everything."""
    version = said.pop("version", 1)
    group = said.pop("group", GROUP)
    if epoch == 0:
        said = {
            "rebalance_timeout_ms": 20_000,
            "topic_partitions": [],
            "subscribed_topic_names": ["t"],
            **said,
        }
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, **said
    )
    return Promise(world, request, version)


def owned(world: GroupWorld, *indexes: int) -> list[Any]:
    topic_id = world.broker.topics.image.topics["t"].topic_id
    return [
        consumer_group_heartbeat.ConsumerGroupHeartbeatTopicPartitions(
            topic_id=topic_id, partitions=list(indexes)
        )
    ]


def told(answer: Any) -> list[int]:
    return [index for each in answer.assignment.topic_partitions for index in each.partitions]


def described(world: GroupWorld, group: str = GROUP) -> Any:
    request = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[group])
    return world.now(request, 1).groups[0]


async def test_an_answer_comes_when_it_is_durable() -> None:
    world = await group_world(horolog_durability="fsync")
    join = ask(world, "a", 0)
    assert join.answer is None
    world.commit.sync()
    assert (join.answer.member_epoch, told(join.answer)) == (2, [0, 1])
    assert beat(world, "a", 2).error_code == 0  # nothing changed: nothing to wait for


async def test_what_could_not_be_written_goes_with_the_next_write() -> None:
    world = await group_world(horolog_durability="fsync")
    join = ask(world, "a", 0)
    world.commit.fail()
    assert join.answer.error_code == E.NOT_COORDINATOR
    assert world.group().modern is not None
    assert world.group().modern.owed  # type: ignore[union-attr]


async def test_who_is_silent_is_fenced_when_its_session_is_over() -> None:
    world = await group_world()
    beat(world, "a", 0)
    beat(world, "b", 0)
    world.pass_ms(SESSION_MS - 1)
    assert beat(world, "a", 2).error_code == 0
    world.pass_ms(2)
    assert beat(world, "b", 3).error_code == E.UNKNOWN_MEMBER_ID
    again = beat(world, "a", 2, topic_partitions=owned(world, 0))
    assert (again.member_epoch, told(again)) == (4, [0, 1])
    assert described(world).group_state == "Stable"


async def test_a_group_may_have_a_session_and_an_interval_of_its_own() -> None:
    world = await group_world()
    assert beat(world, "a", 0).heartbeat_interval_ms == 5000
    await set_on_group(world, consumer_session_timeout_ms="50000")
    await set_on_group(world, consumer_heartbeat_interval_ms="7000")
    assert beat(world, "a", 2).heartbeat_interval_ms == 7000
    world.pass_ms(49_999)
    assert [each.member_id for each in described(world).members] == ["a"]
    world.pass_ms(2)
    assert described(world).members == []


async def set_on_group(world: GroupWorld, **settings: str) -> None:
    rows = [(name.replace("_", "."), 0, value) for name, value in settings.items()]
    request = IncrementalAlterConfigsRequest(resources=[altered(32, GROUP, rows)])
    assert (await world.call(request, 1)).responses[0].error_code == 0


async def test_who_does_not_give_back_in_time_is_fenced() -> None:
    world = await group_world()
    beat(world, "a", 0)
    beat(world, "b", 0)
    assert told(beat(world, "a", 2)) == [0]
    for _ in range(3):
        world.pass_ms(6_000)
        assert beat(world, "a", 2).error_code == 0
    world.pass_ms(2_001)
    assert beat(world, "a", 2).error_code == E.UNKNOWN_MEMBER_ID
    assert told(beat(world, "b", 3)) == [0, 1]


async def test_a_broker_that_was_killed_goes_on_where_it_was() -> None:
    world = await group_world()
    beat(world, "a", 0)
    beat(world, "b", 0, instance_id="i", rack_id="r", server_assignor="range")
    beat(world, "a", 2)
    beat(world, "a", 2, topic_partitions=owned(world, 0))
    before = described(world)
    again = world.restarted()
    await again.broker.groups.load()
    assert described(again) == before
    assert beat(again, "a", 3).error_code == 0
    assert told(beat(again, "b", 3, instance_id="i")) == [1]
    again.pass_ms(SESSION_MS + 1)
    assert described(again).members == []
    third = again.restarted()
    await third.broker.groups.load()
    assert (described(third).group_state, described(third).members) == ("Empty", [])


async def test_a_group_without_members_is_deleted_with_all_that_is_remembered() -> None:
    world = await group_world()
    beat(world, "a", 0)
    delete = delete_groups.DeleteGroupsRequest(groups_names=[GROUP])
    assert world.now(delete, 2).results[0].error_code == E.NON_EMPTY_GROUP
    beat(world, "a", -1)
    world.commit_offsets(("t", 0, 5))
    assert world.now(delete, 2).results[0].error_code == 0
    again = world.restarted()
    await again.broker.groups.load()
    assert again.broker.groups.groups == {}


async def test_offsets_of_topics_that_members_read_stay() -> None:
    world = await group_world()
    await world.make_topic("other")
    beat(world, "a", 0)
    codes = world.commit_offsets(
        ("t", 0, 5), ("other", 0, 6), member_id="a", generation_id_or_member_epoch=2
    )
    assert codes == [0, 0]
    for _ in range(8):
        world.pass_ms(DAY_MS // 2)
        beat(world, "a", 0)
    world.clock.step(4 * DAY_MS)
    await world.broker.groups.expire()
    assert world.offsets() == {("t", 0): 5, ("other", 0): 6}
    world.broker.clock_watch.confirm()
    await world.broker.groups.expire()
    assert world.offsets() == {("t", 0): 5}


async def test_a_member_that_says_too_much_is_refused_and_leaves_nothing_behind() -> None:
    world = await group_world(horolog_group_members_max_bytes="1000000")
    epoch = beat(world, "a", 0).member_epoch
    footprint = world.broker.groups.footprint
    before = footprint.total_bytes
    for names in ([f"{n:06}" for n in range(12_000)], ["x" * 30_000 + str(n) for n in range(40)]):
        for _ in range(3):
            loud = beat(world, "a", epoch, subscribed_topic_names=names)
            assert loud.error_code == E.GROUP_MAX_SIZE_REACHED
    consumer = world.group().modern
    assert consumer is not None
    assert footprint.total_bytes == before
    assert not consumer.owed
    assert beat(world, "a", epoch).error_code == 0
    assert beat(world, "b", 0, group="other").error_code == 0
    classic = world.member(group_id="classic").ask_to_join().answer
    assert classic.error_code == E.MEMBER_ID_REQUIRED


async def test_a_subscription_that_no_record_holds_is_refused_before_it_counts() -> None:
    world = await group_world()
    epoch = beat(world, "a", 0).member_epoch
    before = world.broker.groups.footprint.total_bytes
    long = ["x" * 30_000 + str(n) for n in range(40)]
    for loud in (
        beat(world, "a", epoch, subscribed_topic_names=long),
        beat(world, "b", 0, subscribed_topic_names=long),
        beat(world, "c", 0, group="other", subscribed_topic_names=long),
    ):
        assert loud.error_code == E.INVALID_REQUEST
        assert "max.message.bytes" in loud.error_message
    assert world.broker.groups.footprint.total_bytes == before
    assert set(world.broker.groups.groups) == {GROUP}


async def test_a_change_of_many_members_is_written_in_as_many_batches_as_it_needs() -> None:
    world = await group_world(message_max_bytes="3000", horolog_durability="os")
    await world.make_topic("wide", 300)
    for n in range(12):
        heard = beat(world, f"m{n}", 0, subscribed_topic_names=["wide"])
        assert heard.error_code == 0
    consumer = world.group().modern
    assert consumer is not None
    assert not consumer.owed
    again = world.restarted()
    await again.broker.groups.load()
    restored = again.group().modern
    assert restored is not None
    assert restored.targets == consumer.targets
    assert restored.members == consumer.members


async def test_limits() -> None:
    world = await group_world(
        group_consumer_max_size="2", horolog_max_groups="2", horolog_group_members_max_bytes="5000"
    )
    assert [beat(world, name, 0).error_code for name in "abc"] == [0, 0, E.GROUP_MAX_SIZE_REACHED]
    long = ["x" * 200] * 30
    loud = ask(world, "a", 0, group="loud", subscribed_topic_names=long)
    assert loud.answer.error_code == E.GROUP_MAX_SIZE_REACHED
    assert set(world.broker.groups.groups) == {GROUP}
    assert beat(world, "a", 0, group="x" * 32_767).error_code == E.INVALID_GROUP_ID
    assert beat(world, "m" * 5000, 0).error_code == E.INVALID_REQUEST
    assert beat(world, "a", 0, group="second").error_code == 0
    assert beat(world, "a", 0, group="third").error_code == E.GROUP_MAX_SIZE_REACHED
    patient = beat(world, "a", 0, rebalance_timeout_ms=LONG)
    assert patient.error_code == 0


async def test_an_expression_is_matched_away_from_the_loop_and_again_when_topics_come() -> None:
    world = await group_world()
    world.lanes.held = True
    join = beat(world, "a", 0, subscribed_topic_names=None, subscribed_topic_regex="t.*")
    assert (join.member_epoch, told(join)) == (1, [])
    world.lanes.release()
    world.lanes.held = False
    await _turn()
    assert told(beat(world, "a", 1)) == [0, 1]
    await world.make_topic("t2")
    assert beat(world, "a", 2).member_epoch == 2  # not before ten seconds are over
    world.pass_ms(10_001)
    beat(world, "a", 2)
    await _turn()
    grown = beat(world, "a", 2)
    assert (grown.member_epoch, len(told(grown))) == (3, 3)
    wrong = beat(world, "b", 0, subscribed_topic_names=None, subscribed_topic_regex="((")
    assert wrong.error_code == E.INVALID_REGULAR_EXPRESSION
    again = world.restarted()
    await again.broker.groups.load()
    assert described(again).members[0].subscribed_topic_regex == "t.*"
    assert beat(again, "a", 3).error_code == 0


async def test_the_member_hears_of_an_expression_that_takes_too_many_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await group_world()
    monkeypatch.setattr(regex, "VISITS_AT_LEAST", 10)
    monkeypatch.setattr(regex, "VISITS_OF_A_NAME", 1)
    said = {"subscribed_topic_names": None, "subscribed_topic_regex": "(.*a.*|.*b.*){3}"}
    assert told(beat(world, "a", 0, **said)) == []
    await _turn()
    heard = beat(world, "a", 1)
    assert heard.error_code == E.INVALID_REGULAR_EXPRESSION
    assert "steps" in heard.error_message
    assert beat(world, "b", 0, **said).error_code == E.INVALID_REGULAR_EXPRESSION
    changed = beat(world, "a", 1, subscribed_topic_regex="t")
    assert changed.error_code == 0
    assert world.group().modern.refused == {}  # type: ignore[union-attr]
    await _turn()
    assert told(beat(world, "a", changed.member_epoch)) == [0, 1]


async def matched(world: GroupWorld, member: str, expression: str) -> set[str]:
    """The topics that a group of this expression alone reads."""
    beat(world, member, 0, group=member, subscribed_topic_names=None,
         subscribed_topic_regex=expression)  # fmt: skip
    await _turn()
    beat(world, member, 1, group=member)
    consumer = world.broker.groups.groups[member].modern
    assert consumer is not None
    return set(consumer.expressions[expression].topics)


async def test_the_topics_of_the_broker_match_an_expression_that_is_meant_for_them() -> None:
    world = await group_world()
    await world.make_topic("a__b")
    names = set(world.broker.topics.image.topics)
    assert {"__consumer_offsets", "t", "a__b"} <= names
    assert await matched(world, "all", ".*") == {"t", "a__b"}
    assert await matched(world, "own", "__.*") == {each for each in names if each[:2] == "__"}
    assert await matched(world, "one", "(t|__consumer_offsets)") == {"t", "__consumer_offsets"}
    assert await matched(world, "some", ".*__.*") == names - {"t"}


async def _turn() -> None:
    """What is ready in the loop runs."""
    for _ in range(3):
        await asyncio.sleep(0)


def subscription(*topics: str) -> bytes:
    return b"\0\1" + encode_bytes(Subscription(topics=list(topics)), 1)


def assignment(*indexes: int) -> bytes:
    parts = [MemberPartitions(topic="t", partitions=list(indexes))]
    return b"\0\1" + encode_bytes(EmbeddedAssignment(assigned=parts), 1)


@pytest.mark.parametrize("policy", ["bidirectional", "disabled"])
async def test_a_group_moves_to_the_new_protocol_and_back(policy: str) -> None:
    world = await group_world(group_consumer_migration_policy=policy)
    old = world.member(protocols=(("range", subscription("t")),))
    join = old.join()
    world.pass_ms(3000)
    old.took(join)
    old.sync({old.member_id: assignment(0, 1)})
    new = beat(world, "new", 0)
    if policy == "disabled":
        assert new.error_code == E.GROUP_ID_NOT_FOUND
        assert old.heartbeat() == 0
        return
    assert (new.error_code, new.member_epoch, told(new)) == (0, 2, [])
    assert old.heartbeat() == E.REBALANCE_IN_PROGRESS
    again = world.restarted()  # in the midst of it
    await again.broker.groups.load()
    old.world = again
    assert old.heartbeat() == E.REBALANCE_IN_PROGRESS
    assert beat(again, "new", -1).error_code == 0
    group = again.group()
    assert (group.modern, group.state.value) == (None, "PreparingRebalance")
    assert old.took(old.ask_to_join()).generation_id == 3


async def test_a_group_that_no_broker_can_assign_for_is_not_moved() -> None:
    world = await group_world()
    for group, protocols, part in (
        ("nonsense", (("range", b"r"),), b""),
        ("twice", (("range", subscription("t")),), assignment(0, 0)),
    ):
        member = world.member(group_id=group, protocols=protocols)
        join = member.join()
        world.pass_ms(3000)
        member.took(join)
        member.sync({member.member_id: part})
        code = beat(world, "new", 0, group=group).error_code
        assert code == (E.GROUP_ID_NOT_FOUND if group == "nonsense" else 0)
        assert world.group(group).modern is None or group == "twice"
    connect = world.member(group_id="connect", protocol_type="connect")
    connect.join()
    assert beat(world, "new", 0, group="connect").error_code == E.GROUP_ID_NOT_FOUND


async def test_an_empty_classic_group_begins_anew_with_its_offsets() -> None:
    world = await group_world()
    world.commit_offsets(("t", 0, 5))
    assert beat(world, "a", 0).member_epoch == 2
    assert world.offsets() == {("t", 0): 5}
    again = world.restarted()
    await again.broker.groups.load()
    assert (again.offsets(), again.group().state_name) == ({("t", 0): 5}, "Stable")
    commit = OffsetCommitRequest(group_id=GROUP, topics=[])
    assert again.now(commit, 9).topics == []


@pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
async def test_a_consumer_group_without_members_is_a_classic_one_with_a_classic_member(
    protocol_type: str,
) -> None:
    """As in Kafka, whatever the policy of migration: its leader assigns, by any assignor."""
    world = await group_world(group_consumer_migration_policy="disabled")
    beat(world, "a", 0)
    beat(world, "a", -1)
    world.commit_offsets(("t", 0, 5))
    back = world.member(protocols=(("own", b"mine"),), protocol_type=protocol_type)
    world.stable(back)
    assert back.heartbeat() == 0
    again = world.restarted()
    await again.broker.groups.load()
    back.world = again
    assert (again.group().modern, again.group().state_name) == (None, "Stable")
    assert (back.heartbeat(), again.offsets()) == (0, {("t", 0): 5})


async def test_an_administrator_removes_members_that_speak_the_new_protocol() -> None:
    """By LeaveGroup, as Kafka's admin client does for members of whichever protocol."""
    world = await group_world()
    beat(world, "a", 0)
    beat(world, "b", 0)
    assert leave(world, ("a", None), ("c", None)) == [0, E.UNKNOWN_MEMBER_ID]
    assert [each.member_id for each in described(world).members] == ["b"]
    assert beat(world, "a", 2).error_code == E.UNKNOWN_MEMBER_ID


async def test_a_classic_member_that_names_a_protocol_twice_is_not_let_into_a_consumer_group() -> (
    None
):
    """It would keep the others from joining, and the group from being a classic one once more."""
    world = await group_world()
    beat(world, "new", 0)
    twice = world.member(protocols=(("range", subscription("t")), ("range", subscription("t"))))
    assert twice.join().answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    good = world.member(protocols=(("range", subscription("t")),))
    good.took(good.join())
    assert good.took(good.ask_to_join()).protocol_name == "range"
    assert beat(world, "new", -1).error_code == 0
    assert (world.group().modern, list(world.group().members)) == (None, [good.member_id])


async def test_a_classic_member_that_a_consumer_group_lost_is_not_its_first_one_again() -> None:
    world = await group_world()
    beat(world, "a", 0)
    beat(world, "a", -1)
    gone = world.member(protocols=(("range", subscription("t")),))
    gone.member_id = "gone"
    assert gone.ask_to_join().answer.error_code == E.UNKNOWN_MEMBER_ID


async def test_a_broker_that_stops_serves_no_member_any_longer() -> None:
    world = await group_world()
    beat(world, "a", 0)
    world.broker.groups.stop()
    assert beat(world, "a", 2).error_code == E.COORDINATOR_NOT_AVAILABLE
    assert beat(world, "b", 0).error_code == E.COORDINATOR_NOT_AVAILABLE


async def test_a_classic_member_that_never_syncs_is_fenced_from_a_consumer_group() -> None:
    world = await group_world()
    old = world.member(protocols=(("range", subscription("t")),), session_ms=300_000)
    join = old.join()
    world.pass_ms(3000)
    old.took(join)
    old.sync({old.member_id: assignment(0, 1)})
    beat(world, "new", 0)
    assert old.took(old.ask_to_join()).protocol_name == "range"
    for _ in range(2):
        world.pass_ms(29_999)
        assert beat(world, "new", 2).error_code == 0
    assert len(described(world).members) == 2
    world.pass_ms(3)
    assert [each.member_id for each in described(world).members] == ["new"]
    assert old.heartbeat() == E.UNKNOWN_MEMBER_ID
    assert told(beat(world, "new", 2)) == [0, 1]
