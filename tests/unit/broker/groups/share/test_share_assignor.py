"""The assignor of share groups: each partition has members, parts are even, little moves."""

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.share.assignor import quotas_of, simple
from broker.groups.subscriptions import Target
from tests.support.counted_keys import CountedTopic

TOPICS = [UUID(int=number) for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("members", "partitions", "sizes"),
    [(3, 2, [2, 1, 1]), (2, 4, [2, 2]), (5, 2, [2, 1, 1, 1, 1]), (1, 3, [3]), (4, 3, [2, 1, 2, 1])],
)
def test_parts_are_kafkas(members: int, partitions: int, sizes: list[int]) -> None:
    names = {str(number): frozenset(TOPICS[:1]) for number in range(members)}
    found = simple(names, {}, {TOPICS[0]: range(partitions)})
    assert [sum(map(len, each.values())) for each in found.values()] == sizes


def places(target: Target) -> set[tuple[UUID, int]]:
    return {(topic, index) for topic, indexes in target.items() for index in indexes}


subscriptions = st.dictionaries(
    st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from(TOPICS), min_size=1), max_size=8
)
counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 6))


@given(st.lists(st.tuples(subscriptions, counts), min_size=1, max_size=4))
def test_every_partition_is_read_by_members_that_may_and_parts_are_even(
    steps: list[tuple[dict[str, frozenset[UUID]], dict[UUID, int]]],
) -> None:
    before: dict[str, Target] = {}
    for members, sizes in steps:
        partitions = {topic: range(count) for topic, count in sizes.items()}
        found = simple(members, before, partitions)
        assert found.keys() == members.keys()
        for name, target in found.items():
            assert target.keys() <= members[name]
        shares = Counter(place for target in found.values() for place in places(target))
        for topic, indexes in partitions.items():
            readers = [name for name, topics in members.items() if topic in topics]
            for index in indexes:
                assert bool(shares[topic, index]) == bool(readers)
        if len(set(members.values())) == 1 and members:
            parts = [len(places(each)) for each in found.values()]
            assert max(parts) - min(parts) <= 1
        assert simple(members, found, partitions) == found  # at rest, nothing moves
        before = found


@given(st.integers(1, 50), st.integers(0, 200))
def test_quotas_are_even_and_complete(members: int, shares: int) -> None:
    quotas = quotas_of(members, shares)
    assert sum(quotas) == shares
    assert max(quotas) - min(quotas) <= 1


def looks_at_topics(size: int) -> int:
    """Looks that 10,000 partitions cost, while members join up to so many."""
    topics = [CountedTopic(int=number) for number in range(100)]
    names = [f"m{number}" for number in range(size)]
    targets: dict[str, Target] = {}
    before = CountedTopic.looks
    for count in range(size - 4, size + 1):
        members = dict.fromkeys(names[:count], frozenset(topics))
        targets = simple(members, targets, dict.fromkeys(topics, range(100)))
    looks = CountedTopic.looks - before
    assert {len(places(each)) for each in targets.values()} == {10_000 // size}
    return looks


def test_a_partition_takes_no_look_at_each_of_many_members() -> None:
    """An assignment is made between two requests: 10,000 partitions take no seconds of work."""
    assert looks_at_topics(200) < 8 * looks_at_topics(8)
