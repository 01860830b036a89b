"""/api/starts: whether this broker came out of a loop of crashes, and the end of its caution."""

from typing import NamedTuple

from broker.guards.admission import Intake
from broker.guards.crash_guard import CrashGuard
from broker.http.port.caller import Needs, Role
from broker.http.port.parameters import Asked
from broker.http.port.route import HttpRoute
from protocol.acls import AclOperation, ResourceType


class StartServices(NamedTuple):
    """The services that the answers are made with."""

    crash_guard: CrashGuard
    intake: Intake


def _state(services: StartServices, _: Asked) -> dict[str, object]:
    guard = services.crash_guard
    return {
        "recent_starts": guard.recent_starts,
        "holding": guard.is_holding,
        "held_for_ms": guard.held_for_ms,
        "because": guard.fault,
    }


async def _confirm(services: StartServices, asked: Asked) -> object:
    """An operator says that records may be taken in again."""
    ended = services.crash_guard.confirm()
    services.intake.look()
    return {"hold_ended": ended, **_state(services, asked)}


ROUTES = (
    HttpRoute(
        StartServices,
        "GET",
        "/api/starts",
        "Starts that ended soon and not well, and whether records are refused because of them.",
        needs=Needs(AclOperation.DESCRIBE, ResourceType.CLUSTER),
        read=_state,
    ),
    HttpRoute(
        StartServices,
        "POST",
        "/api/starts/confirm",
        "Confirm the start: records are taken in again.",
        needs=Needs(AclOperation.ALTER, ResourceType.CLUSTER, role=Role.OPERATE),
        act=_confirm,
    ),
)
