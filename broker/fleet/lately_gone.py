"""Nodes that clients still hear of: they lived lately, and may be back in a moment.

A client of librdkafka takes a broker that Metadata leaves out for one that is gone for good. What
it had cached for that one, as who coordinates a group, then waits for ever (seen with 2.16).

Their port is another one meanwhile, at which nobody answers. Such a client ends its connection when
the address changes, and sends elsewhere what had no answer there; it would wait for the answers of
a machine that is silent for as long as its `socket.timeout.ms`, a minute.
"""

from collections.abc import Callable, Mapping

from broker.runtime.endpoint import Endpoint, Nodes

KEPT_SECONDS = 300.0
"""Long enough for a restart, and for clients to have asked for other leaders and coordinators."""
NOBODYS_PORT = 1
"""Reserved (RFC 1078), and unused everywhere."""


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
        gone = {each: lived[0] for each, lived in self._lived.items() if each not in living}
        return _unreachable(gone)


def _unreachable(gone: Nodes) -> Nodes:
    """Nodes at `NOBODYS_PORT`; of several on one host the first one alone, since some clients take
    brokers with one address for one broker.
    """
    taken = set[tuple[str, str]]()
    found: dict[int, Mapping[str, Endpoint]] = {}
    for node_id in sorted(gone):
        listeners = dict(gone[node_id])
        for name, each in listeners.items():
            if (name, each.host) not in taken:
                listeners[name] = each._replace(port=NOBODYS_PORT)
            taken.add((name, each.host))
        found[node_id] = listeners
    return found
