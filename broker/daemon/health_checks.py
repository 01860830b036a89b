"""Checks of `/livez` and `/readyz`."""

from typing import Any

from broker.daemon.services import Services
from broker.http.port.health import Check
from broker.state.loading import StateLoading


def live_checks() -> list[Check]:
    """The process answers."""
    return [Check("ping", lambda: None)]


def ready_checks(services: Services) -> list[Check]:
    """Clients can connect, and what they have stored is served."""
    readiness, probes = services.readiness, services.probes

    def storage_fault() -> str | None:
        if probes.fsync_errors:
            return f"{probes.fsync_errors} fsync failed; see the log for which partition"
        return services.refused_writes.fault

    def audit_fault() -> str | None:
        lost = "the security audit can be written nowhere: nothing may be changed"
        return lost if services.trail.is_lost else None

    def audit_note() -> str | None:
        missing = services.trail.missing
        return f"{missing} lines of the security audit are in the log alone" if missing else None

    def fleet_fault() -> str | None:
        return None if services.fleet is None else services.fleet.fault

    return [
        Check("serving", lambda: None if readiness.is_ready else readiness.reason),
        Check("storage", storage_fault),
        Check("disk", lambda: services.disk_space.shortage),
        Check("fleet", fleet_fault),
        Check("starts", lambda: services.crash_guard.fault),
        Check("connections", services.server.why_full),
        Check("security_audit", audit_fault, audit_note),
        _loading_check("groups", services.groups.loading),
        _loading_check("transactions", services.transactions.loading),
        _loading_check("share_groups", services.share_states.loading),
    ]


def _loading_check(name: str, loading: StateLoading[Any]) -> Check:
    """Check for state that a coordinator could not read back."""
    return Check(name, lambda: loading.fault, lambda: loading.note)
