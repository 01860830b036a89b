"""Members come, share the work, die, return and go: the state machine, seen by its clients."""

import pytest

from broker.runtime import callbacks
from protocol.errors import DecodeError
from protocol.errors import ErrorCode as E
from tests.support.worlds.group_world import (
    INITIAL_DELAY_MS,
    GroupWorld,
    Promise,
    group_world,
    leave,
)

LONG = 2**31 - 1


async def test_a_new_member_is_given_its_id_and_waits_for_others() -> None:
    world = await group_world()
    first = world.member()
    asked = first.ask_to_join().answer
    assert asked.error_code == E.MEMBER_ID_REQUIRED
    assert asked.member_id.startswith("test-")
    first.member_id = asked.member_id
    join = first.ask_to_join()
    world.pass_ms(INITIAL_DELAY_MS - 1)
    assert join.answer is None
    world.pass_ms(1)
    answer = first.took(join)
    assert (answer.generation_id, answer.leader) == (1, first.member_id)
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert [(each.member_id, each.metadata) for each in answer.members] == [(first.member_id, b"r")]


@pytest.mark.parametrize("version", range(10))
async def test_every_version_of_a_client_joins(version: int) -> None:
    world = await group_world()
    member = world.member(version=version)
    join = member.join()
    world.pass_ms(INITIAL_DELAY_MS)
    assert member.took(join).protocol_name == "range"


async def test_who_comes_while_the_first_rebalance_is_held_back_is_in_it() -> None:
    world = await group_world()
    members = [world.member() for _ in range(3)]
    joins = []
    for member in members:
        joins.append(member.join())
        world.pass_ms(INITIAL_DELAY_MS - 1)
    assert joins[2].answer is None
    world.pass_ms(INITIAL_DELAY_MS)
    world.pass_ms(INITIAL_DELAY_MS)
    answers = [member.took(join) for member, join in zip(members, joins, strict=True)]
    assert {each.generation_id for each in answers} == {1}
    assert [len(each.members) for each in answers] == [3, 0, 0]
    world.assign(*members)
    assert [member.heartbeat() for member in members] == [0, 0, 0]


async def test_a_group_that_all_have_left_waits_for_its_members_once_more() -> None:
    """As when it began: those that start again together are in one generation."""
    world = await group_world()
    first = world.member()
    world.stable(first)
    assert first.leave() == [0]
    members = [world.member() for _ in range(3)]
    joins = []
    for member in members:
        joins.append(member.join())
        world.pass_ms(INITIAL_DELAY_MS - 1)
    assert joins[0].answer is None
    world.pass_ms(INITIAL_DELAY_MS)
    world.pass_ms(INITIAL_DELAY_MS)
    answers = [member.took(join) for member, join in zip(members, joins, strict=True)]
    assert {each.generation_id for each in answers} == {3}


async def test_a_newcomer_sends_all_others_to_join_anew() -> None:
    world = await group_world()
    old, other, new = world.member(), world.member(), world.member()
    world.stable(old, other)
    came = new.join()
    assert came.answer is None
    assert [old.heartbeat(), other.heartbeat()] == [E.REBALANCE_IN_PROGRESS] * 2
    joins = old.join(), other.join()
    assert [m.took(j).generation_id for m, j in zip((old, other, new), (*joins, came), strict=True)]
    assert world.group().generation == 2
    world.assign(old, other, new)


async def test_who_does_not_join_anew_in_time_is_dropped() -> None:
    world = await group_world()
    old, slow = world.member(session_ms=120_000), world.member(session_ms=120_000)
    world.stable(old, slow)
    new = world.member(session_ms=120_000)
    came, again = new.join(), old.join()
    world.pass_ms(59_999)
    assert came.answer is again.answer is None
    world.pass_ms(1)
    assert new.took(came).generation_id == old.took(again).generation_id == 2
    assert slow.heartbeat() == E.UNKNOWN_MEMBER_ID
    world.assign(old, new)


async def test_a_silent_member_is_dropped_when_its_session_is_over() -> None:
    world = await group_world()
    alive, dead = world.member(), world.member()
    world.stable(alive, dead)
    for _ in range(3):
        world.pass_ms(3333)
        assert alive.heartbeat() == 0
    world.pass_ms(2)
    assert alive.heartbeat() == E.REBALANCE_IN_PROGRESS
    assert dead.heartbeat() == E.UNKNOWN_MEMBER_ID
    assert alive.took(alive.join()).generation_id == 2


async def test_a_held_clock_that_stands_still_hangs_nobody() -> None:
    world = await group_world()
    times = world.broker.groups.deadlines._time
    machine = type(world.clock)()
    times._machine, times._seen = machine, (world.clock.monotonic(), machine.monotonic())
    member = world.member()
    join = member.join()
    machine.advance(INITIAL_DELAY_MS)
    world.broker.groups.deadlines.expire()
    assert member.took(join).generation_id == 1


async def test_a_member_that_never_syncs_is_dropped() -> None:
    world = await group_world()
    good, lazy = world.member(session_ms=120_000), world.member(session_ms=120_000)
    joins = good.join(), lazy.join()
    world.pass_ms(INITIAL_DELAY_MS)
    world.pass_ms(INITIAL_DELAY_MS)
    good.took(joins[0])
    lazy.took(joins[1])
    assert good.sync({good.member_id: b"all"}).answer.assignment == b"all"
    world.pass_ms(60_000)
    assert good.heartbeat() == E.REBALANCE_IN_PROGRESS
    assert lazy.heartbeat() == E.UNKNOWN_MEMBER_ID


async def test_a_leader_that_rejoins_makes_everybody_rejoin_a_follower_does_not() -> None:
    world = await group_world()
    leader, follower = world.member(), world.member()
    world.stable(leader, follower)
    again = follower.join()
    assert follower.took(again).generation_id == 1
    assert again.answer.members == []
    assert leader.join().answer is None
    assert follower.heartbeat() == E.REBALANCE_IN_PROGRESS


async def test_the_protocol_that_most_like_best_of_what_all_know() -> None:
    world = await group_world()
    a, b, c = ("a", b"1"), ("b", b"2"), ("c", b"3")
    members = [world.member(protocols=each) for each in ((a, b, c), (c, b), (b, c))]
    joins = [member.join() for member in members]
    world.pass_ms(INITIAL_DELAY_MS)
    world.pass_ms(INITIAL_DELAY_MS)
    assert {each.answer.protocol_name for each in joins} == {"b"}
    stranger = world.member(protocols=(a,))
    assert stranger.ask_to_join().answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    other = world.member(protocol_type="connect")
    assert other.ask_to_join().answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    silent = world.member(protocols=())
    assert silent.ask_to_join().answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL


async def test_a_static_member_takes_its_place_again_without_a_rebalance() -> None:
    world = await group_world()
    leader, follower = world.member(instance="one"), world.member(instance="two")
    world.stable(leader, follower)
    back = world.member(instance="two")
    answer = back.took(back.join())
    assert (answer.generation_id, answer.skip_assignment) == (1, False)
    assert back.member_id != follower.member_id
    assert back.sync().answer.assignment == b"part of 1"
    assert follower.heartbeat() == E.FENCED_INSTANCE_ID
    assert follower.commit(("t", 0, 1)) == [E.FENCED_INSTANCE_ID]
    assert leader.heartbeat() == 0


@pytest.mark.parametrize("version", [8, 9])
async def test_a_static_leader_that_returns_is_kept_from_assigning_anew(version: int) -> None:
    world = await group_world()
    leader, follower = world.member(instance="one"), world.member(instance="two")
    world.stable(leader, follower)
    back = world.member(instance="one", version=version)
    answer = back.took(back.join())
    assert world.group().leader == back.member_id
    if version >= 9:
        assert (answer.skip_assignment, answer.leader) == (True, back.member_id)
        assert len(answer.members) == 2
    else:
        assert (answer.leader, answer.members) == (leader.member_id, [])
    assert back.sync().answer.assignment == b"part of 0"


async def test_a_static_member_that_is_away_is_missed_only_after_its_session() -> None:
    world = await group_world()
    stays, away = world.member(), world.member(instance="away", session_ms=30_000)
    world.stable(stays, away)
    for _ in range(4):
        world.pass_ms(7500)
        heard = stays.heartbeat()
    assert heard == E.REBALANCE_IN_PROGRESS
    assert world.group().instances == {}


async def test_members_leave_one_by_one_and_in_crowds() -> None:
    world = await group_world()
    one, two, static = world.member(), world.member(), world.member(instance="i")
    world.stable(one, two, static)
    pending = world.member()
    pending.member_id = pending.ask_to_join().answer.member_id
    codes = leave(
        world,
        (two.member_id, None), ("", "i"), ("", "nobody"), ("stranger", None),
        (one.member_id, "i"), (pending.member_id, None),
    )  # fmt: skip
    unknown = E.UNKNOWN_MEMBER_ID
    assert codes == [0, 0, unknown, unknown, unknown, 0]
    assert list(world.group().members) == [one.member_id]
    assert one.leave() == [0]
    group = world.group()
    assert (group.state.value, group.generation, group.leader) == ("Empty", 2, None)


async def test_a_missing_group_has_no_members_that_could_leave() -> None:
    world = await group_world()
    assert leave(world, ("m", None), ("n", None), group_id="gone") == [E.UNKNOWN_MEMBER_ID] * 2


async def test_who_is_not_in_the_group_or_late_is_told_so() -> None:
    world = await group_world()
    stranger = world.member()
    stranger.member_id, stranger.generation = "stranger", 1
    assert stranger.heartbeat() == E.UNKNOWN_MEMBER_ID
    assert stranger.ask_to_join().answer.error_code == E.UNKNOWN_MEMBER_ID
    member = world.member()
    world.stable(member)
    assert stranger.heartbeat() == E.UNKNOWN_MEMBER_ID
    assert stranger.sync().answer.error_code == E.UNKNOWN_MEMBER_ID
    member.generation = 0
    assert member.heartbeat() == E.ILLEGAL_GENERATION
    assert member.sync().answer.error_code == E.ILLEGAL_GENERATION
    assert member.commit(("t", 0, 1)) == [E.ILLEGAL_GENERATION]


async def test_names_and_time_outs_are_bounded() -> None:
    world = await group_world()
    nameless = world.member(group_id="")
    assert nameless.ask_to_join().answer.error_code == E.INVALID_GROUP_ID
    long = world.member(group_id="x" * 32_767)
    assert long.ask_to_join().answer.error_code == E.INVALID_GROUP_ID
    for session_ms in (5999, 1_800_001, -1, LONG):
        hasty = world.member(session_ms=session_ms)
        assert hasty.ask_to_join().answer.error_code == E.INVALID_SESSION_TIMEOUT
    assert world.broker.groups.groups == {}
    patient = world.member(rebalance_ms=LONG)
    join = patient.join()
    world.pass_ms(INITIAL_DELAY_MS)
    patient.took(join)


async def test_a_group_takes_so_many_members_and_the_broker_so_many_groups() -> None:
    world = await group_world(group_max_size="2", horolog_max_groups="2")
    world.stable(world.member(), world.member())
    third = world.member()
    assert third.ask_to_join().answer.error_code == E.GROUP_MAX_SIZE_REACHED
    crowd = [world.member(group_id="crowd").ask_to_join().answer.error_code for _ in range(3)]
    assert crowd == [E.MEMBER_ID_REQUIRED] * 2 + [E.GROUP_MAX_SIZE_REACHED]
    late = world.member(group_id="late")
    assert late.ask_to_join().answer.error_code == E.GROUP_MAX_SIZE_REACHED


async def test_what_members_say_of_themselves_is_bounded() -> None:
    world = await group_world(horolog_group_members_max_bytes="1000")
    world.stable(world.member(protocols=(("range", b"x" * 700),)))
    loud = world.member(group_id="other", protocols=(("range", b"x" * 700),))
    assert loud.ask_to_join().answer.error_code == E.GROUP_MAX_SIZE_REACHED
    assert set(world.broker.groups.groups) == {"g"}
    world.pass_ms(10_001)
    assert world.broker.groups.footprint.total_bytes == 0
    join = loud.join()
    world.pass_ms(INITIAL_DELAY_MS)
    loud.took(join)


async def test_an_assignment_counts_when_it_is_durable() -> None:
    world = await group_world(horolog_durability="fsync")
    member = world.member()
    join = member.join()
    world.pass_ms(INITIAL_DELAY_MS)
    member.took(join)
    sync = member.sync({member.member_id: b"all"})
    assert sync.answer is None
    assert world.group().state.value == "CompletingRebalance"
    assert member.commit(("t", 0, 1)) == [E.REBALANCE_IN_PROGRESS]
    world.commit.sync()
    assert sync.answer.assignment == b"all"
    assert world.group().state.value == "Stable"


async def test_an_assignment_that_the_disk_refuses_begins_a_new_rebalance() -> None:
    world = await group_world(horolog_durability="fsync")
    member = world.member()
    join = member.join()
    world.pass_ms(INITIAL_DELAY_MS)
    member.took(join)
    sync = member.sync({member.member_id: b"all"})
    world.commit.fail()
    assert sync.answer.error_code == E.NOT_COORDINATOR
    assert member.heartbeat() == E.REBALANCE_IN_PROGRESS


async def test_nobody_waits_for_a_broker_that_stops() -> None:
    world = await group_world()
    member = world.member()
    join = member.join()
    world.broker.groups.stop()
    assert join.answer.error_code == E.NOT_COORDINATOR


async def test_a_second_join_of_a_member_answers_the_first() -> None:
    world = await group_world()
    member = world.member()
    first: Promise = member.join()
    second = member.ask_to_join()
    assert first.answer.error_code == E.UNKNOWN_MEMBER_ID
    world.pass_ms(INITIAL_DELAY_MS)
    assert member.took(second).generation_id == 1


async def test_a_thousand_members_cost_the_heap_one_entry_each() -> None:
    world: GroupWorld = await group_world()
    members = [world.member() for _ in range(50)]
    world.stable(*members)
    before = len(world.broker.groups.deadlines)
    for _ in range(20):
        for member in members:
            assert member.heartbeat() == 0
    assert len(world.broker.groups.deadlines) == before


async def test_a_protocol_named_twice_is_refused_and_stops_no_other_group() -> None:
    world = await group_world()
    honest = world.member(group_id="honest")
    joining = honest.join()
    odd = world.member(group_id="odd", protocols=(("range", b"r"), ("range", b"r")))
    assert odd.join().answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    world.pass_ms(INITIAL_DELAY_MS)
    honest.took(joining)
    world.pass_ms(10_001)
    assert world.group("honest").member_count == 0


async def test_a_protocol_type_longer_than_any_string_is_no_request() -> None:
    world = await group_world()
    odd = world.member(protocol_type="t" * 40_000)
    with pytest.raises(DecodeError, match="protocol_type"):
        odd.ask_to_join()


async def test_the_longest_names_of_a_member_are_remembered() -> None:
    world = await group_world()
    long = "\u00e9" * 16_383
    member = world.member(instance=long, protocol_type=long, protocols=((long, b"r"),))
    join = member.join()
    world.pass_ms(INITIAL_DELAY_MS)
    member.took(join)
    member.sync({member.member_id: b"part"})
    assert world.group().state_name == "Stable"
    again = world.restarted()
    await again.broker.groups.load()
    assert again.group().members[member.member_id].instance_id == long


async def test_an_error_in_one_group_leaves_the_timers_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await group_world()
    broken, honest = world.member(group_id="broken"), world.member(group_id="honest")
    broken.join()
    joining = honest.join()
    monkeypatch.setattr(world.group("broken"), "next_generation", None)
    before = callbacks.failures["group_deadline"]
    world.pass_ms(INITIAL_DELAY_MS)
    assert callbacks.failures["group_deadline"] == before + 1
    honest.took(joining)
    world.pass_ms(10_001)
    assert world.group("honest").member_count == 0
