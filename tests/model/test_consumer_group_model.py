"""Groups that the broker assigns, against a plain rule: nobody reads what another one still reads.

Clients do what Kafka's do: they give back what they are told to, in their own time, and say so in
the next heartbeat. They die, leave, come back; topics grow; the broker is killed. In the end those
that live share everything.
"""

import asyncio
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from protocol.apis import consumer_group_heartbeat, create_partitions
from tests.support.worlds.group_world import GROUP, GroupWorld, group_world

CLIENTS = 4
FENCED = {25, 69, 82, 110}  # it begins anew
SESSION_MS = 45_000

Place = tuple[UUID, int]


class Client:
    """A consumer of the new protocol."""

    def __init__(self, number: int) -> None:
        self.number, self.life = number, 0
        self.instance = "static" if number == 0 else None
        self.lives = False
        self.lost()

    def lost(self) -> None:
        """It has nothing, and is to join."""
        self.epoch = 0
        self.owned: set[Place] = set()
        self.wanted: set[Place] | None = None

    def begin(self) -> None:
        self.lives, self.life = True, self.life + 1
        self.lost()

    @property
    def member_id(self) -> str:
        return f"{self.number}-{self.life}"

    def beat(self, world: GroupWorld) -> None:
        """Says what it has, hears what it is to have; takes it at once, gives back later."""
        if self.wanted is not None:
            self.owned &= self.wanted
        answer = self._said(world, self.epoch, self.owned)
        if answer.error_code == 111:  # its older self is there still
            return
        if answer.error_code:
            assert answer.error_code in FENCED, answer
            if self.instance and answer.error_code != 82:
                self.life += 1
            self.lost()
            return
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.wanted = {
                (each.topic_id, index)
                for each in answer.assignment.topic_partitions
                for index in each.partitions
            }
            self.owned |= self.wanted

    def leave(self, world: GroupWorld) -> None:
        self._said(world, -2 if self.instance else -1, None)

    def _said(self, world: GroupWorld, epoch: int, owned: set[Place] | None) -> Any:
        partitions = None
        if owned is not None:
            partitions = [
                consumer_group_heartbeat.ConsumerGroupHeartbeatTopicPartitions(
                    topic_id=topic, partitions=[i for t, i in owned if t == topic]
                )
                for topic in {topic for topic, _ in owned}
            ]
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance,
            rebalance_timeout_ms=20_000 if epoch == 0 else -1,
            subscribed_topic_names=["t"] if epoch == 0 else None,
            topic_partitions=partitions,
        )
        return world.now(request, 1)


class ConsumerGroups(RuleBasedStateMachine):
    """One broker, one group, a few clients."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world = self._run(group_world)
        self.clients = [Client(number) for number in range(CLIENTS)]
        self.partitions = 2

    def _run(self, work: Any, *arguments: Any) -> Any:
        async def on_loop() -> Any:
            found = work(*arguments)
            return await found if asyncio.iscoroutine(found) else found

        return self.runner.run(on_loop())

    @initialize(count=st.integers(1, CLIENTS))
    def some_are_there(self, count: int) -> None:
        for client in self.clients[:count]:
            client.begin()
        self.all_beat(4, 500)

    @rule(number=st.integers(0, CLIENTS - 1))
    def restarts(self, number: int) -> None:
        self.clients[number].begin()

    @rule(number=st.integers(0, CLIENTS - 1))
    def beats(self, number: int) -> None:
        if self.clients[number].lives:
            self._run(self.clients[number].beat, self.world)

    @rule(times=st.integers(1, 4), ms=st.sampled_from([0, 500, 5000]))
    def all_beat(self, times: int, ms: int) -> None:
        for _ in range(times):
            for client in self.clients:
                self.beats(client.number)
                self.nobody_reads_what_another_reads()
            self.time_passes(ms)

    @rule(number=st.integers(0, CLIENTS - 1))
    def dies(self, number: int) -> None:
        self.clients[number].lives = False
        self.clients[number].lost()

    @rule(number=st.integers(0, CLIENTS - 1))
    def leaves(self, number: int) -> None:
        client = self.clients[number]
        if client.lives and client.epoch > 0:
            self._run(client.leave, self.world)
        self.dies(number)

    @rule(ms=st.sampled_from([1, 5000, 20_001, SESSION_MS + 1]))
    def time_passes(self, ms: int) -> None:
        self._run(self.world.pass_ms, ms)
        if ms > 20_000:  # who was fenced meanwhile knows, or gives up by itself
            for client in self.clients:
                client.lost()

    @rule()
    def the_topic_grows(self) -> None:
        self.partitions += 1
        topic = create_partitions.CreatePartitionsTopic(name="t", count=self.partitions)
        request = create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=1000)
        answer = self._run(self.world.call, request, 3)
        assert answer.results[0].error_code == 0

    @rule()
    def broker_is_killed(self) -> None:
        self.world.broker.groups.deadlines.close()
        self.world = self._run(self.world.restarted)
        self._run(self.world.broker.groups.load)

    @invariant()
    def nobody_reads_what_another_reads(self) -> None:
        taken: dict[Place, int] = {}
        for client in self.clients:
            for place in client.owned if client.lives else ():
                assert place not in taken, (place, taken[place], client.number)
                taken[place] = client.number

    @invariant()
    def the_books_are_right(self) -> None:
        groups = self.world.broker.groups
        group = groups.groups.get(GROUP)
        if group is None or group.modern is None:
            return
        consumer = group.modern
        members = consumer.members
        assert groups.footprint.total_bytes == sum(m.size_bytes for m in members.values())
        assert consumer.instances == {
            m.instance_id: m.member_id for m in members.values() if m.instance_id
        }
        assert set(consumer.targets) <= set(members)
        assert set(consumer.owners.values()) <= set(members)
        assert len(groups.deadlines) < 200

    def teardown(self) -> None:
        try:
            self._comes_to_rest()
        finally:
            self.world.broker.groups.deadlines.close()
            self.runner.close()

    def _comes_to_rest(self) -> None:
        for _ in range(60):
            if self._is_at_rest():
                return
            self.all_beat(1, 2000)
        assert self._is_at_rest(), self.world.broker.groups.groups[GROUP].modern

    def _is_at_rest(self) -> bool:
        living = [each for each in self.clients if each.lives]
        if not living:
            return True
        owned = [place for each in living for place in each.owned]
        group = self.world.broker.groups.groups.get(GROUP)
        return (
            len(owned) == self.partitions
            and group is not None
            and group.state_name == "Stable"
            and max(len(each.owned) for each in living)
            - min(len(each.owned) for each in living) <= 1
        )  # fmt: skip


TestConsumerGroups = ConsumerGroups.TestCase
TestConsumerGroups.settings = settings(
    max_examples=max(40, settings.default.max_examples // 3),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
