"""Decides which shards a node takes and which it gives away: a pure function of the rows.

All nodes compute it from the same rows, each for itself; who owns a shard is decided by the rows
alone, so a node that looks at old ones does no harm.
"""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from broker.fleet.catalog.rows import Incarnation, NodeRow, OwnedShard, ShardRow


class Gift(NamedTuple):
    """A shard and its next owner."""

    shard: OwnedShard
    to: Incarnation


class BalancePlan(NamedTuple):
    """Next steps of a node."""

    take: int = 0
    """At most so many shards without a living owner."""
    gifts: tuple[Gift, ...] = ()


def plan(
    me: Incarnation,
    nodes: Sequence[NodeRow],
    shards: Sequence[ShardRow],
    silent: AbstractSet[Incarnation] = frozenset(),
) -> BalancePlan:
    """For the incarnation `me`. Nodes that are `silent` keep what they have, and get nothing."""
    living = {each.incarnation for each in nodes if not each.is_fenced}
    if me not in living:
        return BalancePlan()
    open_to = [
        each.incarnation
        for each in nodes
        if each.incarnation in living and not each.is_draining and each.incarnation not in silent
    ]
    mine = [OwnedShard(each.shard_id, each.epoch) for each in shards if each.owner == me]
    counts = Counter(each.owner for each in shards if each.owner in living)
    if me not in open_to:
        return BalancePlan(gifts=tuple(_given_away(mine, open_to, counts)))
    free = sum(each.owner not in living for each in shards)
    share = -(-len(shards) // len(open_to))
    if free:
        return BalancePlan(take=max(min(free, share - len(mine)), 0))
    return BalancePlan(gifts=tuple(_evened_out(me, mine, open_to, counts)))


def _given_away(
    mine: Sequence[OwnedShard], open_to: Sequence[Incarnation], counts: Counter[Incarnation]
) -> list[Gift]:
    gifts = []
    for shard in mine if open_to else ():
        to = min(open_to, key=lambda each: (counts[each], each))
        counts[to] += 1
        gifts.append(Gift(shard, to))
    return gifts


def _evened_out(
    me: Incarnation,
    mine: Sequence[OwnedShard],
    open_to: Sequence[Incarnation],
    counts: Counter[Incarnation],
) -> list[Gift]:
    """One gift at a time, from the node that has most to the one that has fewest."""
    fewest = min(open_to, key=lambda each: (counts[each], each))
    most = max(open_to, key=lambda each: (counts[each], each))
    if most != me or counts[me] - counts[fewest] < 2:
        return []
    return [Gift(mine[-1], fewest)]
