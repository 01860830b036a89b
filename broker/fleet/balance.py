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
    is_for_load: bool = False
    """True when the gift is given because this node takes more than the other."""


class LoadTerms(NamedTuple):
    """Terms on which shards move for what they take from producers."""

    gap: int = 0
    """Bytes a second by which one node is ahead of another before one does; 0: none does."""
    may_give: bool = True
    """False for a while after such a gift."""


BY_NUMBERS = LoadTerms()
UNEVEN = 3
"""Most shards that a node has more than another, where loads differ."""


def plan(
    me: Incarnation,
    nodes: Sequence[NodeRow],
    shards: Sequence[ShardRow],
    silent: AbstractSet[Incarnation] = frozenset(),
    topics: Iterable[Sequence[int]] = (),
    *,
    terms: LoadTerms = BY_NUMBERS,
) -> BalancePlan:
    """For the incarnation `me`. Nodes that are `silent` keep what they have, and get nothing.

    `topics`: of each the shards of its partitions; they are spread over the nodes, too. Who gave
    a busy shard for its load gets an idle one back for the numbers.
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
    loads = _Loads(shards, counts, terms)
    to = _poorer(me, open_to, counts)
    fitting = () if to is None else loads.fitting(mine, me, to)
    if to is None or not fitting:
        gift = loads.gift(mine, me, open_to)
        return BalancePlan(gifts=() if gift is None else (gift,), is_for_load=gift is not None)
    spread = _Spread({each.shard_id: each.owner for each in shards}, topics)
    return BalancePlan(gifts=(Gift(spread.best(fitting, me, to), to),))


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


class _Loads:
    """Bytes a second that nodes and shards take from producers.

    It comes to rest: a gift for load brings two nodes nearer by a gap, and one for numbers takes
    none of that back, unless the numbers are far apart. So they may stay up to `UNEVEN` apart.
    """

    def __init__(
        self, shards: Sequence[ShardRow], counts: Counter[Incarnation], terms: LoadTerms
    ) -> None:
        self._terms = terms
        self._counts = counts
        self._of_shard = {each.shard_id: each.load for each in shards}
        self._of_node = Counter[Incarnation]()
        for each in shards:
            if each.owner is not None:
                self._of_node[each.owner] += each.load

    def gift(
        self, mine: Sequence[OwnedShard], me: Incarnation, open_to: Sequence[Incarnation]
    ) -> Gift | None:
        """The shard that brings the two farthest nodes nearest, if this is the one that has most.

        None for less than a gap: so none goes that would keep the other node as busy.
        """
        gap, may_give = self._terms
        most = max(open_to, key=lambda each: (self._of_node[each], each))
        least = min(open_to, key=lambda each: (self._of_node[each], each))
        if not gap or not may_give or not mine or most != me:
            return None
        if not self._stay_even(me, least, open_to):
            return None
        shard = min(
            mine, key=lambda each: (self._apart(each, me, least), self._of_shard[each.shard_id])
        )
        nearer = self._of_node[me] - self._of_node[least] - self._apart(shard, me, least)
        return Gift(shard, least) if nearer >= gap else None

    def fitting(
        self, mine: Sequence[OwnedShard], me: Incarnation, to: Incarnation
    ) -> Sequence[OwnedShard]:
        """Those that may be given for numbers; none when each would undo what was done for load."""
        gap = self._terms.gap
        if not gap:
            return mine
        now = abs(self._of_node[me] - self._of_node[to])
        fitting = [each for each in mine if self._apart(each, me, to) <= max(now, gap // 2)]
        if fitting or self._counts[me] - self._counts[to] <= UNEVEN:
            return fitting
        return [min(mine, key=lambda each: (self._apart(each, me, to), each))]

    def _stay_even(
        self, giver: Incarnation, to: Incarnation, open_to: Sequence[Incarnation]
    ) -> bool:
        after = Counter({each: self._counts[each] for each in open_to})
        after[giver] -= 1
        after[to] += 1
        return max(after.values()) - min(after.values()) <= UNEVEN

    def _apart(self, shard: OwnedShard, giver: Incarnation, to: Incarnation) -> int:
        """Difference of what two nodes take after a gift."""
        moved = 2 * self._of_shard[shard.shard_id]
        return abs(self._of_node[giver] - self._of_node[to] - moved)


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
