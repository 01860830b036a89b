"""Damage on the way to a consumer: bytes are checked before their first fetch, and never served
when they are not what was written.

The check runs on a lane, since it reads; its fetch is read again afterwards. What is refused is
counted, told once a minute for each partition, and kept with what the scrubber found.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from broker.runtime.event_log import event
from broker.runtime.lanes import DiskLanes
from broker.runtime.probes import BrokerProbes
from storage.errors import StorageError
from storage.files.file_slice import Unverified
from storage.log.log import Log

if TYPE_CHECKING:
    from broker.partitions.partition import Partition

TELL_SECONDS = 60.0
MAX_TOLD = 1000
TASK = "check before serving"


class DamageLedger(Protocol):
    """Keeps what was found damaged."""

    def met(self, log: Log, offset: int, what: str) -> None:
        """Bytes of a log, from `offset` on, are not what was written."""


class DamageServices(Protocol):
    """The services that bytes are checked with before they are served."""

    lanes: DiskLanes
    log_dir: str
    probes: BrokerProbes

    @property
    def scrubber(self) -> DamageLedger:
        """Where damage is kept."""


def settle_doubts(
    broker: DamageServices,
    doubts: Sequence[Unverified],
    done: Callable[[Collection[Unverified]], None],
) -> None:
    """Checks each on a lane; `done(those that could not be read)` is called from the loop."""
    checks = [broker.lanes.run(broker.log_dir, doubt.settle) for doubt in doubts]

    def settled(_: object) -> None:
        pairs = zip(doubts, checks, strict=True)
        done([doubt for doubt, check in pairs if _has_failed(broker, check)])

    asyncio.gather(*checks, return_exceptions=True).add_done_callback(settled)


def _has_failed(broker: DamageServices, check: asyncio.Future[None]) -> bool:
    error = None if check.cancelled() else check.exception()
    if error is not None and not isinstance(error, StorageError):
        broker.probes.task_failed(TASK)
        event("task_failed", "error", task=TASK, error=repr(error))
    return check.cancelled() or error is not None


class DamageMet:
    """What consumers were refused. Used from the event loop."""

    def __init__(self, broker: DamageServices) -> None:
        """Nothing was met yet."""
        self._broker = broker
        self._told: dict[tuple[str, int], float] = {}

    def met(self, partition: "Partition", offset: int, what: str) -> None:
        """A fetch from `offset` on was refused because of `what`."""
        broker = self._broker
        broker.probes.damage_met(partition.topic)
        broker.scrubber.met(partition.log, offset, what)
        now = broker.probes.monotonic()
        key = partition.topic, partition.index
        if now - self._told.get(key, -TELL_SECONDS) < TELL_SECONDS:
            return
        if len(self._told) >= MAX_TOLD:
            self._told.clear()
        self._told[key] = now
        event("damage_not_served", "error", log=repr(partition), offset=offset, detail=what)
