"""Compares what two brokers said about topics with a tier: Kafka's words and ours.

`DELIBERATE` names all that may differ, as the table in `docs/differences.md` does.
"""

from collections.abc import Iterator
from typing import Any

from tests.support.histories.history_compare import Difference, told_apart
from tests.support.tier_sides.expected import by_kafka, exact, newest
from tests.support.tier_sides.side import LATEST_TIERED
from tests.support.tier_sides.story import Part

MAX_TIMESTAMP = -3
LARGEST, SEARCH, LAST = "tier: largest time", "tier: search by time", "tier: last offset in it"
SHARE = "tier: several partitions in one fetch"
DELIBERATE = (LARGEST, SEARCH, LAST, SHARE)
NOTHING = -1


def differences(kafka: Part, ours: Part) -> Iterator[Difference]:
    """All of them, the deliberate ones too, and where either is not what a list says."""
    yield from told_apart(kafka.told, ours.told, lambda label: _why_allowed(label, kafka, ours))
    for label, own in ours.told.items():
        if label[1] == "offset" and label[2] >= 0 and own[:3] != _exact(label, ours):
            yield Difference((*label, "against a list"), _exact(label, ours), own)


def _exact(label: tuple[Any, ...], part: Part) -> Any:
    topic, _, at, _, isolation = label
    return exact(part.lives[topic], part.places[topic], at, _below(topic, isolation, part))


def _below(topic: str, isolation: int, part: Part) -> int:
    """End of what a reader may see."""
    return int(part.told[topic, "offset", -1, 1, isolation][2])


def _why_allowed(label: tuple[Any, ...], kafka: Part, ours: Part) -> str:
    topic, kind = label[:2]
    theirs, own = kafka.told.get(label), ours.told.get(label)
    if theirs is None or own is None:
        return ""
    if label[:2] == ("both", "fetch"):
        is_less = theirs[0] == own[0] and theirs[1] == own[1]._replace(batches=[], cut_bytes=0)
        return SHARE if is_less else ""
    if kind != "offset":
        return ""
    _, _, at, _, isolation = label
    lived, places = kafka.lives[topic], kafka.places[topic]
    if at >= 0:
        rule = by_kafka(lived, places, at, _below(topic, isolation, kafka))
        return SEARCH if theirs[:3] == rule and own[:3] == _exact(label, ours) else ""
    if at == MAX_TIMESTAMP:
        here = [row for row in lived.rows if row.offset >= places.local_start]
        seen = [row for row in lived.rows if row.offset >= places.start]
        return LARGEST if theirs[:3] == newest(here) and own[:3] == newest(seen) else ""
    if at == LATEST_TIERED and theirs[0] == own[0] == 0:
        return LAST if theirs[2] < places.start and own[2] == NOTHING else ""
    return ""
