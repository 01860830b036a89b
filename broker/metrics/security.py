"""Metrics of denials, of failed authentications, and of the audit that tells of them."""

from typing import NamedTuple

from broker.metrics.declare import Metric, counter, gauge, labelled, one
from broker.record_times.security_mirror import SecurityMirror
from broker.security.audit.trail import AuditTrail


class SecurityView(NamedTuple):
    """Services that metrics of security read."""

    trail: AuditTrail
    security_mirror: SecurityMirror | None


SECURITY_METRICS: tuple[Metric[SecurityView], ...] = (
    counter(
        "horolog_authorization_denials",
        "Rights that were asked for and are not given, by operation and type of resource.",
        ("operation", "resource"),
        lambda view: [(kind, float(n)) for kind, n in dict(view.trail.denials).items()],
    ),
    counter(
        "horolog_authentication_failures",
        "Clients that did not prove who they are, by mechanism (TLS: their certificate, HTTP).",
        ("mechanism",),
        lambda view: labelled(view.trail.failures),
    ),
    counter(
        "horolog_security_audit_lines",
        "Lines of the security audit that were written, by what took them.",
        ("sink",),
        lambda view: labelled(view.trail.queue.written),
    ),
    gauge(
        "horolog_security_audit_queued_lines",
        "Lines that wait to be written; beyond 10,000, who changes something waits.",
        (),
        one(lambda view: view.trail.queue.length),
    ),
    gauge(
        "horolog_security_audit_missing_lines",
        "Lines that the file lacks at the moment because it could not be written.",
        (),
        one(lambda view: view.trail.missing),
    ),
    counter(
        "horolog_security_audit_unmirrored_lines",
        "Lines that horolog.security.audit.topic could not take in time.",
        (),
        one(lambda view: view.security_mirror.left_out if view.security_mirror else 0),
    ),
)
