"""Levels of features that all living nodes of a fleet serve.

A node says as it registers whether it can have partitions join transactions by themselves. Clients
may rely on that when every node can, since any of them may lead a partition.
"""

from collections.abc import Callable, Sequence

from broker.fleet.catalog.rows import NodeRow
from broker.server.features import TRANSACTION_VERSION, Limits

ALL_JOIN, NOBODY_JOINS = 2, 1
"""Levels of `transaction.version`."""


class FleetLevels:
    """The `FeatureLevels` of a node. Follows the rows: nothing is settled by hand."""

    def __init__(self, nodes: Callable[[], Sequence[NodeRow]], *, joins: bool) -> None:
        """`nodes` as at the last look; `joins`: whether this one can."""
        self._nodes = nodes
        self.joins = joins

    @property
    def supported(self) -> Limits:
        """As the port has it."""
        return ((TRANSACTION_VERSION, ALL_JOIN if self.joins else NOBODY_JOINS),)

    @property
    def finalized(self) -> Limits:
        """As the port has it."""
        return ((TRANSACTION_VERSION, ALL_JOIN if self._all_join else NOBODY_JOINS),)

    @property
    def epoch(self) -> int:
        """As the port has it, and the same on nodes that have seen the same rows.

        A level falls with a registration, which makes an incarnation; it rises also when a node
        goes.
        """
        return 2 * sum(each.incarnation.number for each in self._nodes()) + self._all_join

    @property
    def _all_join(self) -> bool:
        living = [each for each in self._nodes() if not each.is_fenced]
        return self.joins and bool(living) and all(each.joins for each in living)
