"""The assignor `simple` of share groups (KIP-932): each partition for as many members as fit.

A partition is shared by members / partitions of them, rounded up; a member gets its even part of
these shares, so that any two differ by one. What members have stays theirs as far as that allows.
Members that read different topics get their parts topic by topic. Rules: Kafka 4.3's
`SimpleAssignor`; which of several equal members gets one more is not among them. It runs on the
event loop: no step looks at all partitions for each member.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from uuid import UUID

from broker.groups.subscriptions import Place, Subscriptions, Target

Partitions = Mapping[UUID, Sequence[int]]
"""Partitions by topic that may be given to members."""
ShareAssignor = Callable[[Subscriptions, Mapping[str, Target], Partitions], dict[str, Target]]
"""Makes targets of: subscriptions, the targets so far, and what may be given."""
Held = dict[str, dict[Place, None]]
"""Places by member, in the order in which they were given."""


def simple(
    subscriptions: Subscriptions, before: Mapping[str, Target], partitions: Partitions
) -> dict[str, Target]:
    """Targets of all members; `before` has those so far."""
    chosen: Held = {name: {} for name in subscriptions}
    for topics, members in _circles(subscriptions):
        places = [(topic, index) for topic in topics for index in partitions.get(topic, ())]
        order = {place: number for number, place in enumerate(places)}
        held = {name: _still(before.get(name, {}), topics, order) for name in members}
        for name, each in _shared(places, held).items():
            chosen[name].update(each)
    return {name: _target(each) for name, each in chosen.items()}


def _circles(subscriptions: Subscriptions) -> Iterable[tuple[Sequence[UUID], Sequence[str]]]:
    """Topics and members that share them: all at once, or each topic by itself."""
    topics = sorted(set[UUID]().union(*subscriptions.values()))
    if len(set(subscriptions.values())) <= 1:
        return [(topics, list(subscriptions))]
    return [
        ([topic], [name for name, read in subscriptions.items() if topic in read])
        for topic in topics
    ]


def _still(target: Target, topics: Sequence[UUID], order: Mapping[Place, int]) -> dict[Place, None]:
    """The part of a target among the places in this order, of these topics."""
    fewest: Iterable[UUID] = topics if len(topics) < len(target) else target
    known = ((topic, index) for topic in fewest for index in target.get(topic, ()))
    places = [place for place in known if place in order]
    return dict.fromkeys(sorted(places, key=order.__getitem__))


def _shared(places: Sequence[Place], held: Held) -> Held:
    if not places or not held:
        return {}
    sharing = -(-len(held) // len(places))
    quotas = dict(zip(held, quotas_of(len(held), sharing * len(places)), strict=True))
    shares = dict.fromkeys(places, 0)
    for each in held.values():
        for place in each:
            shares[place] += 1
    _take_back(
        held,
        shares,
        lambda name, place: len(held[name]) > quotas[name] and (shares[place] > sharing),
    )
    _take_back(held, shares, lambda _, place: shares[place] > sharing)
    _take_back(held, shares, lambda name, _: len(held[name]) > quotas[name])
    _fill(held, shares, quotas, sharing)
    return held


def quotas_of(members: int, shares: int) -> list[int]:
    """Even parts, in whole numbers: the first ones are the larger ones."""
    ends = [-(-shares * number // members) for number in range(members + 1)]
    return [end - begin for begin, end in pairwise(ends)]


def _take_back(
    held: Held, shares: dict[Place, int], is_too_much: Callable[[str, Place], bool]
) -> None:
    for name, each in held.items():
        for place in list(each):
            if is_too_much(name, place):
                del each[place]
                shares[place] -= 1


def _fill(held: Held, shares: dict[Place, int], quotas: Mapping[str, int], sharing: int) -> None:
    """Gives what has too few members to members that have too few; the least shared first.

    Quotas add up to the shares there are, so a member lacks a place only when it has all that are
    left already; it then gets none.
    """
    free = [
        (count, number, place)
        for number, (place, count) in enumerate(shares.items())
        if count < sharing
    ]
    heapq.heapify(free)
    for name, each in held.items():
        passed = []
        while free and len(each) < quotas[name]:
            count, number, place = heapq.heappop(free)
            if place in each:
                passed.append((count, number, place))
            else:
                each[place] = None
                if count + 1 < sharing:
                    passed.append((count + 1, number, place))
        for entry in passed:
            heapq.heappush(free, entry)


def _target(places: Iterable[Place]) -> Target:
    found: dict[UUID, set[int]] = {}
    for topic, index in places:
        found.setdefault(topic, set()).add(index)
    return {topic: frozenset(indexes) for topic, indexes in found.items()}


ASSIGNORS: Mapping[str, ShareAssignor] = MappingProxyType({"simple": simple})
