"""Offsets of `__share_group_state` below which no record is needed any more.

A share partition is read from its newest snapshot on. An entry is where the state partition ended
just before that snapshot was written, so it may be low and is never high; it moves only when the
snapshot is durable. Used from the event loop only.
"""

from collections.abc import Mapping

from broker.share.state.key import ShareKey


class _Entries:
    """Those of one state partition."""

    __slots__ = ("by_key", "looked_at", "stays")

    def __init__(self, by_key: dict[ShareKey, int], looked_at: int, *, stays: bool) -> None:
        self.by_key = by_key
        self.looked_at = looked_at
        """End of the partition at the last look for old snapshots."""
        self.stays = stays
        """It has records that were left out: whoever understands them may want them."""


class NeededOffsets:
    """The first record that each share partition is read from."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._entries: dict[int, _Entries] = {}

    def loaded(
        self, index: int, by_key: Mapping[ShareKey, int], end_offset: int, *, stays: bool
    ) -> None:
        """A state partition was read up to its end."""
        self._entries[index] = _Entries(dict(by_key), end_offset, stays=stays)

    def begun(self, index: int, key: ShareKey, at_least: int) -> None:
        """The first snapshot of a share partition is about to be written."""
        self._of(index).by_key.setdefault(key, at_least)

    def renewed(self, index: int, key: ShareKey, at_least: int) -> None:
        """A snapshot of it is durable."""
        by_key = self._of(index).by_key
        if key in by_key:  # else it was forgotten since
            by_key[key] = max(at_least, by_key[key])

    def forgotten(self, index: int, key: ShareKey) -> None:
        """Nothing is remembered of it, or nothing could be."""
        self._of(index).by_key.pop(key, None)

    def first(self, index: int, end_offset: int) -> int | None:
        """The first offset that is needed; its end if none is, None where all is to stay."""
        entries = self._of(index)
        return None if entries.stays else min(entries.by_key.values(), default=end_offset)

    def old(self, index: int, end_offset: int) -> list[ShareKey]:
        """Share partitions without a snapshot since the last look, oldest first.

        No one while what could go is no more than what would be written: queues that rest cost
        nothing.
        """
        entries = self._of(index)
        since, entries.looked_at = entries.looked_at, end_offset
        first, count = min(entries.by_key.values(), default=end_offset), len(entries.by_key)
        if entries.stays or end_offset - first - count < count:
            return []
        old = [(offset, key) for key, offset in entries.by_key.items() if offset < since]
        return [key for _, key in sorted(old)]

    def _of(self, index: int) -> _Entries:
        entries = self._entries.get(index)
        if entries is None:
            entries = self._entries[index] = _Entries({}, 0, stays=False)
        return entries
