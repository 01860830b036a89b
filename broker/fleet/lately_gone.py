"""Nodes that clients still hear of: they lived lately, and may be back in a moment.

A client of librdkafka takes a broker that Metadata leaves out for one that is gone for good. What
it had cached for that one, as who coordinates a group, then waits for ever (seen with 2.16).
"""

from collections.abc import Callable, Mapping

from broker.runtime.endpoint import Endpoint, Nodes

KEPT_SECONDS = 300.0
"""Long enough for a restart, and for clients to have asked for other leaders and coordinators."""


class LatelyGone:
    """Memory of the other nodes. Used from the event loop."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """No node was seen."""
        self._monotonic = monotonic
        self._lived: dict[int, tuple[Mapping[str, Endpoint], float]] = {}
        """Addresses of a node, and when it was seen to live."""

    def look(self, living: Nodes) -> Nodes:
        """Those that lived within `KEPT_SECONDS`, but for those that live now."""
        now = self._monotonic()
        self._lived.update((each, (listeners, now)) for each, listeners in living.items())
        self._lived = {
            each: lived for each, lived in self._lived.items() if now - lived[1] < KEPT_SECONDS
        }
        return {each: lived[0] for each, lived in self._lived.items() if each not in living}
