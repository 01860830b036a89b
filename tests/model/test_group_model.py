"""Groups against a plain model: clients come, die, leave, commit, time passes, the broker restarts.

Each client does what Kafka's does: joins, syncs, lives, joins anew when it is told to. At every
moment no two clients of one generation have the same part, and what was committed is what is told.
In the end all that still live share all parts in a Stable group, whatever happened before.
"""

import asyncio
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.worlds.group_world import GROUP, GroupWorld, Member, Promise, group_world

PARTS = 4
CLIENTS = 4
UNKNOWN_MEMBER, ILLEGAL_GENERATION, REBALANCE, FENCED = 25, 22, 27, 82
STALE = {UNKNOWN_MEMBER, ILLEGAL_GENERATION, 16, 15}
SESSION_MS, REBALANCE_MS = 10_000, 20_000


class Client:
    """A consumer as Kafka's libraries write it: one step at a time."""

    def __init__(self, world: GroupWorld, number: int) -> None:
        self.number = number
        self.instance = f"static-{number}" if number % 2 else None
        self.lives = False
        self.member = self._new(world)
        self.join: Promise | None = None
        self.sync: Promise | None = None
        self.parts: set[int] | None = None
        """What it has of its generation; None while it has none."""

    def _new(self, world: GroupWorld) -> Member:
        return Member(
            world, instance=self.instance, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS
        )

    def begin(self, world: GroupWorld) -> None:
        """Starts as a new process."""
        self.lives, self.member = True, self._new(world)
        self.lost()

    def lost(self) -> None:
        """It has to join (again)."""
        self.join = self.sync = None
        self.parts = None

    def step(self) -> None:
        """One thing that it would do now."""
        if self.sync is not None:
            self._end_sync(self.sync)
        elif self.join is not None:
            self._end_join(self.join)
        elif self.parts is None:
            self.join = self.member.ask_to_join()
        else:
            self._live()

    def _end_join(self, join: Promise) -> None:
        answer = join.answer
        if answer is None:
            return
        self.join = None
        if answer.error_code == 79:
            self.member.member_id = answer.member_id
        elif answer.error_code in {*STALE, FENCED}:
            self.member.member_id = ""
        elif answer.error_code != REBALANCE:
            self.member.took(join)
            self.sync = self.member.sync(_shared_out(answer))

    def _end_sync(self, sync: Promise) -> None:
        answer = sync.answer
        if answer is None:
            return
        self.sync = None
        if answer.error_code == 0:
            self.parts = set(answer.assignment)
        else:
            self._told(answer.error_code)

    def _live(self) -> None:
        code = self.member.heartbeat()
        if code:
            self._told(code)

    def _told(self, code: int) -> None:
        assert code in {REBALANCE, FENCED, *STALE}, code
        if code in {UNKNOWN_MEMBER, FENCED}:
            self.member.member_id = ""
        self.lost()


def _shared_out(answer: Any) -> dict[str, bytes]:
    """What a leader decides: parts by turns. Followers, and who may skip it, decide nothing."""
    if not answer.members or answer.skip_assignment:
        return {}
    names = [each.member_id for each in answer.members]
    return {name: bytes(range(at, PARTS, len(names))) for at, name in enumerate(names)}


class Groups(RuleBasedStateMachine):
    """One broker, one group, a few clients."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world = self._run(group_world)
        self.clients = [Client(self.world, number) for number in range(CLIENTS)]
        self.committed: dict[tuple[str, int], int] = {}
        self.generation = 0

    def _run(self, work: Any, *arguments: Any) -> Any:
        async def on_loop() -> Any:
            found = work(*arguments)
            return await found if asyncio.iscoroutine(found) else found

        return self.runner.run(on_loop())

    @initialize(count=st.integers(1, CLIENTS))
    def some_share_already(self, count: int) -> None:
        for client in self.clients[:count]:
            client.begin(self.world)
        self.all_act(3, 3000)
        self.all_act(3, 3000)

    @rule(number=st.integers(0, CLIENTS - 1))
    def start_or_restart(self, number: int) -> None:
        self.clients[number].begin(self.world)

    @rule(number=st.integers(0, CLIENTS - 1), steps=st.integers(1, 4))
    def act(self, number: int, steps: int) -> None:
        for _ in range(steps):
            if self.clients[number].lives:
                self._run(self.clients[number].step)

    @rule(times=st.integers(1, 5), ms=st.sampled_from([0, 200, 3000]))
    def all_act(self, times: int, ms: int) -> None:
        for _ in range(times):
            for client in self.clients:
                self.act(client.number, 1)
            self.time_passes(ms)

    @rule(number=st.integers(0, CLIENTS - 1))
    def die(self, number: int) -> None:
        self.clients[number].lives = False
        self.clients[number].parts = None

    @rule(number=st.integers(0, CLIENTS - 1))
    def leave(self, number: int) -> None:
        client = self.clients[number]
        if client.lives and client.member.member_id and GROUP in self.world.broker.groups.groups:
            self._run(client.member.leave)
        self.die(number)

    @rule(ms=st.sampled_from([1, 500, 3000, 9999, 10_001, 20_001, 300_001]))
    def time_passes(self, ms: int) -> None:
        self._run(self.world.pass_ms, ms)

    @rule(
        number=st.integers(0, CLIENTS - 1),
        part=st.integers(0, 1),
        offset=st.integers(0, 1000),
    )
    def commit(self, number: int, part: int, offset: int) -> None:
        client = self.clients[number]
        if client.parts is None or not client.lives:
            return
        (code,) = self._run(client.member.commit, ("t", part, offset))
        if code == 0:
            self.committed["t", part] = offset
        else:
            client._told(code)

    @precondition(lambda self: self.generation > 0)
    @rule()
    def broker_is_killed(self) -> None:
        self.world.broker.groups.deadlines.close()
        self.world = self._run(self.world.restarted)
        self._run(self.world.broker.groups.load)
        self.generation = 0  # what was not remembered may come again
        for client in self.clients:
            client.member.world = self.world
            if client.join is not None or client.sync is not None:
                client.lost()

    @invariant()
    def committed_offsets_are_told(self) -> None:
        assert self.world.offsets() == self.committed

    @invariant()
    def nobody_has_anothers_part(self) -> None:
        group = self.world.broker.groups.groups.get(GROUP)
        if group is None or group.state.value != "Stable":
            return
        taken: set[int] = set()
        for client in self.clients:
            is_current = client.member.generation == group.generation
            if client.lives and is_current and client.member.member_id in group.members:
                assert not taken & (client.parts or set())
                taken |= client.parts or set()

    @invariant()
    def the_books_are_right(self) -> None:
        groups = self.world.broker.groups
        group = groups.groups.get(GROUP)
        if group is None:
            return
        assert group.generation >= self.generation
        self.generation = group.generation
        assert groups.footprint.total_bytes == sum(m.size_bytes for m in group.members.values())
        static = {m.instance_id: m.member_id for m in group.members.values() if m.instance_id}
        assert group.instances == static
        assert (group.leader in group.members) == bool(group.members)
        assert len(groups.deadlines) < 200

    def teardown(self) -> None:
        try:
            self._comes_to_rest()
        finally:
            self.world.broker.groups.deadlines.close()
            self.runner.close()

    def _comes_to_rest(self) -> None:
        """Within two minutes: sessions of the dead are over, the others share everything."""
        for _ in range(60):
            if self._is_at_rest():
                break
            self.all_act(1, 2000)
            self.nobody_has_anothers_part()
        assert self._is_at_rest(), self.world.broker.groups.groups

    def _is_at_rest(self) -> bool:
        group = self.world.broker.groups.groups.get(GROUP)
        living = self._living()
        if group is None or not living:
            return not living and (group is None or group.state.value in {"Empty", "Stable"})
        parts = set[int]().union(*(each.parts or () for each in living))
        return (
            group.state.value == "Stable"
            and set(group.members) == {each.member.member_id for each in living}
            and parts == set(range(PARTS))
        )

    def _living(self) -> list[Client]:
        return [each for each in self.clients if each.lives]


TestGroups = Groups.TestCase
TestGroups.settings = settings(
    max_examples=max(40, settings.default.max_examples // 3),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
