"""Shards over nodes: even in the end, one gift at a time, by everybody in the same way."""

import random
from collections import Counter

import pytest

from broker.fleet.balance import UNEVEN, BalancePlan, LoadTerms, plan
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


GAP = 10


def loaded(owners: str, *loads: int) -> list[ShardRow]:
    names = {"A": A, "B": B, "C": C}
    return [
        ShardRow(number, names[owner], 1, load)
        for number, (owner, load) in enumerate(zip(owners, loads, strict=True))
    ]


def moves(me: Incarnation, rows: list[ShardRow], terms: LoadTerms) -> list[tuple[int, Incarnation]]:
    gifts = plan(me, [node(A), node(B)], rows, terms=terms).gifts
    return [(each.shard.shard_id, each.to) for each in gifts]


@pytest.mark.parametrize(
    ("owners", "loads", "given"),
    [
        ("AABB", (60, 30, 0, 0), [(1, B)]),  # 60 would only make B the busy one
        ("AABB", (90, 0, 0, 0), []),  # one busy shard is busy anywhere
        ("AABB", (50, 50, 95, 4), []),  # less than a gap to win
        ("AABB", (0, 0, 60, 30), []),  # it is B that gives
        ("AABBB", (40, 40, 1, 1, 1), [(0, B)]),
    ],
)
def test_the_busiest_node_gives_the_shard_that_makes_them_most_alike(
    owners: str, loads: tuple[int, ...], given: list[tuple[int, Incarnation]]
) -> None:
    assert moves(A, loaded(owners, *loads), LoadTerms(GAP)) == given
    assert moves(A, loaded(owners, *loads), LoadTerms(GAP, may_give=False)) == []
    assert moves(A, loaded(owners, *loads), LoadTerms(0)) == [], "by numbers alone"


def test_who_got_a_busy_shard_gives_an_idle_one_for_it() -> None:
    rows = loaded("ABBB", 60, 30, 0, 0)
    assert moves(B, rows, LoadTerms(GAP)) == [(3, A)]
    assert moves(B, rows, LoadTerms(0)) == [(3, A)], "the last one of all"
    rows = loaded("ABBB", 60, 0, 0, 30)
    assert moves(B, rows, LoadTerms(GAP)) == [(2, A)]


@pytest.mark.parametrize("seed", range(40))
def test_loads_end_nearer_to_each_other_and_rest(seed: int) -> None:
    """However they are spread: the numbers are even, and after some moves nothing moves."""
    dice = random.Random(seed)
    nodes = [Incarnation(each, 1) for each in range(dice.randint(2, 4))]
    listed = [node(each) for each in nodes]
    rows = [
        ShardRow(each, nodes[each % len(nodes)], 1, dice.choice((0, 0, 0, 1, 5, 20, 100, 400)))
        for each in range(24)
    ]
    before, made = apart(rows, nodes), 0
    for _ in range(100):
        for me in nodes:
            for shard, to in plan(me, listed, rows, terms=LoadTerms(GAP)).gifts:
                rows[shard.shard_id] = rows[shard.shard_id]._replace(owner=to)
                made += 1
    assert not any(plan(me, listed, rows, terms=LoadTerms(GAP)).gifts for me in nodes), "no rest"
    counts = Counter(each.owner for each in rows)
    assert max(counts.values()) - min(counts.values()) <= UNEVEN
    assert apart(rows, nodes) <= before
    assert made < 60


def apart(rows: list[ShardRow], nodes: list[Incarnation]) -> int:
    loads = Counter(dict.fromkeys(nodes, 0))
    for row in rows:
        if row.owner is not None:
            loads[row.owner] += row.load
    return max(loads.values()) - min(loads.values())
