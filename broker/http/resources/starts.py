"""/api/starts: whether this broker came out of a loop of crashes, and the end of its caution."""

from typing import TYPE_CHECKING

from broker.http.port.parameters import Asked
from broker.http.port.route import HttpRoute

if TYPE_CHECKING:
    from broker.http.port.services import HttpServices


def _state(broker: "HttpServices", _: Asked) -> dict[str, object]:
    guard = broker.crash_guard
    return {
        "recent_starts": guard.recent_starts,
        "holding": guard.is_holding,
        "held_for_ms": guard.held_for_ms,
        "because": guard.fault,
    }


async def _confirm(broker: "HttpServices", asked: Asked) -> object:
    """An operator says that records may be taken in again."""
    ended = broker.crash_guard.confirm()
    broker.intake.look()
    return {"hold_ended": ended, **_state(broker, asked)}


ROUTES = (
    HttpRoute(
        "GET",
        "/api/starts",
        "Starts that ended soon and not well, and whether records are refused because of them.",
        read=_state,
    ),
    HttpRoute(
        "POST",
        "/api/starts/confirm",
        "Confirm the start: records are taken in again.",
        act=_confirm,
    ),
)
