"""Merge of stored states: Kafka's rule, so that both read the same of the same records.

What is below the start goes. Where ranges overlap, the higher delivery count wins, then the higher
state. Neighbours of equal state and count become one range.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from broker.share.states import StateBatch


def merge(
    so_far: Sequence[StateBatch], changes: Iterable[StateBatch], start: int
) -> list[StateBatch]:
    """Both as one list of ranges that are in order and apart. `so_far` is such a list already;
    a `start` of -1 cuts nothing.
    """
    pruned = _pruned(so_far, start)
    ordered = sorted(_cut(each, start) for each in changes if each.last >= start)
    if not ordered:
        return pruned
    low = bisect_left(pruned, ordered[0].first - 1, key=_last)
    high = bisect_right(pruned, max(each.last for each in ordered) + 1, key=_first)
    return pruned[:low] + _swept([*pruned[low:high], *ordered]) + pruned[high:]


def _first(batch: StateBatch) -> int:
    return batch.first


def _last(batch: StateBatch) -> int:
    return batch.last


def _pruned(batches: Sequence[StateBatch], start: int) -> list[StateBatch]:
    """The list without what is below the start."""
    kept = list(batches[bisect_left(batches, start, key=_last) :])
    if kept:
        kept[0] = _cut(kept[0], start)
    return kept


def _cut(batch: StateBatch, start: int) -> StateBatch:
    return batch if batch.first >= start else batch._replace(first=start)


def _swept(batches: list[StateBatch]) -> list[StateBatch]:
    """Ranges that may overlap, as ranges that do not."""
    waiting = sorted(batches, reverse=True)
    merged: list[StateBatch] = []
    while waiting:
        batch = waiting.pop()
        before = merged[-1] if merged else None
        if before is None or before.last < batch.first:
            _append(merged, batch)
            continue
        merged.pop()
        parts = _without_overlap(before, batch)
        _append(merged, parts[0])
        for part in parts[1:]:
            _put_back(waiting, part)
    return merged


def _without_overlap(before: StateBatch, batch: StateBatch) -> list[StateBatch]:
    """Two ranges that overlap, the first of which begins first, as up to three that do not."""
    if _rank(batch) < _rank(before):
        if batch.last <= before.last:
            return [before]
        return [before, batch._replace(first=before.last + 1)]
    parts = [batch]
    if before.first < batch.first:
        parts.insert(0, before._replace(last=batch.first - 1))
    if before.last > batch.last:
        parts.append(before._replace(first=batch.last + 1))
    return parts


def _put_back(waiting: list[StateBatch], batch: StateBatch) -> None:
    """Into a list in falling order."""
    at = len(waiting)
    while at and waiting[at - 1] < batch:
        at -= 1
    waiting.insert(at, batch)


def _append(merged: list[StateBatch], batch: StateBatch) -> None:
    before = merged[-1] if merged else None
    if before is not None and before.last + 1 == batch.first and _rank(before) == _rank(batch):
        merged[-1] = before._replace(last=batch.last)
    else:
        merged.append(batch)


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.deliveries, batch.state
