"""/api/clock: the broker's time, a hold on it, and the test clock.

The five moves exist with `serve --test-clock` only. Each answers once everything that waits on time
has followed, so that a test needs no sleep.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from broker.http.port.messages import ApiError
from broker.http.port.parameters import DURATION, INSTANT, SPEED, Asked, Parameter, word
from broker.http.port.route import HttpRoute
from broker.runtime.test_clock import ClockMoveError
from config.quantities import instant

if TYPE_CHECKING:
    from broker.http.port.services import HttpServices
    from broker.tasks.test_clock_control import HeldTime, Settled

BOTH, WALL = "both", "wall"
_HANDS = Parameter(
    "clock",
    word(BOTH, WALL),
    "both: time passes, everything that waits follows. wall: only the wall clock is set, which "
    "counts as a step of it",
    BOTH,
)


def clock_state(broker: "HttpServices") -> dict[str, object]:
    """The broker's clocks, the steps seen, and a hold."""
    hold = hold_state(broker)
    return {
        "wall": instant(broker.clock.now_ms()),
        "monotonic_seconds": round(broker.clock.monotonic(), 3),
        "steps_seen": broker.clock_watch.steps,
        "hold": hold,
        "test_clock": _test_clock(broker),
    }


def hold_state(broker: "HttpServices") -> dict[str, object] | None:
    """The reason why nothing is removed or rolled by time, and its end; None without a hold."""
    hold = broker.clock_watch.hold
    if hold is None:
        return None
    doubt, left_ms = hold
    return {
        "because": doubt.because,
        "by_ms": doubt.ms,
        "left_ms": left_ms,
        "until": instant(broker.clock.now_ms() + left_ms),
        "frees": "POST /api/clock/confirm when the clock is right, or wait",
    }


def _test_clock(broker: "HttpServices") -> dict[str, object] | None:
    if broker.held_time is None:
        return None
    clock = broker.held_time.clock
    return {
        "state": "running" if clock.speed else "frozen",
        "speed": clock.speed,
        "ahead_of_machine_ms": clock.now_ms() - clock.machine.now_ms(),
    }


async def confirm(broker: "HttpServices", _: Asked) -> object:
    """An operator says that the clock is right."""
    return {"hold_ended": broker.clock_watch.confirm(), **clock_state(broker)}


async def freeze(broker: "HttpServices", _: Asked) -> object:
    """Time stands still."""
    return await _settled(broker, _held(broker).freeze())


async def release(broker: "HttpServices", _: Asked) -> object:
    """Time goes on from where it is, as fast as the machine's."""
    return await _settled(broker, _held(broker).release())


async def speed(broker: "HttpServices", asked: Asked) -> object:
    """Time runs so many times as fast as the machine's."""
    return await _settled(broker, _held(broker).set_speed(asked.fields["factor"]))


async def step(broker: "HttpServices", asked: Asked) -> object:
    """So much time passes; or the wall clock alone is moved by so much. Raises ApiError."""
    held, by_ms, every_ms = _held(broker), asked.fields["by"], asked.fields["every"]
    if asked.fields["clock"] == BOTH:
        return await _settled(broker, held.advance(by_ms, every_ms))
    if every_ms is not None:
        raise ApiError(400, "bad_parameter", "every: the wall clock is set at once, in no stops")
    return await _settled(broker, held.set_wall(held.clock.now_ms() + by_ms))


async def set_time(broker: "HttpServices", asked: Asked) -> object:
    """The wall clock is set to an instant; or time passes until then."""
    held, to_ms = _held(broker), asked.fields["to"]
    if asked.fields["clock"] == WALL:
        return await _settled(broker, held.set_wall(to_ms))
    return await _settled(broker, held.advance(to_ms - held.clock.now_ms()))


def _held(broker: "HttpServices") -> "HeldTime":
    if broker.held_time is None:
        raise ApiError(
            409,
            "no_test_clock",
            "This broker keeps real time: a clock that can be moved needs 'serve --test-clock'",
        )
    return broker.held_time


async def _settled(broker: "HttpServices", move: "Awaitable[Settled]") -> object:
    try:
        settled = await move
    except ClockMoveError as error:
        raise ApiError(400, "bad_clock_move", str(error)) from error
    return {"passes": settled.passes, "task_runs": settled.task_runs, **clock_state(broker)}


ROUTES = (
    HttpRoute(
        "GET",
        "/api/clock",
        "Wall and monotonic time, steps seen, a hold and its reason, the test clock.",
        read=lambda broker, _: clock_state(broker),
        is_early=True,
    ),
    HttpRoute(
        "POST",
        "/api/clock/confirm",
        "The clock is right: end the hold on deletion and rolling by time.",
        act=confirm,
    ),
    HttpRoute("POST", "/api/clock/freeze", "Test clock: time stands still.", act=freeze),
    HttpRoute(
        "POST", "/api/clock/release", "Test clock: time goes on from where it is.", act=release
    ),
    HttpRoute(
        "POST",
        "/api/clock/speed",
        "Test clock: time runs so many times as fast.",
        act=speed,
        parameters=(
            Parameter("factor", SPEED, "Seconds that pass in one of the machine's", required=True),
        ),
    ),
    HttpRoute(
        "POST",
        "/api/clock/step",
        "Test clock: so much time passes, and everything that was due has run.",
        act=step,
        parameters=(
            Parameter(
                "by", DURATION, "Amount of time: milliseconds, or with a unit", required=True
            ),
            Parameter("every", DURATION, "Stop and let what is due run after each so much"),
            _HANDS,
        ),
    ),
    HttpRoute(
        "POST",
        "/api/clock/set",
        "Test clock: the wall clock is set, or time passes until then.",
        act=set_time,
        parameters=(
            Parameter("to", INSTANT, "An instant", required=True),
            Parameter("clock", _HANDS.kind, _HANDS.doc, WALL),
        ),
    ),
)
