"""Who is to read what: everything is read once, evenly, and little moves."""

from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.consumer.assignors import ASSIGNORS, Assignor, by_range, uniform
from broker.groups.subscriptions import Target
from tests.support.counted_keys import CountedName

TOPICS = [UUID(int=number) for number in range(1, 5)]
COUNTS = st.fixed_dictionaries({topic: st.integers(0, 9) for topic in TOPICS})
NAMES = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True)
Read = dict[str, set[tuple[UUID, int]]]


def subscriptions(
    names: list[str], *, alike: bool
) -> st.SearchStrategy[dict[str, frozenset[UUID]]]:
    topics = st.frozensets(st.sampled_from(TOPICS))
    if alike:
        return topics.map(lambda each: dict.fromkeys(names, each))
    return st.fixed_dictionaries(dict.fromkeys(names, topics))


MEMBERS = st.booleans().flatmap(
    lambda alike: NAMES.flatmap(lambda names: subscriptions(names, alike=alike))
)


def read_by(targets: Mapping[str, Target]) -> Read:
    return {
        name: {(topic, index) for topic, indexes in target.items() for index in indexes}
        for name, target in targets.items()
    }


def check(members: dict[str, frozenset[UUID]], counts: Mapping[UUID, int], read: Read) -> None:
    assert read.keys() == members.keys()
    assert all(topic in members[name] for name, places in read.items() for topic, _ in places)
    everything = [place for places in read.values() for place in places]
    wanted = {(t, i) for topics in members.values() for t in topics for i in range(counts[t])}
    assert len(everything) == len(wanted)
    assert set(everything) == wanted


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS)
@given(before=MEMBERS, then=MEMBERS, counts=COUNTS, later=COUNTS)
def test_everything_is_read_once_by_who_subscribes_to_it(
    assign: Assignor,
    before: dict[str, frozenset[UUID]],
    then: dict[str, frozenset[UUID]],
    counts: Mapping[UUID, int],
    later: Mapping[UUID, int],
) -> None:
    targets = assign(before, {}, counts)
    check(before, counts, read_by(targets))
    left = {name: target for name, target in targets.items() if name in then}
    check(then, later, read_by(assign(then, left, later)))


@given(names=NAMES, more=NAMES, counts=COUNTS)
def test_uniform_is_even_and_moves_no_more_than_it_must(
    names: list[str], more: list[str], counts: Mapping[UUID, int]
) -> None:
    everything = frozenset(TOPICS)
    first = uniform(dict.fromkeys(names, everything), {}, counts)
    old = read_by(first)
    members = dict.fromkeys(more, everything)
    new = read_by(uniform(members, {n: t for n, t in first.items() if n in members}, counts))
    sizes = sorted(map(len, new.values()))
    assert sizes[-1] - sizes[0] <= 1
    least, extras = divmod(sum(counts.values()), len(members))
    stayed = sorted((len(old[name]) for name in members if name in old), reverse=True)
    must_stay = sum(min(size, least + (at < extras)) for at, size in enumerate(stayed))
    assert sum(len(new[name] & old[name]) for name in members if name in old) == must_stay


@given(names=NAMES, count=st.integers(1, 20))
def test_range_gives_the_same_numbers_of_equal_topics_to_the_same_member(
    names: list[str], count: int
) -> None:
    targets = by_range(dict.fromkeys(names, frozenset(TOPICS)), {}, dict.fromkeys(TOPICS, count))
    for target in targets.values():
        assert len(set(target.values())) <= 1
        for indexes in target.values():
            assert sorted(indexes) == list(range(min(indexes), max(indexes) + 1))


def test_members_that_read_different_topics_share_what_they_can() -> None:
    one, two = TOPICS[:2]
    members = {"a": frozenset({one}), "b": frozenset({one, two}), "c": frozenset({two})}
    read = read_by(uniform(members, {}, {one: 6, two: 3}))
    assert sorted(map(len, read.values())) == [3, 3, 3]


def looks_at_members(size: int) -> int:
    """Looks that a group of so many members costs while four of them change what they read."""
    topics = [UUID(int=number) for number in range(20)]
    members: dict[str, frozenset[UUID]] = {
        CountedName(f"m{n}"): frozenset(topics[n % 3 : 20 - n % 4]) for n in range(size)
    }
    counts, targets = dict.fromkeys(topics, 500), dict[str, Target]()
    before = CountedName.looks
    for name in list(members)[:4]:  # begins to read all
        members[name] = frozenset(topics)
        targets = uniform(members, targets, counts)
    looks = CountedName.looks - before
    check(members, counts, read_by(targets))
    return looks


def test_a_partition_takes_no_look_at_each_of_many_members() -> None:
    """An assignment is made between two requests: 10,000 partitions take no seconds of work."""
    assert looks_at_members(1000) < 8 * looks_at_members(20)


@given(members=MEMBERS, counts=COUNTS)
def test_uniform_leaves_no_partition_with_a_reader_that_another_could_relieve(
    members: dict[str, frozenset[UUID]], counts: Mapping[UUID, int]
) -> None:
    read = read_by(uniform(members, {}, counts))
    for places in read.values():
        for topic, _ in places:
            assert all(
                len(places) <= len(read[name]) + 1
                for name, topics in members.items()
                if topic in topics
            )
