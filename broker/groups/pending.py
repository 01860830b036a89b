"""Offsets that were committed in transactions which have not ended yet.

They are in the log and have no effect until the marker of their transaction. Readers that ask for
stable offsets receive an error code meanwhile, and retry. Of several offsets for one partition
the one that is later in the log counts, whichever transaction ends first (as in Kafka): one that
came before a commit that counts by now still waits, and is then worth nothing. Used by one thread
at a time.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count
from typing import NamedTuple

from broker.groups.classic.group import Place
from broker.groups.records.classic import OffsetCommitValue
from broker.runtime.memory_account import ENTRY_BYTES

Offsets = dict[Place, OffsetCommitValue]


class _Waiting(NamedTuple):
    """An offset, in the order of the log; None in place of one that a later one replaced."""

    order: int
    value: OffsetCommitValue | None


class PendingOffsets:
    """By producer and group."""

    def __init__(self) -> None:
        """No transaction is open."""
        self._of_producers: dict[int, dict[str, dict[Place, _Waiting]]] = {}
        self._waiting: Counter[tuple[str, Place]] = Counter()
        self._of_groups: Counter[str] = Counter()
        self._order = count()
        self.size_bytes: int = 0
        """About what they take in memory."""

    def __len__(self) -> int:
        """Number of offsets that wait."""
        return self._waiting.total()

    def add(
        self, producer_id: int, group_id: str, offsets: Mapping[Place, OffsetCommitValue]
    ) -> None:
        """These are in the log, behind all that was added or superseded before."""
        for place, value in offsets.items():
            self._put(producer_id, group_id, place, value)

    def _put(
        self, producer_id: int, group_id: str, place: Place, value: OffsetCommitValue | None
    ) -> None:
        known = self._of_producers.setdefault(producer_id, {}).setdefault(group_id, {})
        before = known.get(place)
        if before is None:
            self._waiting[group_id, place] += 1
        else:
            self._count(group_id, before, -1)
        known[place] = _Waiting(next(self._order), value)
        self._count(group_id, known[place], 1)

    def _count(self, group_id: str, waiting: _Waiting, sign: int) -> None:
        self.size_bytes += sign * _size_of(waiting)
        if waiting.value is None:
            return
        self._of_groups[group_id] += sign
        if not self._of_groups[group_id]:
            del self._of_groups[group_id]

    def absorb(self, other: "PendingOffsets") -> None:
        """Those of other groups, as they were read back."""
        for producer_id, groups in other._of_producers.items():  # noqa: SLF001
            for group_id, offsets in groups.items():
                for place, waiting in sorted(offsets.items(), key=lambda each: each[1].order):
                    self._put(producer_id, group_id, place, waiting.value)

    def supersede(self, group_id: str, places: Iterable[Place], before: int | None = None) -> None:
        """Other offsets, later in the log, count: those that wait (from `before` that) never do."""
        if not self._waiting:
            return
        for place in places:
            if (group_id, place) in self._waiting:
                self._supersede(group_id, place, before)

    def _supersede(self, group_id: str, place: Place, before: int | None) -> None:
        for groups in self._of_producers.values():
            offsets = groups.get(group_id, {})
            waiting = offsets.get(place)
            if waiting is not None and (before is None or waiting.order < before):
                self._count(group_id, waiting, -1)
                offsets[place] = waiting._replace(value=None)
                self._count(group_id, offsets[place], 1)

    def take(
        self, producer_id: int, is_ended: Callable[[str], bool], *, commit: bool
    ) -> dict[str, Offsets]:
        """The offsets of a producer's transaction that ended in some groups, as far as they count.

        They wait no more; with `commit` those that came before them in the log never count.
        """
        groups = self._of_producers.get(producer_id, {})
        taken = {group_id: groups.pop(group_id) for group_id in list(groups) if is_ended(group_id)}
        if not groups:
            self._of_producers.pop(producer_id, None)
        for group_id, offsets in taken.items():
            for place, waiting in offsets.items():
                self._forget(group_id, place, waiting)
                if commit and waiting.value is not None:
                    self.supersede(group_id, [place], waiting.order)
        return {group_id: _counting(offsets) for group_id, offsets in taken.items()}

    def drop(self, is_gone: Callable[[str], bool]) -> None:
        """Forgets what waits in some groups: they are another node's."""
        for producer_id in list(self._of_producers):
            self.take(producer_id, is_gone, commit=False)

    def _forget(self, group_id: str, place: Place, waiting: _Waiting) -> None:
        self._count(group_id, waiting, -1)
        self._waiting[group_id, place] -= 1
        if not self._waiting[group_id, place]:
            del self._waiting[group_id, place]

    @property
    def group_ids(self) -> Collection[str]:
        """Groups of which offsets may still count."""
        return self._of_groups.keys()

    def places(self, group_id: str) -> set[Place]:
        """Partitions with waiting offsets of the group."""
        of_group = (groups.get(group_id, {}) for groups in self._of_producers.values())
        return {place for offsets in of_group for place in offsets}

    def holds(self, group_id: str, place: Place) -> bool:
        """True when an offset of the group may change as soon as a transaction ends."""
        return (group_id, place) in self._waiting


def bytes_of(value: OffsetCommitValue) -> int:
    """About what a committed offset takes in memory."""
    text = value.metadata
    return ENTRY_BYTES + (len(text) if text.isascii() else 4 * len(text))


def _size_of(waiting: _Waiting) -> int:
    return ENTRY_BYTES + (0 if waiting.value is None else bytes_of(waiting.value))


def _counting(offsets: Mapping[Place, _Waiting]) -> Offsets:
    return {place: each.value for place, each in offsets.items() if each.value is not None}
