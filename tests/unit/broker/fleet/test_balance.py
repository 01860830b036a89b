"""Shards over nodes: even in the end, one gift at a time, by everybody in the same way."""

import random
from collections import Counter

import pytest

from broker.fleet.balance import BalancePlan, plan
from broker.fleet.catalog.rows import Incarnation, NodeAddress, NodeRow, OwnedShard, ShardRow

A, B, C = (Incarnation(each, 1) for each in (1, 2, 3))


def node(me: Incarnation, *, fenced: bool = False, draining: bool = False) -> NodeRow:
    return NodeRow(me, NodeAddress("h", 1), "1", 5, 0, fenced, draining)


def shards(*owners: Incarnation | None) -> list[ShardRow]:
    return [ShardRow(number, owner, 1) for number, owner in enumerate(owners)]


def test_the_first_node_takes_all() -> None:
    assert plan(A, [node(A)], shards(None, None, None)) == BalancePlan(take=3)


def test_nodes_take_their_share_of_what_is_free() -> None:
    rows = shards(B, B, None, None)
    assert plan(A, [node(A), node(B)], rows) == BalancePlan(take=2)
    assert plan(B, [node(A), node(B)], rows) == BalancePlan()


def test_shards_of_a_fenced_node_or_an_earlier_life_are_free() -> None:
    earlier = Incarnation(1, 0)
    rows = shards(B, earlier, A)
    assert plan(A, [node(A), node(B, fenced=True)], rows) == BalancePlan(take=2)


def test_who_has_most_gives_one_to_who_has_fewest() -> None:
    nodes = [node(A), node(B), node(C)]
    rows = shards(A, A, B, B)
    assert plan(B, nodes, rows).gifts == ((OwnedShard(3, 1), C),)
    assert plan(A, nodes, rows) == BalancePlan()
    assert plan(C, nodes, rows) == BalancePlan()
    assert plan(A, nodes, shards(A, A, B, C)) == BalancePlan(), "one apart is even"


def test_a_node_that_drains_gives_all_and_takes_nothing() -> None:
    nodes = [node(A, draining=True), node(B), node(C)]
    assert [each.to for each in plan(A, nodes, shards(A, A, A, B)).gifts] == [C, B, C]
    assert plan(A, nodes, shards(None, A)).take == 0
    assert plan(A, [node(A, draining=True)], shards(A)) == BalancePlan(), "nobody would have it"


def test_a_silent_node_gets_nothing() -> None:
    nodes = [node(A), node(B)]
    assert plan(A, nodes, shards(A, A, A), {B}) == BalancePlan()
    assert plan(A, nodes, shards(A, None, None), {B}) == BalancePlan(take=2)


def test_who_is_fenced_does_nothing() -> None:
    assert plan(A, [node(A, fenced=True), node(B)], shards(None, A)) == BalancePlan()


@pytest.mark.parametrize("seed", range(20))
def test_who_comes_gets_a_share_of_each_topic(seed: int) -> None:
    """Also of one with few partitions, wherever these are: two nodes had all."""
    dice = random.Random(seed)
    rows = [ShardRow(each, dice.choice((A, B)), 1) for each in range(64)]
    topics = [dice.sample(range(64), count) for count in (6, 6, 12, 50)]
    nodes = [node(A), node(B), node(C)]
    for _ in range(64):
        for me in (A, B, C):
            for shard, to in plan(me, nodes, rows, frozenset(), topics).gifts:
                rows[shard.shard_id] = ShardRow(shard.shard_id, to, 1)
    for topic in topics:
        owners = Counter(rows[each].owner for each in topic)
        assert owners[C] >= len(topic) // 6, owners
    counts = Counter(each.owner for each in rows)
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("seed", range(30))
def test_it_ends_even_from_anywhere(seed: int) -> None:
    dice = random.Random(seed)
    nodes = [Incarnation(each, 1) for each in range(dice.randint(1, 5))]
    draining = set(nodes[: dice.randint(0, len(nodes) - 1)])
    rows = [ShardRow(each, dice.choice([None, *nodes]), 1) for each in range(dice.randint(1, 17))]
    listed = [node(each, draining=each in draining) for each in nodes]
    for _ in range(200):
        for me in nodes:
            todo = plan(me, listed, rows)
            free = [row for row in rows if row.owner is None][: todo.take]
            moves = [(row.shard_id, me) for row in free]
            moves += [(gift.shard.shard_id, gift.to) for gift in todo.gifts]
            for shard_id, owner in moves:
                rows[shard_id] = ShardRow(shard_id, owner, 1)
    counts = [sum(row.owner == each for row in rows) for each in nodes if each not in draining]
    assert sum(counts) == len(rows)
    assert max(counts) - min(counts) <= 1
