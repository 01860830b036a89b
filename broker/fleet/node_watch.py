"""Looks at the nodes of a fleet, and fences those that are gone.

A node that renews its lease counts up. One whose count stays the same for a whole lease, by the
monotonic clock of who looks, is gone: so no wall clock has a say, the catalog's neither. Who could
not reach the catalog for long begins to count again, for then others could not either, and the
first one that reaches it would find all others as they were.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from math import inf
from typing import NamedTuple

from broker.fleet.catalog.port import CatalogError, FleetCatalog
from broker.fleet.catalog.rows import Incarnation, NodeRow
from broker.fleet.pacing import FleetClock
from broker.fleet.times import FleetTimes

SILENT_SHARE = 0.6
"""Part of a lease without a renewal, after which a node gets no shards."""
AWAY_SHARE = 0.5
"""Part of a lease without an answer of the catalog, after which all are counted from then on."""


class Sight(NamedTuple):
    """A node's count, and since when it is the same."""

    renewals: int
    since: float


class NodeWatch:
    """Used by one task."""

    def __init__(self, catalog: FleetCatalog, clock: FleetClock, times: FleetTimes) -> None:
        """No node was seen."""
        self._catalog = catalog
        self._clock = clock
        self._times = times
        self._seen: dict[Incarnation, Sight] = {}
        self._looked_at = -inf
        self._has_failed = False

    def failed(self) -> None:
        """A statement of this node had no answer."""
        self._has_failed = True

    async def look(self, *, is_alive: bool) -> AbstractSet[Incarnation]:
        """One look at all nodes; those that are silent. CatalogError.

        `is_alive`: a statement of this node was answered within the last lease.
        """
        asked = self._clock.monotonic()
        nodes = await self._nodes()
        now = self._clock.monotonic()
        before = self._seen if is_alive and not self._was_away(asked, now) else {}
        self._looked_at, self._has_failed = now, False
        seen = {
            node.incarnation: _sight(node, before.get(node.incarnation), now)
            for node in nodes
            if not node.is_fenced
        }
        self._seen = seen
        for incarnation, sight in seen.items():
            if now - sight.since > self._times.lease:
                await self._catalog.fence(incarnation, sight.renewals)
        silent = SILENT_SHARE * self._times.lease
        return {each for each, sight in seen.items() if now - sight.since > silent}

    async def _nodes(self) -> Sequence[NodeRow]:
        try:
            return await self._catalog.nodes()
        except CatalogError:
            self.failed()
            raise

    def _was_away(self, asked: float, now: float) -> bool:
        """True after an outage; a node that is slow itself goes on counting."""
        most = AWAY_SHARE * self._times.lease
        return now - asked > most or (self._has_failed and now - self._looked_at > most)


def _sight(node: NodeRow, before: Sight | None, now: float) -> Sight:
    if before is not None and before.renewals == node.renewals:
        return before
    return Sight(node.renewals, now)
