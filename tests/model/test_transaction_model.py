"""Transactions against a plain model: owners come, write, end, are fenced; time passes, all dies.

At every moment a reader of committed records sees, in each partition, a prefix of what was
committed there; in the end all of it, in order, and nothing else, and nothing is open any more.
Owners that were fenced go on as zombies: whatever they try changes nothing.
"""

import asyncio
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.support.worlds.transaction_world import TIMEOUT_MS, Producer, transaction_world

PARTITIONS = 2
OWNERS = 3
FENCED = {47, 49, 90}
Values = dict[int, list[tuple[int, bytes]]]


class Owner:
    """A producer, and what it has written in the transaction that is open."""

    def __init__(self, client: Producer) -> None:
        self.client = client
        self.written: list[tuple[int, int, bytes]] = []
        self.offset: int | None = None
        self.is_fenced = False

    def forget(self) -> None:
        self.written.clear()
        self.offset = None


class Transactions(RuleBasedStateMachine):
    """One broker, two partitions, a few transactional ids."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.world = self.runner.run(transaction_world(PARTITIONS, horolog_durability="by-acks"))
        self.owners: dict[int, Owner] = {}
        self.zombies: list[Owner] = []
        self.committed: Values = {index: [] for index in range(PARTITIONS)}
        self.offset = -1
        self.count = 0

    def _run(self, work: Any) -> Any:
        async def to_its_end() -> Any:
            found = await work
            await self.world.rests()
            return found

        return self.runner.run(to_its_end())

    @rule(number=st.integers(0, OWNERS - 1), version=st.sampled_from([1, 2]))
    def begin(self, number: int, version: int) -> None:
        """A new process takes the id over."""
        client = Producer(self.world, f"id-{number}", version)
        assert self._run(client.begin()) == 0
        before = self.owners.get(number)
        if before is not None:
            before.is_fenced = True
            before.forget()
            self.zombies.append(before)
        self.owners[number] = Owner(client)

    @rule(number=st.integers(0, OWNERS - 1), index=st.integers(0, PARTITIONS - 1))
    def write(self, number: int, index: int) -> None:
        owner = self.owners.get(number)
        if owner is not None:
            self.count += 1
            value = b"%d" % self.count
            code = self._run(owner.client.write(value, index))
            if self._is_well(number, code):
                end = self.world.partition("t", index).log.snapshot.log_end_offset
                owner.written.append((index, end - 1, value))

    @rule(number=st.integers(0, OWNERS - 1))
    def commit_offset(self, number: int) -> None:
        owner = self.owners.get(number)
        if owner is not None:
            self.count += 1
            if self._is_well(number, self._run(owner.client.commit_offset(self.count))):
                owner.offset = self.count

    @rule(
        number=st.integers(0, OWNERS - 1),
        commit=st.booleans(),
        death=st.none() | st.just(-1) | st.integers(0, 1000),
    )
    def end(self, number: int, commit: bool, death: int | None) -> None:
        """Perhaps the broker dies as it answers: by kill -9 (-1), or with the machine."""
        owner = self.owners.get(number)
        if owner is None or (not owner.written and owner.offset is None):
            return
        code = self.runner.run(owner.client.end(commit=commit))
        if death is not None:
            self.the_broker_dies(None if death < 0 else death)
        if not self._is_well(number, code):
            return
        if commit:
            for index, at, value in owner.written:
                self.committed[index].append((at, value))
            if owner.offset is not None:  # the commit asked for last stands, whoever ends last
                self.offset = max(self.offset, owner.offset)
        owner.forget()

    def _is_well(self, number: int, code: int) -> bool:
        """Whether it worked; an owner whose time was over has to begin anew."""
        if code == 0:
            return True
        assert code in FENCED, code
        owner = self.owners.pop(number)
        owner.is_fenced = True
        owner.forget()
        self.zombies.append(owner)
        return False

    @rule(what=st.sampled_from(["write", "end", "offset", "begin"]))
    def a_zombie_tries(self, what: str) -> None:
        if not self.zombies:
            return
        client = self.zombies[-1].client
        if what == "write":
            code = self._run(client.write(b"zombie"))
        elif what == "end":
            code = self._run(client.end())
        elif what == "offset":
            code = self._run(client.commit_offset(0))
        else:
            code = self._run(client.begin(goes_on=True))
        assert code in FENCED

    @rule(ms=st.sampled_from([1, TIMEOUT_MS // 2, TIMEOUT_MS]))
    def time_passes(self, ms: int) -> None:
        self._run(self.world.passes(ms))

    @rule(power_cut=st.none() | st.integers(0, 1000))
    def the_broker_dies(self, power_cut: int | None) -> None:
        """By kill -9, or with the machine: what was promised is on the disk, nothing else."""
        remains = self.world.remains(power_cut)
        self.world = self._run(self.world.reborn(remains))
        for owner in (*self.owners.values(), *self.zombies):
            owner.client.world = self.world

    @invariant()
    def readers_see_a_prefix_of_what_was_committed(self) -> None:
        for index in range(PARTITIONS):
            seen = self._run(self.world.committed(partition=index))
            assert seen == self._expected(index)[: len(seen)]

    @invariant()
    def the_offset_is_what_was_committed(self) -> None:
        assert self._run(self.world.offset()) == (self.offset, 0)

    def _expected(self, index: int) -> list[bytes]:
        return [value for _, value in sorted(self.committed[index])]

    def teardown(self) -> None:
        try:
            self._comes_to_rest()
        finally:
            self.runner.close()

    def _comes_to_rest(self) -> None:
        self._run(self.world.passes(TIMEOUT_MS))
        assert not self.world.broker.transactions.steps.open
        assert len(self.world.broker.groups.pending) == 0
        for index in range(PARTITIONS):
            snapshot = self.world.partition("t", index).log.snapshot
            assert snapshot.last_stable_offset == snapshot.log_end_offset
            assert self._run(self.world.committed(partition=index)) == self._expected(index)


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(
    max_examples=max(40, settings.default.max_examples // 3),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
