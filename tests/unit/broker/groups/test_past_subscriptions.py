"""Memory of groups whose members change their minds: names of the past take none."""

import tracemalloc
from collections.abc import Callable

import pytest

from broker.groups.classic.group import Group
from broker.groups.classic.members import Footprint, Joining, Member, Protocol
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ConsumerMember
from broker.groups.share.group import ShareGroup
from broker.groups.share.member import ShareMember

ROUNDS, NAMES = 40, 500


def of_consumers() -> Callable[[int], None]:
    group = ConsumerGroup("g", Footprint())

    def subscribe(number: int) -> None:
        names = frozenset(f"topic-{number}-{n}" for n in range(NAMES))
        group.put(ConsumerMember("m", names=names, regex=f"r{number}"))
        group.rows.clear()
        assert group.topics == names
        assert group.patterns == {f"r{number}"}

    return subscribe


def of_shares() -> Callable[[int], None]:
    group = ShareGroup("g", Footprint())

    def subscribe(number: int) -> None:
        names = frozenset(f"topic-{number}-{n}" for n in range(NAMES))
        group.put(ShareMember("m", names=names))
        group.rows.clear()
        assert group.topics == names

    return subscribe


def of_classic_members() -> Callable[[int], None]:
    group = Group("g", 0, Footprint())

    def joining(number: int) -> Joining:
        protocols = tuple(Protocol(f"protocol-{number}-{n}", b"") for n in range(NAMES))
        return Joining(
            "m", None, "c", "h", 1, 1, "consumer", protocols,
            needs_known_id=False, may_skip_assignment=False,
        )  # fmt: skip

    member = Member("m", joining(-1))
    group.add(member, "consumer")

    def subscribe(number: int) -> None:
        group.update(member, joining(number))
        assert group.select_protocol() == f"protocol-{number}-0"

    return subscribe


@pytest.mark.parametrize("make", [of_consumers, of_shares, of_classic_members])
def test_names_that_nobody_says_any_more_take_no_memory(
    make: Callable[[], Callable[[int], None]],
) -> None:
    subscribe = make()
    subscribe(0)
    tracemalloc.start()
    try:
        subscribe(1)
        before = tracemalloc.get_traced_memory()[0]
        for number in range(2, ROUNDS):
            subscribe(number)
        growth = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert growth < ROUNDS * NAMES * 10  # of about 150 bytes each
