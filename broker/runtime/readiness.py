"""Readiness: whether the broker serves clients, and why it does not."""


class Readiness:
    """Set by the daemon on the event loop; read from any thread."""

    __slots__ = ("is_ready", "reason")

    def __init__(self) -> None:
        """A broker that starts is not ready."""
        self.is_ready = False
        self.reason = "starting"

    def lost(self, reason: str) -> None:
        """Not ready from now on, for `reason`, such as `stopping`."""
        self.is_ready = False
        self.reason = reason

    def reached(self) -> None:
        """Clients are served from now on."""
        self.is_ready = True
