"""The image of a node that has no topics, settings or leaders to know."""

from collections.abc import Sequence

from broker.fleet.catalog.rows import NodeRow, PartitionRow, ShardRow


class LogsAlone:
    """The `FleetImage` of a node that has nothing but logs."""

    async def follow(self, metadata_version: int) -> None:
        """There is nothing to be had."""

    @property
    def spread(self) -> Sequence[Sequence[int]]:
        """There are no topics."""
        return ()

    def knows(self, _: PartitionRow) -> bool:
        """Every partition."""
        return True

    def seen(self, nodes: Sequence[NodeRow], shards: Sequence[ShardRow]) -> None:
        """Nobody asks for leaders."""
