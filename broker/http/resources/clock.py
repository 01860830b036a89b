"""/api/clock: the broker's time, a hold on it, and the test clock.

The five moves exist with `serve --test-clock` only. Each answers once everything that waits on time
has followed, so that a test needs no sleep.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, NamedTuple

from broker.guards.clock_guard import ClockWatch
from broker.http.port.caller import Needs, Role
from broker.http.port.messages import ApiError
from broker.http.port.parameters import DURATION, INSTANT, SPEED, Asked, Parameter, word
from broker.http.port.route import HttpRoute
from broker.runtime.test_clock import ClockMoveError
from broker.tasks.test_clock_control import HeldTime
from config.quantities import instant
from protocol.acls import AclOperation, ResourceType
from storage.env import Clock

if TYPE_CHECKING:
    from broker.tasks.test_clock_control import Settled

BOTH, WALL = "both", "wall"
_HANDS = Parameter(
    "clock",
    word(BOTH, WALL),
    "both: time passes, everything that waits follows. wall: only the wall clock is set, which "
    "counts as a step of it",
    BOTH,
)
_MOVES = Needs(AclOperation.ALTER, ResourceType.CLUSTER, role=Role.OPERATE)


class ClockServices(NamedTuple):
    """The services that the answers are made with."""

    clock: Clock
    clock_watch: ClockWatch
    held_time: HeldTime | None


def clock_state(services: ClockServices) -> dict[str, object]:
    """The broker's clocks, the steps seen, and a hold."""
    hold = hold_state(services.clock, services.clock_watch)
    return {
        "wall": instant(services.clock.now_ms()),
        "monotonic_seconds": round(services.clock.monotonic(), 3),
        "steps_seen": services.clock_watch.steps,
        "hold": hold,
        "test_clock": _test_clock(services),
    }


def hold_state(clock: Clock, watch: ClockWatch) -> dict[str, object] | None:
    """The reason why nothing is removed or rolled by time, and its end; None without a hold."""
    hold = watch.hold
    if hold is None:
        return None
    cause, left_ms = hold
    return {
        "because": cause.because,
        "by_ms": cause.ms,
        "left_ms": left_ms,
        "until": instant(clock.now_ms() + left_ms),
        "frees": "POST /api/clock/confirm when the clock is right, or wait",
    }


def _test_clock(services: ClockServices) -> dict[str, object] | None:
    if services.held_time is None:
        return None
    clock = services.held_time.clock
    return {
        "state": "running" if clock.speed else "frozen",
        "speed": clock.speed,
        "ahead_of_machine_ms": clock.now_ms() - clock.machine.now_ms(),
    }


async def confirm(services: ClockServices, _: Asked) -> object:
    """An operator says that the clock is right."""
    return {"hold_ended": services.clock_watch.confirm(), **clock_state(services)}


async def freeze(services: ClockServices, _: Asked) -> object:
    """Time stands still."""
    return await _settled(services, _held(services).freeze())


async def release(services: ClockServices, _: Asked) -> object:
    """Time goes on from where it is, as fast as the machine's."""
    return await _settled(services, _held(services).release())


async def speed(services: ClockServices, asked: Asked) -> object:
    """Time runs so many times as fast as the machine's."""
    return await _settled(services, _held(services).set_speed(asked.fields["factor"]))


async def step(services: ClockServices, asked: Asked) -> object:
    """So much time passes; or the wall clock alone is moved by so much. Raises ApiError."""
    held, by_ms, every_ms = _held(services), asked.fields["by"], asked.fields["every"]
    if asked.fields["clock"] == BOTH:
        return await _settled(services, held.advance(by_ms, every_ms))
    if every_ms is not None:
        raise ApiError(400, "bad_parameter", "every: the wall clock is set at once, in no stops")
    return await _settled(services, held.set_wall(held.clock.now_ms() + by_ms))


async def set_time(services: ClockServices, asked: Asked) -> object:
    """The wall clock is set to an instant; or time passes until then."""
    held, to_ms = _held(services), asked.fields["to"]
    if asked.fields["clock"] == WALL:
        return await _settled(services, held.set_wall(to_ms))
    return await _settled(services, held.advance(to_ms - held.clock.now_ms()))


def _held(services: ClockServices) -> "HeldTime":
    if services.held_time is None:
        raise ApiError(
            409,
            "no_test_clock",
            "This broker keeps real time: a clock that can be moved needs 'serve --test-clock'",
        )
    return services.held_time


async def _settled(services: ClockServices, move: "Awaitable[Settled]") -> object:
    try:
        settled = await move
    except ClockMoveError as error:
        raise ApiError(400, "bad_clock_move", str(error)) from error
    return {"passes": settled.passes, "task_runs": settled.task_runs, **clock_state(services)}


ROUTES = (
    HttpRoute(
        ClockServices,
        "GET",
        "/api/clock",
        "Wall and monotonic time, steps seen, a hold and its reason, the test clock.",
        needs=Needs(AclOperation.DESCRIBE, ResourceType.CLUSTER),
        read=lambda services, _: clock_state(services),
        is_early=True,
    ),
    HttpRoute(
        ClockServices,
        "POST",
        "/api/clock/confirm",
        "The clock is right: end the hold on deletion and rolling by time.",
        needs=_MOVES,
        act=confirm,
    ),
    HttpRoute(
        ClockServices,
        "POST",
        "/api/clock/freeze",
        "Test clock: time stands still.",
        needs=_MOVES,
        act=freeze,
    ),
    HttpRoute(
        ClockServices,
        "POST",
        "/api/clock/release",
        "Test clock: time goes on from where it is.",
        needs=_MOVES,
        act=release,
    ),
    HttpRoute(
        ClockServices,
        "POST",
        "/api/clock/speed",
        "Test clock: time runs so many times as fast.",
        needs=_MOVES,
        act=speed,
        parameters=(
            Parameter("factor", SPEED, "Seconds that pass in one of the machine's", required=True),
        ),
    ),
    HttpRoute(
        ClockServices,
        "POST",
        "/api/clock/step",
        "Test clock: so much time passes, and everything that was due has run.",
        needs=_MOVES,
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
        ClockServices,
        "POST",
        "/api/clock/set",
        "Test clock: the wall clock is set, or time passes until then.",
        needs=_MOVES,
        act=set_time,
        parameters=(
            Parameter("to", INSTANT, "An instant", required=True),
            Parameter("clock", _HANDS.kind, _HANDS.doc, WALL),
        ),
    ),
)
