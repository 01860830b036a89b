"""Groups of a node of a fleet: those of the partitions that it leads, from when it does."""

import asyncio
from typing import Any

import pytest

from broker.partitions.leadership import NOBODY, Leadership
from broker.runtime.endpoint import Endpoint
from broker.state import loading
from broker.state.loading import StateLoading
from broker.state.reading import LeftOut
from broker.state.state_topic import partition_of
from protocol.apis import find_coordinator, offset_fetch
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CorruptBatch
from storage.log.log import Log
from storage.tier.port import StoreAway
from tests.support.fleet.hand_lease import HandLease
from tests.support.worlds.group_world import GROUP, GroupWorld, Promise, commit_request

PARTITIONS, NODE = 4, 1
HERE = partition_of(GROUP, PARTITIONS)
OTHER = next(
    name for name in map("other-{}".format, range(99)) if partition_of(name, PARTITIONS) != HERE
)


@pytest.fixture
async def world() -> GroupWorld:
    """A node that leads nothing yet, with a topic to read."""
    made = GroupWorld(
        None, 0, horolog_durability="os", offsets_topic_num_partitions=str(PARTITIONS),
        group_initial_rebalance_delay_ms="3000",
    )  # fmt: skip
    await made.make_topic("t", 2)
    await made.broker.groups.topic.make()
    made.broker.groups.loading.share(made.clock.monotonic, NODE)
    made.clock.advance(11_000)
    return made


def codes(world: GroupWorld, group: str = GROUP) -> list[int]:
    return world.commit_offsets(("t", 0, 7), group_id=group)


def of(world: GroupWorld, group: str) -> Any:
    topic = world.broker.groups.topic
    return topic.partitions[topic.index_of(group)]


async def lead(world: GroupWorld, group: str) -> None:
    """This node leads the group's partition from now on."""
    world.broker.groups.loading.gain(of(world, group))
    await world.broker.groups.lead(of(world, group))


async def test_groups_of_other_nodes_are_refused(world: GroupWorld) -> None:
    await lead(world, GROUP)
    assert codes(world) == [0]
    assert codes(world, OTHER) == [ErrorCode.NOT_COORDINATOR]
    member = world.member(group_id=OTHER)
    assert member.ask_to_join().answer.error_code == ErrorCode.NOT_COORDINATOR
    assert member.heartbeat() == ErrorCode.NOT_COORDINATOR


async def test_what_is_led_no_more_is_forgotten_and_who_waits_is_sent_away(
    world: GroupWorld,
) -> None:
    groups = world.broker.groups
    for each in (GROUP, OTHER):
        await lead(world, each)
        assert codes(world, each) == [0]
    waiting = world.member().join()
    assert waiting.answer is None
    groups.lead_no_more(of(world, GROUP))
    assert waiting.answer.error_code == ErrorCode.NOT_COORDINATOR
    assert codes(world) == [ErrorCode.NOT_COORDINATOR]
    assert set(groups.groups) == {OTHER}
    assert groups.commits.stored == 1
    assert groups.footprint.total_bytes == 0
    groups.lead_no_more(of(world, OTHER))
    assert (groups.commits.stored, groups.commits.stored_bytes) == (0, 0)


async def test_a_commit_on_its_way_when_the_leader_changes_is_not_kept(world: GroupWorld) -> None:
    groups = world.broker.groups
    world.broker.config.set_topic("__consumer_offsets", {"horolog.durability": "fsync"})
    await lead(world, GROUP)
    promise = Promise(world, commit_request(("t", 0, 7)), 9)
    assert promise.answer is None, "it waits for the disk"
    groups.lead_no_more(of(world, GROUP))
    world.commit.sync()
    assert groups.groups == {}
    assert (groups.commits.stored, groups.commits.stored_bytes) == (0, 0)


async def test_what_was_committed_is_there_when_it_is_led_again(world: GroupWorld) -> None:
    groups = world.broker.groups
    await lead(world, GROUP)
    codes(world)
    groups.lead_no_more(of(world, GROUP))
    await lead(world, GROUP)
    assert world.offsets() == {("t", 0): 7}


async def test_offsets_of_a_group_that_has_just_moved_are_asked_for_again(
    world: GroupWorld,
) -> None:
    """librdkafka never repeats an OffsetFetch after NOT_COORDINATOR (its issue 5586)."""
    await lead(world, GROUP)
    codes(world)
    world.broker.groups.lead_no_more(of(world, GROUP))
    assert fetched(world) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert codes(world) == [ErrorCode.NOT_COORDINATOR]
    assert fetched(world, OTHER) == ErrorCode.NOT_COORDINATOR, "it was never here"
    world.clock.advance(11_000)
    assert fetched(world) == ErrorCode.NOT_COORDINATOR


async def test_offsets_of_a_group_that_comes_here_are_asked_for_again(world: GroupWorld) -> None:
    """NOT_COORDINATOR would end the process of an admin client of librdkafka."""
    assert fetched(world) == ErrorCode.NOT_COORDINATOR
    of(world, GROUP).led_by(Leadership(NODE, 3, is_here=False))
    assert fetched(world) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    of(world, GROUP).led_by(Leadership(NODE + 1, 3, is_here=False))
    assert fetched(world) == ErrorCode.NOT_COORDINATOR
    world.broker.groups.loading.share(world.clock.monotonic, NODE)  # as a process that begins
    assert fetched(world) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_offsets_are_not_told_where_another_node_may_have_newer_ones(
    world: GroupWorld,
) -> None:
    """A process that goes back to them would do once more what others have done since."""
    lease = HandLease()
    of(world, GROUP).led_by(Leadership(NODE, 3, is_here=True, lease=lease))
    await lead(world, GROUP)
    assert codes(world) == [0]
    assert world.offsets() == {("t", 0): 7}
    lease.is_held = False
    assert fetched(world) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    lease.is_held = True
    assert world.offsets() == {("t", 0): 7}


async def test_a_coordinator_that_nobody_is_yet_is_looked_for_again(world: GroupWorld) -> None:
    """A node that is not it may be asked: librdkafka stops to look at COORDINATOR_NOT_AVAILABLE."""
    world.broker.endpoints.others = {NODE + 1: Endpoint("other.test", 9093)}
    of(world, GROUP).led_by(Leadership(NODE + 1, 3, is_here=False))
    assert found(world) == (0, NODE + 1, "other.test")
    of(world, GROUP).led_by(Leadership(NODE + 2, 4, is_here=False))
    assert found(world) == (0, NODE, "broker.test"), "no address of it is known"
    of(world, GROUP).led_by(Leadership(NOBODY, 5, is_here=False))
    assert found(world) == (0, NODE, "broker.test")
    assert codes(world) == [ErrorCode.NOT_COORDINATOR]
    assert fetched(world) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def found(world: GroupWorld) -> tuple[int, int, str]:
    answer = world.now(find_coordinator.FindCoordinatorRequest(coordinator_keys=[GROUP]), 4)
    [each] = answer.coordinators
    return each.error_code, each.node_id, each.host


def fetched(world: GroupWorld, group: str = GROUP) -> int:
    wanted = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=None)
    answer = world.now(offset_fetch.OffsetFetchRequest(groups=[wanted]), 9)
    return int(answer.groups[0].error_code)


class HeldLane:
    """Work that ends when the test says so."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self.held: list[Any] = []

    def run(self, work: Any, *arguments: Any) -> Any:
        future = self._loop.create_future()
        self.held.append(lambda: future.set_result(work(*arguments)))
        return future


class Found:
    """State of a partition."""

    def __init__(self, log: Any) -> None:
        self.log = log
        self.left_out = LeftOut()


async def test_a_partition_that_is_lost_while_it_is_read_is_not_served(world: GroupWorld) -> None:
    lane, restored, failed = HeldLane(asyncio.get_running_loop()), list[Any](), list[Any]()
    topic = world.broker.groups.topic
    loading = StateLoading[Any](
        lane, topic, lambda log, _: Found(log), restored.append,  # type: ignore[arg-type]
        on_failed=lambda *each: failed.append(each), on_unreadable=lambda *_: None,
    )  # fmt: skip
    loading.share(world.clock.monotonic, NODE)
    partition = of(world, GROUP)
    loading.gain(partition)
    first = asyncio.ensure_future(loading.load(partition, 1))
    await asyncio.sleep(0)
    assert refused(loading) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert loading.is_under_way
    loading.lose(partition)
    lane.held.pop(0)()
    await first
    assert restored == []
    assert refused(loading) == ErrorCode.NOT_COORDINATOR
    await loading.load(partition, 1)
    assert lane.held == [], "it is another's"
    loading.gain(partition)
    again = asyncio.ensure_future(loading.load(partition, 1))
    await asyncio.sleep(0)
    lane.held.pop(0)()
    await again
    assert [each.log for each in restored] == [partition.log]
    assert refused(loading) is None
    assert failed == []


async def test_a_partition_that_is_lost_and_gained_again_is_read_once_more(
    world: GroupWorld,
) -> None:
    """What was read before may lack what another node has written; and one gain is one read."""
    lane, restored = HeldLane(asyncio.get_running_loop()), list[Any]()
    loading = StateLoading[Any](
        lane, world.broker.groups.topic,  # type: ignore[arg-type]
        lambda log, _: Found(log), restored.append,
        on_failed=lambda *_: None, on_unreadable=lambda *_: None,
    )  # fmt: skip
    loading.share(world.clock.monotonic, NODE)
    partition = of(world, GROUP)
    loading.gain(partition)
    first = asyncio.ensure_future(loading.load(partition, 1))
    await asyncio.sleep(0)
    loading.lose(partition)
    loading.gain(partition)
    second = asyncio.ensure_future(loading.load(partition, 1))
    third = asyncio.ensure_future(loading.load(partition, 1))
    await asyncio.sleep(0)
    assert len(lane.held) == 2
    lane.held.pop(0)()
    await asyncio.gather(first, third)
    assert restored == []
    assert refused(loading) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    lane.held.pop(0)()
    await second
    assert len(restored) == 1
    assert refused(loading) is None


def refused(loading: StateLoading[Any]) -> int | None:
    try:
        loading.check(GROUP)
    except KafkaError as error:
        return error.code
    return None


class FailingReads:
    """Reading of groups, which an object store does not give at first."""

    def __init__(self, world: GroupWorld, error: Exception, times: int) -> None:
        """The next `times` attempts end with `error`."""
        self.attempts = 0
        self._error, self._times = error, times
        loading = world.broker.groups.loading
        self._read, loading._read = loading._read, self.read

    def read(self, log: Log, chunk_bytes: int) -> Any:
        self.attempts += 1
        if self.attempts <= self._times:
            raise self._error
        return self._read(log, chunk_bytes)


async def test_groups_that_the_store_did_not_give_are_read_again(
    world: GroupWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        assert codes(world) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        assert world.broker.groups.loading.fault is not None

    reads = FailingReads(world, StoreAway("k", "get", "the store is away"), 7)
    monkeypatch.setattr(loading.asyncio, "sleep", sleep)
    await lead(world, GROUP)
    assert (reads.attempts, pauses) == (8, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0])
    assert codes(world) == [0]
    assert world.broker.groups.loading.fault is None


async def test_groups_that_another_node_leads_by_now_are_not_read_again(
    world: GroupWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sleep(_: float) -> None:
        world.broker.groups.lead_no_more(of(world, GROUP))

    reads = FailingReads(world, StoreAway("k", "get", "the store is away"), 99)
    monkeypatch.setattr(loading.asyncio, "sleep", sleep)
    await lead(world, GROUP)
    assert reads.attempts == 1
    assert codes(world) == [ErrorCode.NOT_COORDINATOR]


async def test_groups_that_are_damaged_are_read_once(world: GroupWorld) -> None:
    reads = FailingReads(world, CorruptBatch("its CRC is wrong", 0), 99)
    await lead(world, GROUP)
    assert reads.attempts == 1
    assert codes(world) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
