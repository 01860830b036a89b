"""Orphans: objects of a tier that nothing names, and their removal.

They are what a copy leaves that was cut off, what was due for removal when the broker stopped, all
of a topic that was deleted while the store was away, and in a fleet manifests of leaders of before.
A round lists the whole tier. An orphan was put `least_age_ms` ago by the store's clock, and is not
in the newest manifest of its partition, nor in a copy of this process that is under way. It is
remembered, and goes when a later round, at least `rest_seconds` after, finds it still so.

Rules: a name that is not of our scheme (`storage.tier.names`) is left alone. So are partitions
whose manifests cannot be read, or whose newest is older than the one that is known here, and topics
of which this broker knows neither that they exist nor that they were deleted. Nothing is removed in
a round that did not see the whole list. A round keeps names in bounds, whatever the store has.

Manifests of before the last full one from `past_before_ms` or earlier are no orphans, and go in the
same round (`storage.tier.manifests.past`), as do the cluster's pictures of before the last one from
then.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import NamedTuple
from uuid import UUID

from storage.env import Clock
from storage.errors import CorruptCheckpoint, NewerFormat
from storage.tier.cluster_picture import past_pictures
from storage.tier.manifests.manifest import Manifest
from storage.tier.manifests.past import past_manifests
from storage.tier.manifests.reading import read_newest, states_since
from storage.tier.names import (
    CLUSTER,
    PartitionKeys,
    PartitionObject,
    epoch_of,
    is_probe,
    number_of,
    object_of,
)
from storage.tier.port import ObjectFacts, ObjectMissing, ObjectStore
from storage.tier.tiered_log import TieredLog

CHUNK = 10_000
"""Objects of one partition that are looked at together."""
MOST_REMEMBERED = 100_000
"""Orphans that one round remembers, for a later one to remove; the others wait for their turn."""
MOST_EXAMPLES = 5
DELETED_AT_ONCE = 1000

Lookup = Callable[[PartitionKeys], TieredLog | None]


class SweepStopped(Exception):  # noqa: N818 - what happened
    """The broker stops; nothing was removed."""


class SweepOrder(NamedTuple):
    """State of the broker before a round, and limits of the round."""

    live: frozenset[UUID]
    """Topics that exist."""
    deleted: frozenset[UUID]
    """Topics that were deleted: all of theirs is orphaned, manifests too. None that exists is."""
    spared: frozenset[str]
    """Objects that others are about to remove."""
    stopped: frozenset[tuple[str, int]]
    """Partitions in which another writer may be at work."""
    least_age_ms: int
    rest_seconds: float
    past_ms: int | None = None
    """Time, in ms, to every moment of which a restore goes back; None: for ever."""
    is_shared: bool = False
    """True in a fleet: only partitions that are led here are looked at, by what is known here."""


class Amount(NamedTuple):
    """Objects, their bytes, and the names of some."""

    objects: int = 0
    size_bytes: int = 0
    examples: tuple[str, ...] = ()

    def plus(self, found: ObjectFacts) -> "Amount":
        """With one more."""
        examples = self.examples
        if len(examples) < MOST_EXAMPLES:
            examples += (found.key,)
        return Amount(self.objects + 1, self.size_bytes + found.size_bytes, examples)


class SweepReport(NamedTuple):
    """Result of a round."""

    orphans: Amount
    """All that were found, those that are removed now too."""
    removed: Amount
    unknown: Amount
    """Old objects of topics of which this broker knows nothing; they stay."""
    unreadable: tuple[str, ...]
    """Partitions that were left out, with the reason; some of them."""
    forgotten: frozenset[UUID]
    """Deleted topics of which the store has nothing, in this round and in the one before."""
    past: Amount = Amount()
    """Manifests and pictures of the cluster that were removed as past."""


class OrphanSweep:
    """Rounds over a tier. One thread at a time, but for `stop`."""

    def __init__(self, store: ObjectStore, clock: Clock, lookup: Lookup) -> None:
        """Nothing was seen. `lookup`: what this process does in a partition, from any thread."""
        self._store = store
        self._clock = clock
        self._lookup = lookup
        self._seen: dict[str, float] = {}
        self._absent: frozenset[UUID] = frozenset()
        self._is_stopping = False

    def stop(self) -> None:
        """The round that is under way ends soon. From any thread."""
        self._is_stopping = True

    def round(self, order: SweepOrder) -> SweepReport:
        """Looks at every object, and removes the orphans that are due. Blocks.

        StoreError: nothing was removed, or a part. SweepStopped.
        """
        walk = _Walk(self._store, self._lookup, order, self._clock.now_ms())
        began = self._clock.monotonic()
        orphans, seen, due = Amount(), dict[str, float](), list[ObjectFacts]()
        for each in walk.orphans(self._watched()):
            orphans = orphans.plus(each)
            if len(seen) < MOST_REMEMBERED:
                since = self._seen.get(each.key)
                seen[each.key] = began if since is None else since
                if since is not None and began - since >= order.rest_seconds:
                    due.append(each)
        self._seen = seen
        walk.look_at_pictures()
        removed, past = self._remove(due), self._remove(walk.past)
        absent = order.deleted - walk.present
        forgotten, self._absent = absent & self._absent, absent
        return SweepReport(orphans, removed, walk.unknown, tuple(walk.unreadable), forgotten, past)

    def _watched(self) -> Iterator[ObjectFacts]:
        for each in self._store.list(""):
            if self._is_stopping:
                raise SweepStopped
            yield each

    def _remove(self, due: list[ObjectFacts]) -> Amount:
        """Manifests last, the newest at the very end: they tell what a topic had."""
        removed = Amount()
        due.sort(key=lambda each: (each.key.endswith(".json"), each.key))
        for at in range(0, len(due), DELETED_AT_ONCE):
            part = due[at : at + DELETED_AT_ONCE]
            self._store.delete([each.key for each in part])
            for each in part:
                removed = removed.plus(each)
                self._seen.pop(each.key, None)
        return removed


class _Walk:
    """One look at everything."""

    def __init__(self, store: ObjectStore, lookup: Lookup, order: SweepOrder, now_ms: int) -> None:
        self._store = store
        self._lookup = lookup
        self._order = order
        self._now_ms = now_ms
        self._put_before_ms = now_ms - order.least_age_ms
        self.past: list[ObjectFacts] = []
        self._pictures: list[ObjectFacts] = []
        self.unknown = Amount()
        self.unreadable: list[str] = []
        self.present: set[UUID] = set()

    def orphans(self, found: Iterable[ObjectFacts]) -> Iterator[ObjectFacts]:
        """Those among the objects of a list, in any order of its folders."""
        named = (_Seen(each, object_of(each.key)) for each in found)
        for keys, objects in groupby(named, _partition_of):
            if keys is None:
                yield from self._others(each.facts for each in objects)
                continue
            self.present.add(keys.topic_id)
            while chunk := list(islice(objects, CHUNK)):
                old = [each for each in chunk if self._is_old(each.facts)]
                yield from self._of_partition(keys, old)

    def _others(self, found: Iterable[ObjectFacts]) -> Iterator[ObjectFacts]:
        """Orphans among the objects of no partition; old pictures are noted."""
        for each in filter(self._is_old, found):
            if is_probe(each.key):
                yield each
            elif self._is_picture(each.key) and len(self._pictures) < MOST_REMEMBERED:
                self._pictures.append(each)

    def _is_picture(self, key: str) -> bool:
        return key.startswith(CLUSTER) and number_of(key) is not None

    def look_at_pictures(self) -> None:
        """Notes those that are past; a fleet puts none, and lets others' be."""
        past_ms = self._order.past_ms
        if past_ms is None or self._order.is_shared:
            return
        try:
            self.past += past_pictures(self._store, self._pictures, self._now_ms - past_ms)
        except (CorruptCheckpoint, NewerFormat, ObjectMissing) as error:
            self._left_out(None, str(error))

    def _is_old(self, found: ObjectFacts) -> bool:
        return found.modified_ms <= self._put_before_ms and found.key not in self._order.spared

    def _of_partition(self, keys: PartitionKeys, old: list["_Seen"]) -> Iterable[ObjectFacts]:
        order = self._order
        if keys.topic_id not in order.live:
            if keys.topic_id in order.deleted:
                return [each.facts for each in old]
            for each in old:
                self.unknown = self.unknown.plus(each.facts)
            return ()
        if (keys.topic, keys.partition) in order.stopped:
            return ()
        if order.is_shared:
            return self._not_led(keys, old)
        return self._unnamed(keys, old)

    def _past_of(
        self, keys: PartitionKeys, found: list["_Seen"], counts: int | None = None
    ) -> list[ObjectFacts]:
        past_ms, room = self._order.past_ms, MOST_REMEMBERED - len(self.past)
        if past_ms is None:
            return []
        manifests = [each.facts for each in found if not each.unique]
        try:
            past = past_manifests(self._store, keys, manifests, self._now_ms - past_ms, counts)
        except (CorruptCheckpoint, NewerFormat, ObjectMissing) as error:
            self._left_out(keys, str(error))
            return []
        return past[:room]

    def _not_led(self, keys: PartitionKeys, old: list["_Seen"]) -> Iterable[ObjectFacts]:
        """Segments that this leader does not name, and manifests of leaders before it, once one of
        its own counts.
        """
        here = self._lookup(keys)
        if here is None or not here.is_led:
            return ()
        led, epoch = here.spoken_for(), epoch_of(here.keys) if here.is_named else 0
        mine = [each for each in old if each.name is not None and each.name.epoch == epoch]
        self.past += self._past_of(here.keys, mine, here.named_number)
        return [
            each.facts
            for each in old
            if (each.unique and each.unique not in led)
            or (each.name is not None and each.name.epoch is not None and each.name.epoch < epoch)
        ]

    def _unnamed(self, keys: PartitionKeys, old: list["_Seen"]) -> Iterable[ObjectFacts]:
        """Segments that are named neither here nor by the store; past manifests are noted.

        Asked in this order, and after the objects were listed: a copy is in the first until it is
        in the second.
        """
        here = self._lookup(keys)
        known = frozenset[str]() if here is None else here.spoken_for()
        left = [each for each in old if each.unique and each.unique not in known]
        past = self._past_of(keys, old)
        if not (left or past):
            return ()
        newest = self._newest_of(keys, here)
        if newest is None:
            return ()
        self.past += past
        named = _uniques((newest,))
        left = [each for each in left if each.unique not in named]
        lately = self._named_lately(keys, here) if left else frozenset()
        return () if lately is None else [e.facts for e in left if e.unique not in lately]

    def _named_lately(self, keys: PartitionKeys, here: TieredLog | None) -> frozenset[str] | None:
        """Segments that were named within `file.delete.delay.ms`, which a stop has forgotten; None
        when the partition is to be left out.

        Looked for where that is longer than an orphan is known before it goes.
        """
        delay_ms = 0 if here is None else here.log.config.file_delete_delay_ms
        if delay_ms <= self._order.rest_seconds * 1000:
            return frozenset()
        try:
            return _uniques(states_since(self._store, keys, self._now_ms - delay_ms))
        except (CorruptCheckpoint, NewerFormat, ObjectMissing) as error:
            self._left_out(keys, str(error))
            return None

    def _newest_of(self, keys: PartitionKeys, here: TieredLog | None) -> Manifest | None:
        """State of the store; None when the partition is to be left out."""
        number = 0 if here is None else here.manifest.number
        try:
            newest = read_newest(self._store, keys) or Manifest(0, *keys)
        except (CorruptCheckpoint, NewerFormat, ObjectMissing) as error:
            self._left_out(keys, str(error))
            return None
        if number > newest.number:
            self._left_out(keys, f"manifest {number} is known here, and not in the store")
            return None
        return newest

    def _left_out(self, keys: PartitionKeys | None, why: str) -> None:
        if len(self.unreadable) < MOST_EXAMPLES:
            what = CLUSTER if keys is None else f"{keys.topic}-{keys.partition}"
            self.unreadable.append(f"{what}: {why}")


class _Seen(NamedTuple):
    facts: ObjectFacts
    name: PartitionObject | None

    @property
    def unique(self) -> str:
        return "" if self.name is None else self.name.unique


def _partition_of(seen: _Seen) -> PartitionKeys | None:
    return None if seen.name is None else seen.name.keys


def _uniques(states: Iterable[Manifest]) -> frozenset[str]:
    return frozenset(row.unique for each in states for row in each.segments)
