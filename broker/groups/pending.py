"""Offsets that were committed in transactions which have not ended yet.

They are in the log and count for nobody until the marker of their transaction says so. Readers that
ask for what is stable are told to come again meanwhile. Used from the event loop only.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from broker.groups.group import Place
from broker.groups.group_records import OffsetCommitValue, OffsetRow

Offsets = dict[Place, OffsetCommitValue]


class PendingOffsets:
    """By producer and group."""

    def __init__(self) -> None:
        """No transaction is open."""
        self._of_producers: dict[int, dict[str, Offsets]] = {}
        self._waiting: Counter[tuple[str, Place]] = Counter()

    def __len__(self) -> int:
        """How many offsets wait."""
        return self._waiting.total()

    def add(
        self, producer_id: int, group_id: str, offsets: Mapping[Place, OffsetCommitValue]
    ) -> None:
        """These are in the log."""
        known = self._of_producers.setdefault(producer_id, {}).setdefault(group_id, {})
        self._waiting.update((group_id, place) for place in offsets if place not in known)
        known.update(offsets)

    def add_rows(self, producer_id: int, rows: Iterable[OffsetRow]) -> None:
        """Likewise, as they were read back."""
        for key, value in rows:
            if value is not None:
                self.add(producer_id, key.group, {(key.topic, key.partition): value})

    def take(self, producer_id: int, is_ended: Callable[[str], bool]) -> dict[str, Offsets]:
        """The offsets of a producer's transaction that ended in some groups; they wait no more."""
        groups = self._of_producers.get(producer_id, {})
        taken = {group_id: groups.pop(group_id) for group_id in list(groups) if is_ended(group_id)}
        if not groups:
            self._of_producers.pop(producer_id, None)
        for group_id, offsets in taken.items():
            for place in offsets:
                self._waiting[group_id, place] -= 1
                if not self._waiting[group_id, place]:
                    del self._waiting[group_id, place]
        return taken

    def holds(self, group_id: str, place: Place) -> bool:
        """Whether an offset of the group may change as soon as a transaction ends."""
        return (group_id, place) in self._waiting
