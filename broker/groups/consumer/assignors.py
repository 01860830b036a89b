"""The assignors `uniform` and `range` of KIP-848: pure functions from members to targets.

Both keep as much as they may of what members were to read before. `uniform` balances the number of
partitions over the members; `range` gives each member a run of each topic, so that topics with
equally many partitions fall to the same members. They run on the event loop: no step looks at all
members for each partition.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    old: dict[UUID, dict[str, list[int]]] = {}
    for name in subscriptions:
        for topic, index in _still(subscriptions, before, counts, name):
            old.setdefault(topic, {}).setdefault(name, []).append(index)
    for topic, members in _readers(subscriptions).items():
        for name, indexes in _runs(members, old.get(topic, {}), counts[topic]).items():
            if indexes:
                chosen[name][topic] = indexes
    return _frozen(chosen)


def _runs(members: Sequence[str], old: Mapping[str, list[int]], count: int) -> dict[str, set[int]]:
    least, extras = divmod(count, len(members))
    kept: dict[str, set[int]] = {}
    open_to: list[str] = []
    for name in members:
        had = old.get(name, [])
        takes_extra = len(had) > least and extras > 0
        extras -= takes_extra
        kept[name] = set(had[: least + takes_extra])
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
        held[name] = list(_still(subscriptions, before, counts, name))
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
    held: dict[str, set[Place]] = {
        name: set(_still(subscriptions, before, counts, name)) for name in subscriptions
    }
    owner = {place: name for name, places in held.items() for place in places}
    topics = sorted(readers, key=lambda each: (len(readers[each]), each))
    for topic in topics:
        poorest = _Poorest(readers[topic], held)
        for place in ((topic, index) for index in range(counts[topic])):
            if place not in owner:
                owner[place] = poorest.name
                poorest.gets(place)
    has_moved = True
    while has_moved:
        moves = [_even_out(topic, counts[topic], readers[topic], owner, held) for topic in topics]
        has_moved = any(moves)
    return _frozen(_by_topic({name: sorted(each) for name, each in held.items()}))


class _Poorest:
    """The reader of a topic that has the fewest partitions of all topics; the first of several."""

    def __init__(self, readers: Sequence[str], held: Mapping[str, set[Place]]) -> None:
        self._held = held
        self._order = {name: number for number, name in enumerate(readers)}
        self._heap = [(len(held[name]), number, name) for name, number in self._order.items()]
        heapq.heapify(self._heap)

    @property
    def name(self) -> str:
        while self._heap[0][0] != len(self._held[self._heap[0][2]]):
            heapq.heappop(self._heap)  # it has more or fewer since, and stands there once more
        return self._heap[0][2]

    def gets(self, place: Place, of: str | None = None) -> None:
        """It gets a partition, that `of` another one or a free one."""
        name = self.name
        self._held[name].add(place)
        self._count(name)
        if of is not None:
            self._held[of].discard(place)
            self._count(of)

    def _count(self, name: str) -> None:
        heapq.heappush(self._heap, (len(self._held[name]), self._order[name], name))


def _even_out(
    topic: UUID,
    count: int,
    readers: Sequence[str],
    owner: dict[Place, str],
    held: dict[str, set[Place]],
) -> bool:
    """One round of a topic; each move makes the sum of squares smaller, so that it comes to an
    end. False when nothing moved.
    """
    has_moved, poorest = False, _Poorest(readers, held)
    for place in ((topic, index) for index in range(count)):
        rich, poor = owner[place], poorest.name
        if len(held[rich]) > len(held[poor]) + 1:
            poorest.gets(place, of=rich)
            owner[place] = poor
            has_moved = True
    return has_moved


def _readers(subscriptions: Subscriptions) -> dict[UUID, list[str]]:
    readers: dict[UUID, list[str]] = {}
    for name, topics in subscriptions.items():
        for topic in topics:
            readers.setdefault(topic, []).append(name)
    return readers


def _still(
    subscriptions: Subscriptions,
    before: Mapping[str, Target],
    counts: Mapping[UUID, int],
    name: str,
) -> Iterator[Place]:
    """Partitions of the member's last target, in order, as far as it still reads them."""
    target, read = before.get(name, {}), subscriptions[name]
    for topic in sorted(topic for topic in target if topic in read):
        yield from ((topic, index) for index in sorted(target[topic]) if index < counts[topic])


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
