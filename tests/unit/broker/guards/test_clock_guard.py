"""When the wall clock is doubted, and for how long."""

import pytest

from broker.guards.clock_guard import ClockWatch
from config.broker import BrokerConfig
from tests.support.disk.simenv import SimClock

HOUR, DAY = 3_600_000, 86_400_000
HOLD = BrokerConfig().horolog_clock_hold_ms


class Watched:
    def __init__(self) -> None:
        self.clock = SimClock()
        self.settings = BrokerConfig()
        self.watch = ClockWatch(self.clock, lambda: self.settings)


@pytest.fixture
def world() -> Watched:
    return Watched()


def test_time_that_passes_is_no_step(world: Watched) -> None:
    for ms in (1, 1000, HOUR, 400 * DAY):
        world.clock.advance(ms)
        assert not world.watch.look()
    assert world.watch.steps == 0


@pytest.mark.parametrize("ms", [HOUR, -HOUR, 7 * DAY, -7 * DAY, 3650 * DAY, 1001, -1001])
def test_a_step_is_held_for_its_time(world: Watched, ms: int) -> None:
    world.clock.step(ms)
    assert world.watch.look()
    world.clock.advance(HOLD - 1)
    assert world.watch.look()
    world.clock.advance(1)
    assert not world.watch.look()
    assert not world.watch.is_held
    assert world.watch.steps == 1


@pytest.mark.parametrize("ms", [1000, -1000, 3])
def test_small_corrections_are_no_steps(world: Watched, ms: int) -> None:
    world.clock.step(ms)
    assert not world.watch.look()


def test_a_second_step_begins_the_hold_anew(world: Watched) -> None:
    world.clock.step(HOUR)
    world.watch.look()
    world.clock.advance(HOLD - 1)
    world.clock.step(-HOUR)
    assert world.watch.look()
    world.clock.advance(HOLD - 1)
    assert world.watch.look()
    assert world.watch.steps == 2


def test_an_operator_ends_the_hold(world: Watched) -> None:
    world.clock.step(HOUR)
    assert world.watch.look()
    world.settings = BrokerConfig(horolog_clock_hold_ms=0)
    assert not world.watch.look()
    world.settings = BrokerConfig()
    assert not world.watch.look()


@pytest.mark.parametrize(
    ("last_write", "held"),
    [(None, False), (0, False), (-DAY, False), (-DAY - 1, True), (1000, False), (1001, True)],
)
def test_a_start_far_from_the_last_write_is_held(
    world: Watched, last_write: int | None, held: bool
) -> None:
    world.watch.started(None if last_write is None else world.clock.now_ms() + last_write)
    assert world.watch.look() == held
    assert world.watch.steps == 0


def test_an_operator_who_confirms_ends_the_hold(world: Watched) -> None:
    assert not world.watch.confirm()
    world.clock.step(DAY)
    assert world.watch.confirm(), "a step that nobody had looked at yet"
    assert not world.watch.is_held
    assert not world.watch.look()
    world.clock.step(-DAY)
    assert world.watch.look(), "what comes after is doubted anew"
    assert world.watch.steps == 2


def test_a_hold_says_why_and_for_how_long(world: Watched) -> None:
    assert world.watch.hold is None
    world.clock.step(DAY)
    world.watch.look()
    world.clock.advance(1000)
    assert world.watch.hold is not None
    cause, left_ms = world.watch.hold
    assert (cause.because, cause.ms, left_ms) == ("clock_stepped", DAY, HOLD - 1000)


def test_the_trusted_time_is_the_wall_time_until_a_step(world: Watched) -> None:
    begin = world.clock.now_ms()
    world.clock.advance(5000)
    assert world.watch.trusted_ms() == begin + 5000
    world.clock.step(500)  # less than a step
    assert world.watch.trusted_ms() == begin + 5000
    world.watch.look()
    assert world.watch.trusted_ms() == begin + 5500


def test_a_step_ahead_is_trusted_once_the_hold_is_over(world: Watched) -> None:
    begin = world.clock.now_ms()
    world.clock.step(8 * DAY)
    assert world.watch.trusted_ms() == begin, "before anybody looks"
    world.watch.look()
    world.clock.advance(HOLD - 1)
    world.watch.look()
    assert world.watch.trusted_ms() == begin + HOLD - 1
    world.clock.advance(1)
    world.watch.look()
    assert world.watch.trusted_ms() == begin + 8 * DAY + HOLD


def test_a_step_ahead_is_trusted_once_somebody_confirms_it(world: Watched) -> None:
    begin = world.clock.now_ms()
    world.clock.step(8 * DAY)
    world.watch.confirm()
    assert world.watch.trusted_ms() == begin + 8 * DAY


def test_a_clock_that_went_back_is_believed_at_once(world: Watched) -> None:
    begin = world.clock.now_ms()
    world.clock.step(-HOUR)
    assert world.watch.trusted_ms() == begin - HOUR


def test_a_start_far_from_the_last_write_trusts_no_later_time(world: Watched) -> None:
    now = world.clock.now_ms()
    world.watch.started(now - 2 * DAY)
    assert world.watch.trusted_ms() == now - 2 * DAY
    world.clock.advance(1000)
    assert world.watch.trusted_ms() == now - 2 * DAY + 1000
    world.watch.confirm()
    assert world.watch.trusted_ms() == now + 1000
