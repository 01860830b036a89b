"""Removal of what no back-up that is kept needs any longer.

Kept are the newest back-up, those that are younger than asked for, and the one that counted when
the oldest of these began to. What no manifest names from there on goes: first the older pictures,
so that no restore begins with what is about to go, then segments, then the manifests that named
them. What was never named may be of another back-up that is at work: it goes when it is old.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from storage.errors import CorruptCheckpoint, NewerFormat
from storage.tier.cluster_picture import Files, Picture, pictures
from storage.tier.manifests.manifest import Manifest, apply
from storage.tier.manifests.reading import is_full
from storage.tier.names import CLUSTER, PartitionKeys, is_probe, number_of, object_of
from storage.tier.port import ObjectFacts, ObjectMissing, ObjectStore

DELETED_AT_ONCE = 1000

PartitionsOf = Callable[[Files], Sequence[PartitionKeys]]
"""The partitions of all topics in a picture's files."""


class SweepLimits(NamedTuple):
    """Objects that a sweep spares. Times in ms."""

    keep_since_ms: int
    """Back-ups that counted then or later are kept."""
    orphans_before_ms: int
    """Objects that no manifest ever named go when they are from before this, by the store."""


class Swept(NamedTuple):
    """Result of a sweep."""

    objects: int = 0
    size_bytes: int = 0
    oldest: Picture | None = None
    """The oldest back-up that is kept."""
    unreadable: tuple[str, ...] = ()
    """Partitions whose manifests cannot be read: nothing of theirs was removed."""


def sweep(store: ObjectStore, partitions_of: PartitionsOf, limits: SweepLimits) -> Swept:
    """Removes what is not needed. CorruptCheckpoint for a picture; StoreError: a part is gone."""
    found = list(pictures(store))
    oldest = _oldest_kept(found, limits.keep_since_ms)
    if oldest is None:
        return Swept()
    kept = [each for each in found if each.number >= oldest.number]
    live = frozenset(keys.topic_id for each in kept for keys in partitions_of(each.content.files))
    work = _Sweep(store, oldest, live, limits)
    work.look()
    for part in (work.pictures, work.segments, work.manifests):
        for at in range(0, len(part), DELETED_AT_ONCE):
            store.delete([each.key for each in part[at : at + DELETED_AT_ONCE]])
    gone = (*work.pictures, *work.segments, *work.manifests)
    size_bytes = sum(each.size_bytes for each in gone)
    return Swept(len(gone), size_bytes, oldest, tuple(work.unreadable))


def _oldest_kept(found: Sequence[Picture], since_ms: int) -> Picture | None:
    """The newest one from before that, else the oldest of all; `found`: the newest first."""
    return next(
        (each for each in found if each.written_ms <= since_ms), next(reversed(found), None)
    )


class _Sweep:
    """One look at everything."""

    def __init__(
        self, store: ObjectStore, oldest: Picture, live: frozenset[UUID], limits: SweepLimits
    ) -> None:
        self._store = store
        self._oldest = oldest
        self._live = live
        self._put_before_ms = limits.orphans_before_ms
        self.pictures: list[ObjectFacts] = []
        self.segments: list[ObjectFacts] = []
        self.manifests: list[ObjectFacts] = []
        self.unreadable: list[str] = []

    def look(self) -> None:
        """Finds all that may go."""
        for keys, objects in groupby(self._store.list(""), _partition_of):
            found = list(objects)
            if keys is not None:
                self._look_at(keys, found)
            else:
                self.pictures += (each for each in found if self._is_old_picture(each))
                self.segments += (
                    each for each in found if is_probe(each.key) and self._is_old(each)
                )

    def _is_old_picture(self, facts: ObjectFacts) -> bool:
        number = number_of(facts.key) if facts.key.startswith(CLUSTER) else None
        return number is not None and number < self._oldest.number

    def _is_old(self, facts: ObjectFacts) -> bool:
        return facts.modified_ms <= self._put_before_ms

    def _look_at(self, keys: PartitionKeys, found: list[ObjectFacts]) -> None:
        manifests = [each for each in found if each.key.startswith(keys.manifests)]
        segments = [each for each in found if not each.key.startswith(keys.manifests)]
        if keys.topic_id not in self._live:  # it is deleted, or of a back-up that is at work
            self.segments += filter(self._is_old, segments)
            self.manifests += filter(self._is_old, manifests)
            return
        try:
            chain = _Chain(self._store, keys, manifests, self._oldest.written_ms)
        except (CorruptCheckpoint, NewerFormat, ObjectMissing) as error:
            self.unreadable.append(f"{keys.topic}-{keys.partition}: {error}")
            return
        self.manifests += chain.not_needed
        self.segments += (
            each
            for each in segments
            if (unique := _unique_of(each)) not in chain.named
            and (unique in chain.named_before or self._is_old(each))
        )


class _Chain:
    """The manifests of a partition, from the one that counted at a moment on."""

    def __init__(
        self, store: ObjectStore, keys: PartitionKeys, found: Iterable[ObjectFacts], at_ms: int
    ) -> None:
        by_number = {number_of(each.key): each for each in found}
        numbers = sorted(number for number in by_number if number is not None)
        states = list(_states(store, keys, numbers))
        counted = [each for each in states if each.written_ms <= at_ms]
        since = counted[-1].number if counted else 0
        _check_whole(keys, states, numbers, since)
        self.named = _uniques(each for each in states if each.number >= since)
        self.named_before = _uniques(each for each in states if each.number < since)
        needed_from = max(
            (each.number for each in states if each.number <= since and is_full(each.number)),
            default=0,
        )
        self.not_needed = [by_number[each] for each in numbers if each < needed_from]


def _states(store: ObjectStore, keys: PartitionKeys, numbers: Sequence[int]) -> Iterator[Manifest]:
    """The states of a partition, the oldest first; without those that need a manifest that is gone.

    CorruptCheckpoint for one that is not what was written.
    """
    state: Manifest | None = None
    for number in numbers:
        key = keys.manifest(number)
        before = state if state is not None and state.number + 1 == number else None
        state = apply(key, before, store.get(key))
        if state is None:
            continue
        if state.number != number:
            raise CorruptCheckpoint(key, f"it is manifest {state.number}")
        yield state


def _check_whole(
    keys: PartitionKeys, states: Sequence[Manifest], numbers: Sequence[int], since: int
) -> None:
    """CorruptCheckpoint where a state is not known that a back-up which is kept may need.

    Of those before `since` a removal that was cut off may have left any; 0: all are needed.
    """
    known = {each.number for each in states}
    first = since or min(numbers, default=0)
    gone = (number for number in range(first, max(numbers, default=-1) + 1) if number not in known)
    if (missing := next(gone, None)) is not None:
        raise CorruptCheckpoint(keys.manifest(missing), "it is missing, or one that it needs")


def _uniques(states: Iterable[Manifest]) -> frozenset[str]:
    return frozenset(row.unique for each in states for row in each.segments)


def _unique_of(facts: ObjectFacts) -> str:
    found = object_of(facts.key)
    return "" if found is None else found.unique


def _partition_of(facts: ObjectFacts) -> PartitionKeys | None:
    found = object_of(facts.key)
    return None if found is None else found.keys
