"""Decides which shards a node takes and which it gives away: a pure function of the rows.

All nodes compute it from the same rows, each for itself; who owns a shard is decided by the rows
alone, so a node that looks at old ones does no harm.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
    topics: Iterable[Sequence[int]] = (),
) -> BalancePlan:
    """For the incarnation `me`. Nodes that are `silent` keep what they have, and get nothing.

    `topics`: of each the shards of its partitions; they are spread over the nodes, too.
    """
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
    to = _poorer(me, open_to, counts)
    if to is None:
        return BalancePlan()
    spread = _Spread({each.shard_id: each.owner for each in shards}, topics)
    return BalancePlan(gifts=(Gift(spread.best(mine, me, to), to),))


def _given_away(
    mine: Sequence[OwnedShard], open_to: Sequence[Incarnation], counts: Counter[Incarnation]
) -> list[Gift]:
    gifts = []
    for shard in mine if open_to else ():
        to = min(open_to, key=lambda each: (counts[each], each))
        counts[to] += 1
        gifts.append(Gift(shard, to))
    return gifts


def _poorer(
    me: Incarnation, open_to: Sequence[Incarnation], counts: Counter[Incarnation]
) -> Incarnation | None:
    """The node that has fewest, if this one has most: it gets one. None: there is nothing to do."""
    fewest = min(open_to, key=lambda each: (counts[each], each))
    most = max(open_to, key=lambda each: (counts[each], each))
    return fewest if most == me and counts[me] - counts[fewest] >= 2 else None


class _Spread:
    """Partitions of each topic by the owners of their shards."""

    def __init__(
        self, owners: Mapping[int, Incarnation | None], topics: Iterable[Sequence[int]]
    ) -> None:
        self._counts: list[Counter[Incarnation | None]] = []
        self._topics_of: dict[int, list[int]] = defaultdict(list)
        for number, shards in enumerate(topics):
            self._counts.append(Counter(owners.get(each) for each in shards))
            for each in shards:
                self._topics_of[each].append(number)

    def best(self, shards: Sequence[OwnedShard], giver: Incarnation, to: Incarnation) -> OwnedShard:
        """The shard of whose topics the giver has most more than the other."""
        return max(shards, key=lambda each: (self._gain(each, giver, to), each))

    def _gain(self, shard: OwnedShard, giver: Incarnation, to: Incarnation) -> int:
        found = (self._counts[each] for each in self._topics_of[shard.shard_id])
        return sum(each[giver] - each[to] for each in found)
