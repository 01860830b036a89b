"""Offsets of a stream, and limits of its next batch. Pure: views in, offsets out.

An offset is what Spark's Kafka connector writes into a checkpoint, and the topic's id with it:
`{"orders": {"0": 17, "1": 4, "id": "6f1c…"}}`. So a topic that was deleted and made again under the
same name is noticed at once, and never read on from where the old one had come to.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.errors import DataLost
from pipeline.sources.bounds import Range
from pipeline.sources.partition_view import PartitionView

Offset = dict[str, dict[str, Any]]
TOPIC_ID = "id"


def offset_of(views: Iterable[PartitionView], ends: Mapping[tuple[str, int], int]) -> Offset:
    """The offset that stands at `ends`, by topic and partition."""
    made: Offset = {}
    for view in views:
        topic = made.setdefault(view.topic, {})
        topic[str(view.partition)] = ends[view.topic, view.partition]
        if view.topic_id:
            topic[TOPIC_ID] = view.topic_id
    return made


def carried(start: Offset, made: Offset) -> Offset:
    """`made`, and the positions in `start` of partitions that it does not know.

    So one that is not there for a while goes on where it was when it comes back. Positions of a
    topic that was made again are of the old one, and are dropped.
    """
    whole = dict(made)
    for topic, positions in start.items():
        new = made.get(topic, {})
        if TOPIC_ID in new and positions.get(TOPIC_ID, new[TOPIC_ID]) != new[TOPIC_ID]:
            continue
        whole[topic] = {**positions, **new}
    return whole


def places_in(offset: Offset, since: Offset | None = None) -> set[tuple[str, int]]:
    """The partitions that an offset knows; with `since`, those that have come further than that."""
    return {
        (topic, int(index))
        for topic, positions in offset.items()
        for index, at in positions.items()
        if index != TOPIC_ID and (since is None or at > _of(topic, positions, since).get(index, 0))
    }


def _of(topic: str, positions: Mapping[str, Any], offset: Offset) -> Mapping[str, Any]:
    """The topic's positions in another offset; none when these are of another topic."""
    found = offset.get(topic, {})
    known = found.get(TOPIC_ID)
    return {} if known and positions.get(TOPIC_ID, known) != known else found


def position_in(offset: Offset, view: PartitionView) -> int | None:
    """Position of a partition in an offset; None for one that it does not know."""
    found = offset.get(view.topic, {}).get(str(view.partition))
    return None if found is None else int(found)


def begin_of(start: Offset, view: PartitionView, *, fails_on_loss: bool) -> int:
    """From where a partition is to be read on; one that was added begins at its earliest offset.

    DataLost when its topic is another one, or when offsets have gone, or went backwards.
    """
    found = position_in(start, view)
    known = 0 if found is None else found
    what = _loss(start, view, known)
    if what is None:
        return known
    if fails_on_loss:
        raise DataLost(f"{view}: {what}; failOnDataLoss=false goes on with what is there")
    return view.start_offset if known < view.start_offset or _is_other(start, view) else known


def refuse_missing(start: Offset, views: Iterable[PartitionView]) -> None:
    """DataLost for a partition that was read before and is not there any more."""
    there = {(view.topic, str(view.partition)) for view in views}
    for topic, positions in start.items():
        for partition in positions.keys() - {TOPIC_ID}:
            if (topic, partition) not in there:
                raise DataLost(
                    f"{topic}-{partition} was read before and is gone; failOnDataLoss=false goes "
                    "on without it"
                )


def limited(ranges: list[tuple[PartitionView, int, int]], most: int) -> dict[tuple[str, int], int]:
    """End of each partition when all together may have `most` offsets: in fair shares.

    `ranges` are from where to where each could go. Each that has something gets one offset, and of
    the rest as much as it is behind. Where the limit is smaller than that they take turns. The
    positions give the turn: their sum rises by the limit with every such batch, so that the next
    one begins where this one ends.
    """
    first = sum(begin for _, begin, _ in ranges) % max(1, len(ranges))
    ends, waiting = {}, []
    ordered = sorted(ranges, key=lambda each: (each[0].topic, each[0].partition))
    for view, begin, end in (*ordered[first:], *ordered[:first]):
        is_served = end > begin and most > 0
        ends[view.topic, view.partition] = begin + is_served
        most -= is_served
        waiting.append((view, max(0, end - begin) - is_served))
    left = sum(lag for _, lag in waiting)
    for view, lag in waiting:
        share = min(lag, -(-lag * most // left)) if left else 0
        ends[view.topic, view.partition] += share
        most, left = most - share, left - lag
    return ends


def ranges_between(
    start: Offset, end: Offset, views: Iterable[PartitionView], *, fails_on_loss: bool
) -> list[tuple[PartitionView, Range]]:
    """The offsets of each partition that a batch has to read. DataLost."""
    ranges, views = [], list(views)
    if fails_on_loss:
        _refuse_unread(start, end, views)
    for view in views:
        until = position_in(end, view)
        if until is None:
            continue
        if _is_other(end, view):
            if fails_on_loss:
                raise DataLost(f"{view}: its topic was deleted and made again")
            continue  # the next batch begins with the new one
        begin = begin_of(start, view, fails_on_loss=fails_on_loss)
        if until > begin:
            ranges.append((view, Range(begin, until - 1)))
    return ranges


def _refuse_unread(start: Offset, end: Offset, views: Iterable[PartitionView]) -> None:
    gone = places_in(end, start) - {(view.topic, view.partition) for view in views}
    for topic, partition in sorted(gone):
        raise DataLost(
            f"{topic}-{partition} is gone before its records were read; failOnDataLoss=false goes "
            "on without it"
        )


def _loss(start: Offset, view: PartitionView, known: int) -> str | None:
    if _is_other(start, view):
        return "its topic was deleted and made again"
    if known < view.start_offset:
        return f"offsets from {known} to before {view.start_offset} are gone"
    if known > view.end_offset:
        return f"it was read up to {known} and ends at {view.end_offset} now"
    return None


def _is_other(offset: Offset, view: PartitionView) -> bool:
    known = offset.get(view.topic, {}).get(TOPIC_ID, "")
    return bool(known and view.topic_id and known != view.topic_id)
