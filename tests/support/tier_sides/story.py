"""Life of the topics on one side, from their creation to the end, and its answers."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.support.tier_sides.expected import Places
from tests.support.tier_sides.scenes import Scene
from tests.support.tier_sides.side import EARLIEST, EARLIEST_LOCAL, Lived, Side, Sizes
from tests.support.tier_sides.talk import until
from tests.support.tier_sides.told import Told, ask, read

FIRST, SECOND = "before", "after"
GONE = "rising"
"""The topic that goes on while others are changed, and is deleted at the end."""
ROUNDS, A_SEGMENT = 2, 3
PAIR = ("rising", "disordered")
TOTALS = (1, 700, 1_000_000)


class Part(NamedTuple):
    """Answers of a side at one time, and where the records were."""

    told: Told
    lives: Mapping[str, Lived]
    places: Mapping[str, Places]


def live(side: Side, scenes: list[Scene], now_ms: int) -> dict[str, Part]:
    """All of it; what was said before and after the changes."""
    lives = {scene.topic: Lived(scene, now_ms) for scene in scenes}
    side.create({topic: {} for topic in lives})
    for lived in lives.values():
        side.live(lived, lived.scene.steps)
    for lived in lives.values():
        side.settle(lived)
    found = {FIRST: _asked(side, lives)}
    found[FIRST].told.update(_fetched_together(side))
    changed = {
        topic: lived
        for topic, lived in lives.items()
        if lived.scene.change or lived.scene.trims_to is not None
    }
    for lived in changed.values():
        _change(side, lived)
    for lived in changed.values():
        _wait(side, lived)
    for _ in range(ROUNDS):  # of copies: what was stopped does not go on
        side.live(lives[GONE], lives[GONE].scene.steps[:A_SEGMENT])
        side.settle(lives[GONE])
    found[SECOND] = _asked(side, changed)
    assert side.talk.delete(GONE) == 0
    until(lambda: not side.stored(GONE), f"{side.name}: the objects of a deleted topic go")
    return found


def _asked(side: Side, lives: Mapping[str, Lived]) -> Part:
    told: Told = {}
    places = {}
    for topic, lived in lives.items():
        start, local = side.special(topic, EARLIEST), side.special(topic, EARLIEST_LOCAL)
        bases = sorted(side.stored(topic) | side.local(topic))
        places[topic] = Places(start, local, bases)
        told[topic, "stored"] = side.stored(topic)
        told[topic, "local"] = side.local(topic)
        told |= ask(side, lived)
    return Part(told, dict(lives), places)


def _fetched_together(side: Side) -> Told:
    """Two topics in one fetch, from the tier; the limit of each one is that of both together."""
    found: Told = {}
    for total in TOTALS:
        answers = side.talk.read([(topic, 0, total) for topic in PAIR], max_bytes=total)
        found["both", "fetch", total] = [read(each) for each in answers]
    return found


def _change(side: Side, lived: Lived) -> None:
    scene = lived.scene
    if scene.trims_to is not None:
        answer = side.talk.delete_records({scene.topic: scene.trims_to})[scene.topic]
        assert (answer.error_code, answer.low_watermark) == (0, scene.trims_to)
    if scene.change:
        side.change(scene.topic, scene.change)
    if scene.more:
        side.live(lived, scene.more)


def _wait(side: Side, lived: Lived) -> None:
    """Until the change has done what it does."""
    start = start_after(lived)
    topic = lived.scene.topic
    until(lambda: side.special(topic, EARLIEST) == start, f"{side.name}: {topic} starts at {start}")
    until(lambda: not _too_old(side.stored(topic), lived, start), f"{side.name}: {topic} shrinks")


def _too_old(stored: Sizes, lived: Lived, start: int) -> list[int]:
    """Segments of the store that are before the log's start."""
    ends = _ends(lived)
    return [base for base in stored if ends[base] <= start]


def _ends(lived: Lived) -> dict[int, int]:
    bases = sorted(lived.sizes)
    return dict(zip(bases, [*bases[1:], lived.end], strict=True))


def start_after(lived: Lived) -> int:
    """The log's start after the change, by the rules of retention over a plain list."""
    scene, bases = lived.scene, sorted(lived.sizes)
    if scene.trims_to is not None:
        return scene.trims_to
    if scene.change.get("remote.storage.enable") == "false":
        return lived.local_start
    if limit := scene.change.get("retention.bytes"):
        return _start_by_size(lived, int(limit))
    if limit := scene.change.get("retention.ms"):
        oldest, ends = lived.now_ms - int(limit), _ends(lived)
        for base in bases[:-1]:
            inside: list[Any] = [row for row in lived.rows if base <= row.offset < ends[base]]
            if max(row.time_ms for row in inside) >= oldest:
                return base
    return bases[0]


def _start_by_size(lived: Lived, limit: int) -> int:
    left = sum(lived.sizes.values())
    for base, size in sorted(lived.sizes.items()):
        if left - size < limit:
            return base
        left -= size
    return lived.end
