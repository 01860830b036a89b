"""A coordinator in a fleet: it has what the partitions that are led here remember."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from broker.fleet.image import BrokerImage
from broker.fleet.life import PASSING
from broker.partitions.partition import Partition
from broker.runtime.callbacks import failed

PAUSE_SECONDS = 1.0


class PartitionLoading(Protocol):
    """Partitions that were read, or are being read."""

    def gain(self, partition: Partition) -> None:
        """It will be read."""


class Coordinator(Protocol):
    """Groups, or transactional ids."""

    @property
    def loading(self) -> PartitionLoading:
        """The partitions that are led here."""

    async def lead(self, partition: Partition) -> None:
        """A partition that was gained is read, and then served."""

    def lead_no_more(self, partition: Partition) -> None:
        """Another node has it."""


class LedCoordinator:
    """The `Coordinating` of a coordinator. Used from the event loop."""

    def __init__(
        self, coordinator: Coordinator, image: BrokerImage, on_led: Callable[[], None]
    ) -> None:
        """`on_led` hears of each partition that is served from now on."""
        self._coordinator = coordinator
        self._image = image
        self._on_led = on_led
        self._tasks: set[asyncio.Task[None]] = set()

    def gained(self, partition: Partition) -> None:
        """As the port has it."""
        self._coordinator.loading.gain(partition)
        task = asyncio.ensure_future(self._gain(partition))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(ended)

    def lost(self, partition: Partition) -> None:
        """As the port has it."""
        self._coordinator.lead_no_more(partition)

    async def _gain(self, partition: Partition) -> None:
        """All topics that it remembers are known first: what it has of others would be dropped."""
        while partition.leader_elsewhere is None:
            try:
                await self._image.refresh()
            except PASSING:
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                break
        await self._coordinator.lead(partition)
        self._on_led()


def ended(task: asyncio.Task[None]) -> None:
    """Names the error that a task of a fleet has ended with."""
    if not task.cancelled() and (error := task.exception()) is not None:
        failed("fleet", error)
