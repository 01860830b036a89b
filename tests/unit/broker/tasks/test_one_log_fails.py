"""An unexpected error at one log keeps no other log from being rolled, cleaned or cut."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.runtime.callbacks import failures
from broker.runtime.deferred import resolved
from broker.tasks import cleaner, retention, rolling
from broker.tasks.cleaner import judge_all
from broker.tasks.retention import Retention
from broker.tasks.rolling import LOOK_AGAIN_SECONDS, LOOKS_AT_A_TIME, Rolling
from storage.cleaner.cleanable_logs import CleanerOffsets

BROKEN = 3


class BareLog:
    """A log of which only the number is known."""

    takes_changes = True

    def __init__(self, index: int) -> None:
        self.index = index
        self.snapshot = SimpleNamespace(active=SimpleNamespace(base_offset=0))


class BarePartition:
    """A partition of which only the place is known."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.leader_elsewhere = None
        self.log = BareLog(index)
        self.writer = SimpleNamespace(in_turn=lambda work: resolved(work()))


class BareClock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return int(self.now * 1000)


class DirectLane:
    """Runs what a lane would, at once."""

    async def run(self, work: Callable[..., Any], *args: object) -> Any:
        return work(*args)


class Place:
    """Partitions, a clock, and the services around a task."""

    def __init__(self, count: int) -> None:
        self.partitions = [BarePartition(index) for index in range(count)]
        image = SimpleNamespace(
            topics={"t": SimpleNamespace(partitions=self.partitions)},
            led_here=lambda: self.partitions,
        )
        self.topics = cast("Any", SimpleNamespace(image=image))
        self.clock = BareClock()
        self.watch = cast("Any", SimpleNamespace(look=lambda: False))
        self.lane = cast("Any", DirectLane())
        self.seen: list[int] = []


@pytest.fixture
def counted() -> Callable[[], int]:
    before = failures["task"]
    return lambda: failures["task"] - before


def broken_at(index: int) -> None:
    if index == BROKEN:
        raise ValueError(f"log {index}")


def rolls(place: Place, monkeypatch: pytest.MonkeyPatch, *, broken: str = "") -> Rolling:
    """Rolling of logs that are always due; `broken` fails at one of them."""

    def knows(log: Any) -> bool:
        if broken == "knows":
            broken_at(log.index)
        return broken != "learn"

    def deadline(log: Any, now_ms: int) -> int:
        if broken == "deadline" or (broken == "learn" and not now_ms):
            broken_at(log.index)
        return 0

    def roll(log: Any, _: int) -> bool:
        if broken == "roll":
            broken_at(log.index)
        return True

    monkeypatch.setattr(rolling, "knows_roll_deadline", knows)
    monkeypatch.setattr(rolling, "roll_deadline", deadline)
    monkeypatch.setattr(rolling, "roll_if_due", roll)
    return Rolling(
        place.topics, place.clock, place.watch, place.lane,
        lambda log: place.seen.append(cast("Any", log).index),
    )  # fmt: skip


@pytest.mark.parametrize("broken", ["knows", "deadline", "roll"])
async def test_the_others_are_rolled(
    monkeypatch: pytest.MonkeyPatch, counted: Callable[[], int], broken: str
) -> None:
    place = Place(LOOKS_AT_A_TIME)
    work = rolls(place, monkeypatch, broken=broken)
    await work.run()
    assert sorted(place.seen) == [each for each in range(LOOKS_AT_A_TIME) if each != BROKEN]
    assert counted() >= 1
    rolls(place, monkeypatch)
    place.seen.clear()
    place.clock.now += LOOK_AGAIN_SECONDS
    await work.run()
    assert sorted(place.seen) == list(range(LOOKS_AT_A_TIME)), "none is forgotten"


async def test_times_that_cannot_be_learned_stop_no_round(
    monkeypatch: pytest.MonkeyPatch, counted: Callable[[], int]
) -> None:
    place = Place(6)
    await rolls(place, monkeypatch, broken="learn").run()
    assert counted() == 1


async def test_a_round_that_ends_early_forgets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(6)
    work = rolls(place, monkeypatch)

    def ends(_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(rolling, "knows_roll_deadline", ends)
    with pytest.raises(KeyboardInterrupt):
        await work.run()
    rolls(place, monkeypatch)
    await work.run()
    assert sorted(place.seen) == list(range(6))


@pytest.mark.parametrize("broken", ["learn", "plan", "judge", "apply"])
async def test_the_others_are_cut(
    monkeypatch: pytest.MonkeyPatch, counted: Callable[[], int], broken: str
) -> None:
    place = Place(6)

    def step(name: str, given: Any) -> Callable[..., Any]:
        def go(log: Any, *_: object, **__: object) -> Any:
            if name == broken:
                broken_at(log.index)
            return log.index if given is None else given

        return go

    monkeypatch.setattr(retention, "learn_times", step("learn", True))
    monkeypatch.setattr(retention, "plan_retention", step("plan", None))
    work = Retention(place.topics, cast("Any", None), place.clock, place.watch, place.lane)
    judge = step("judge", 0)
    monkeypatch.setattr(work, "_judge", lambda partition, *_: judge(partition.log))
    apply = step("apply", 0)

    async def applied(partition: BarePartition, _: object) -> None:
        apply(partition.log)
        place.seen.append(partition.index)

    monkeypatch.setattr(work, "_apply", applied)
    await work.run()
    assert place.seen == [0, 1, 2, 4, 5]
    assert counted() == 1


def test_the_others_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(6)

    def kept(log: Any, *_: object) -> Any:
        broken_at(log.index)
        return log.index

    monkeypatch.setattr(cleaner, "kept_verdict", kept)
    verdicts, faults = judge_all(cast("Any", place.partitions), cast("CleanerOffsets", None), 0)
    assert verdicts == [0, 1, 2, None, 4, 5]
    assert [partition.index for partition, _ in faults] == [BROKEN]
