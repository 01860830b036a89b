"""The assignors `uniform` and `range` of KIP-848: pure functions from members to targets.

Both keep as much as they may of what members were to read before. `uniform` balances the number of
partitions over the members; `range` gives each member a run of each topic, so that topics with
equally many partitions fall to the same members.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

from broker.groups.subscriptions import Place, Subscriptions, Target

Assignor = Callable[[Subscriptions, Mapping[str, Target], Mapping[UUID, int]], dict[str, Target]]
"""Makes targets of: subscriptions, the targets so far, and how many partitions topics have."""
Chosen = dict[str, dict[UUID, set[int]]]


def by_range(
    subscriptions: Subscriptions, before: Mapping[str, Target], counts: Mapping[UUID, int]
) -> dict[str, Target]:
    """Topic by topic, a run of partitions for each of its members."""
    chosen: Chosen = {name: {} for name in subscriptions}
    for topic, members in _readers(subscriptions).items():
        old = {name: sorted(_still(before, name, topic, counts[topic])) for name in members}
        for name, indexes in _runs(members, old, counts[topic]).items():
            if indexes:
                chosen[name][topic] = indexes
    return _frozen(chosen)


def _runs(members: Sequence[str], old: Mapping[str, list[int]], count: int) -> dict[str, set[int]]:
    least, extras = divmod(count, len(members))
    kept: dict[str, set[int]] = {}
    open_to: list[str] = []
    for name in members:
        takes_extra = len(old[name]) > least and extras > 0
        extras -= takes_extra
        kept[name] = set(old[name][: least + takes_extra])
        if not takes_extra:
            open_to.append(name)
    taken = set[int]().union(*kept.values())
    free = iter(index for index in range(count) if index not in taken)
    for name in open_to:
        quota = least + (extras > 0)
        extras -= extras > 0
        kept[name].update(next(free) for _ in range(quota - len(kept[name])))
    return kept


def uniform(
    subscriptions: Subscriptions, before: Mapping[str, Target], counts: Mapping[UUID, int]
) -> dict[str, Target]:
    """As many partitions for each member as for any other, or one more."""
    if len(set(subscriptions.values())) <= 1:
        return _uniform_alike(subscriptions, before, counts)
    return _uniform_mixed(subscriptions, before, counts)


def _uniform_alike(
    subscriptions: Subscriptions, before: Mapping[str, Target], counts: Mapping[UUID, int]
) -> dict[str, Target]:
    """All members read the same topics."""
    topics = sorted(next(iter(subscriptions.values()), frozenset()))
    least, extras = divmod(sum(counts[topic] for topic in topics), max(len(subscriptions), 1))
    quotas: dict[str, int] = {}
    held: dict[str, list[Place]] = {}
    for name in subscriptions:
        held[name] = [
            (topic, index)
            for topic in topics
            for index in sorted(_still(before, name, topic, counts[topic]))
        ]
    # Who has most keeps an extra one: nothing moves that need not.
    for name in sorted(held, key=lambda each: -len(held[each])):
        quotas[name] = least + (extras > 0)
        extras -= extras > 0
        held[name] = held[name][: quotas[name]]
    taken = {place for places in held.values() for place in places}
    free = iter(
        (topic, index)
        for topic in topics
        for index in range(counts[topic])
        if (topic, index) not in taken
    )
    for name in subscriptions:
        held[name] += [next(free) for _ in range(quotas[name] - len(held[name]))]
    return _frozen(_by_topic(held))


def _uniform_mixed(
    subscriptions: Subscriptions, before: Mapping[str, Target], counts: Mapping[UUID, int]
) -> dict[str, Target]:
    """Members read different topics: topics with few readers first, the poorest reader next.

    A partition stays where it was unless its reader has more than its share; then partitions move
    from the richest reader to the poorest while that evens them out.
    """
    readers = _readers(subscriptions)
    held: dict[str, set[Place]] = {name: set() for name in subscriptions}
    owner: dict[Place, str] = {}
    places = [
        (topic, index)
        for topic in sorted(readers, key=lambda each: (len(readers[each]), each))
        for index in range(counts[topic])
    ]
    for name in subscriptions:
        for topic in subscriptions[name]:
            for index in _still(before, name, topic, counts[topic]):
                owner[topic, index] = name
                held[name].add((topic, index))
    for place in places:
        if place not in owner:
            _give(place, min(readers[place[0]], key=lambda name: len(held[name])), owner, held)
    while _even_out(places, readers, owner, held):
        pass
    return _frozen(_by_topic({name: sorted(each) for name, each in held.items()}))


def _even_out(
    places: Sequence[Place],
    readers: Mapping[UUID, Sequence[str]],
    owner: dict[Place, str],
    held: dict[str, set[Place]],
) -> bool:
    """One round; each move makes the sum of squares smaller, so that it comes to an end."""
    has_moved = False
    for place in places:
        poorest = min(readers[place[0]], key=lambda name: len(held[name]))
        if len(held[owner[place]]) > len(held[poorest]) + 1:
            held[owner[place]].discard(place)
            _give(place, poorest, owner, held)
            has_moved = True
    return has_moved


def _give(place: Place, name: str, owner: dict[Place, str], held: dict[str, set[Place]]) -> None:
    owner[place] = name
    held[name].add(place)


def _readers(subscriptions: Subscriptions) -> dict[UUID, list[str]]:
    readers: dict[UUID, list[str]] = {}
    for name, topics in subscriptions.items():
        for topic in topics:
            readers.setdefault(topic, []).append(name)
    return readers


def _still(before: Mapping[str, Target], name: str, topic: UUID, count: int) -> set[int]:
    """Indexes of the topic's partitions in the member's last target, as far as they still exist."""
    return {index for index in before.get(name, {}).get(topic, frozenset()) if index < count}


def _by_topic(held: Mapping[str, Sequence[Place]]) -> Chosen:
    chosen: Chosen = {}
    for name, places in held.items():
        topics = chosen.setdefault(name, {})
        for topic, index in places:
            topics.setdefault(topic, set()).add(index)
    return chosen


def _frozen(chosen: Chosen) -> dict[str, Target]:
    return {
        name: {topic: frozenset(indexes) for topic, indexes in each.items()}
        for name, each in chosen.items()
    }


ASSIGNORS: Mapping[str, Assignor] = MappingProxyType({"uniform": uniform, "range": by_range})
