"""Damage on the way to a consumer: bytes are checked before their first fetch, and never served
when they are not what was written.

The check runs on a lane, since it reads; its fetch is read again afterwards. Refused reads are
counted, logged once a minute for each partition, and kept with the findings of the scrubber.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from broker.runtime.event_log import event
from broker.runtime.lanes import DiskLane
from broker.runtime.probes import BrokerProbes
from storage.errors import StorageError
from storage.files.file_slice import Unverified
from storage.log.log import Log

if TYPE_CHECKING:
    from broker.partitions.partition import Partition

TELL_SECONDS = 60.0
MAX_REPORTED = 1000
TASK = "check before serving"


class DamageLedger(Protocol):
    """Keeps what was found damaged."""

    def met(self, log: Log, offset: int, what: str) -> None:
        """Bytes of a log, from `offset` on, are not what was written."""


class DamageMet:
    """Damaged reads that consumers were refused. Used from the event loop."""

    def __init__(self, lane: DiskLane, probes: BrokerProbes, ledger: DamageLedger) -> None:
        """Nothing was found yet. Bytes are checked on `lane`."""
        self._lane = lane
        self._probes = probes
        self._ledger = ledger
        self._reported_at: dict[tuple[str, int], float] = {}

    def settle(
        self,
        ranges: Sequence[Unverified],
        done: Callable[[Collection[Unverified]], None],
    ) -> None:
        """Checks each on the lane; `done(those that could not be read)` is called on the loop."""
        checks = [self._lane.run(each.settle) for each in ranges]

        def settled(_: object) -> None:
            pairs = zip(ranges, checks, strict=True)
            done([each for each, check in pairs if self._has_failed(check)])

        asyncio.gather(*checks, return_exceptions=True).add_done_callback(settled)

    def _has_failed(self, check: asyncio.Future[None]) -> bool:
        error = None if check.cancelled() else check.exception()
        if error is not None and not isinstance(error, StorageError):
            self._probes.task_failed(TASK)
            event("task_failed", "error", task=TASK, error=repr(error))
        return check.cancelled() or error is not None

    def met(self, partition: "Partition", offset: int, what: str) -> None:
        """A fetch from `offset` on was refused because of `what`."""
        self._probes.damage_met(partition.topic)
        self._ledger.met(partition.log, offset, what)
        now = self._probes.monotonic()
        key = partition.topic, partition.index
        if now - self._reported_at.get(key, -TELL_SECONDS) < TELL_SECONDS:
            return
        if len(self._reported_at) >= MAX_REPORTED:
            self._reported_at.clear()
        self._reported_at[key] = now
        event("damage_not_served", "error", log=repr(partition), offset=offset, detail=what)
