"""Writes of a node of a fleet: answered when they are committed, and in a bound in any case."""

import random
from collections.abc import Sequence
from uuid import UUID

import pytest

from broker.fleet.catalog.rows import CommittedSpan, OwnedShard, PartitionKey, PartitionRow
from broker.fleet.committer import NotCommitted
from broker.fleet.fleet_commit import FleetCommit
from broker.fleet.frame import ArrivedBatch
from broker.fleet.local_logs import LocalLog
from broker.partitions.commit import Done
from protocol.errors import ErrorCode, KafkaError
from storage.log.log import Log
from tests.support.fleet.commits import HeldCommits
from tests.support.fleet.machines.real_host import RealDisk
from tests.support.fleet.machines.sim_host import Value

NOW = 1_700_000_000_000
KEY = PartitionKey(UUID(int=5), 0)
WAIT = 5.0


class LocalSyncs:
    """This disk's part, which is told and answers nothing."""

    def __init__(self) -> None:
        self.told: list[Log] = []
        self.forgotten: list[Log] = []

    def request(self, log: Log, offset: int, done: Done) -> None:
        raise AssertionError("what this disk has decides nothing")

    def written(self, log: Log, size_bytes: int, *, interval: bool = True) -> bool:
        self.told.append(log)
        return False

    def start_moved(self, log: Log, done: Done) -> None:
        raise AssertionError("what this disk has decides nothing")

    def forget(self, log: Log) -> None:
        self.forgotten.append(log)


class HandClock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.due: list[tuple[float, object]] = []

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return int(self.now * 1000)

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"nobody sleeps {seconds} s")

    def later(self, seconds: float, work: object) -> None:
        self.due.append((self.now + seconds, work))

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        ready = [work for at, work in self.due if at <= self.now]
        self.due = [each for each in self.due if each[0] > self.now]
        for work in ready:
            assert callable(work)
            work()


class World:
    """One log that is served, with five values of which nothing is committed."""

    def __init__(self, log: LocalLog) -> None:
        self.log = log
        self.local, self.commits, self.clock = LocalSyncs(), HeldCommits(), HandClock()
        self.commit = FleetCommit(self.local, self.clock, self.clock.later, WAIT)
        self.commit.serve(log.log, log, self.commits)
        self.answers: list[BaseException | None] = []

    def ask(self, offset: int = 5) -> None:
        self.commit.request(self.log.log, offset, self.answers.append)

    @property
    def codes(self) -> Sequence[int | None]:
        return [each.code if isinstance(each, KafkaError) else None for each in self.answers]


@pytest.fixture
async def world() -> World:
    host = RealDisk(1, lambda: NOW).host(random.Random(1))
    row = PartitionRow(KEY, "t", 1, 0, [], None)
    log = await host.shards.load(row, OwnedShard(1, 1), _nothing)
    assert isinstance(log, LocalLog)
    host.shards.serve(log, HeldCommits())
    for number in range(5):
        host.served[KEY].append([Value(1, number)], number, NOW)
    return World(log)


async def _nothing(_: CommittedSpan) -> list[ArrivedBatch]:
    return []


async def test_a_write_is_answered_when_it_is_committed_and_not_when_it_is_on_this_disk(
    world: World,
) -> None:
    world.ask()
    world.log.log.mark_durable(world.log.log.sync())
    assert world.answers == []
    assert world.log.log.snapshot.high_watermark == 0
    assert world.local.told == [world.log.log], "this disk is synced by and by"
    [(log, offset, done)] = world.commits.requests
    assert (log, offset) == (world.log, 5)
    log.mark_durable(5)
    done(None)
    assert world.answers == [None]
    assert world.log.log.snapshot.high_watermark == 5


async def test_what_is_committed_already_is_answered_at_once(world: World) -> None:
    world.log.mark_durable(3)
    world.ask(3)
    assert world.answers == [None]
    assert world.commits.requests == []


async def test_a_write_that_another_owner_makes_moot_is_refused_with_kafkas_code(
    world: World,
) -> None:
    world.ask()
    world.commits.requests[0][2](NotCommitted("another owner"))
    assert world.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


async def test_a_log_that_is_not_served_takes_no_write(world: World) -> None:
    world.commit.end(world.log.log, world.log)
    world.ask()
    world.commit.start_moved(world.log.log, world.answers.append)
    assert world.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2


async def test_a_log_that_is_served_again_stays_so_when_its_earlier_life_ends(world: World) -> None:
    again = LocalLog(KEY, OwnedShard(1, 2), world.log.log, 0, lambda _: None)
    world.commit.serve(world.log.log, again, world.commits)
    world.commit.end(world.log.log, world.log)
    world.ask()
    assert [each[0] for each in world.commits.requests] == [again]


async def test_a_write_waits_for_a_bounded_time(world: World) -> None:
    world.ask()
    world.clock.pass_by(WAIT / 2)
    world.ask()
    world.commit.start_moved(world.log.log, world.answers.append)
    world.clock.pass_by(WAIT / 2)
    assert world.codes == [ErrorCode.REQUEST_TIMED_OUT]
    world.clock.pass_by(WAIT / 2)
    assert world.codes == [ErrorCode.REQUEST_TIMED_OUT] * 3
    for _, _, done in world.commits.requests:
        done(None)
    assert len(world.answers) == 3, "each is answered once"


async def test_an_answer_that_cannot_be_given_does_not_keep_others_waiting(world: World) -> None:
    def breaks(_: BaseException | None) -> None:
        raise RuntimeError("its connection is gone")

    world.commit.request(world.log.log, 5, breaks)
    world.ask()
    world.clock.pass_by(WAIT)
    assert world.codes == [ErrorCode.REQUEST_TIMED_OUT]


async def test_what_was_answered_is_not_kept(world: World) -> None:
    for _ in range(100):
        world.ask()
        world.commits.requests.pop()[2](None)
    assert world.answers == [None] * 100
    assert len(world.clock.due) == 1, "one timer for all"
    assert len(world.commit._waiting) <= 1
