"""Markers that partitions of this node need, and those that its coordinators wait for.

A round has all that the rows have: markers are written, their rows go when these count, and who
waits for the last one of a transaction goes on. The rows are looked at when a notification says so,
and now and then in any case.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence

from broker.fleet.catalog.ledger import EndedPartition
from broker.fleet.catalog.port import CatalogError
from broker.runtime.callbacks import failed
from broker.runtime.event_log import event
from broker.transactions.markers import Markers
from broker.transactions.over_nodes.fleet_admission import FleetAdmission
from broker.transactions.over_nodes.fleet_participants import MarkerWaits
from broker.transactions.over_nodes.standing import TransactionReach
from broker.transactions.participants import Ending
from broker.transactions.steps import ENDED_BY_OTHERS
from broker.transactions.transaction import Place

AT_MOST = 5000
"""Markers in one round."""
FORGET_SECONDS = 3600.0

MayEnd = Callable[[Place], bool]
"""False while a partition is not ready for markers: a coordinator has not read it yet."""


class DueMarkers:
    """Used from the event loop only."""

    def __init__(
        self,
        reach: TransactionReach,
        markers: Markers,
        admission: FleetAdmission,
        waits: MarkerWaits,
        may_end: MayEnd,
    ) -> None:
        """Nothing is looked at until `run`."""
        self._ledger, self._standing, self._names, self._clock, self._times = reach
        self._markers = markers
        self._admission = admission
        self._waits = waits
        self._may_end = may_end
        self._woken = asyncio.Event()
        self._written: set[EndedPartition] = set()
        """Those that count, whose rows are there still: an answer was lost."""
        waits.on_wait = self.wake

    def wake(self) -> None:
        """Something may have changed: a round begins soon."""
        self._woken.set()

    async def run(self) -> None:
        """Rounds, until it is cancelled."""
        await asyncio.gather(self._listen(), self._rounds(), self._forget())

    async def _listen(self) -> None:
        while True:
            try:
                await self._ledger.changed(self._times.watch)
            except CatalogError:
                await self._clock.sleep(self._times.watch)
            except Exception as fault:  # noqa: BLE001 - without it rounds would wait for nobody
                failed("fleet_markers", fault)
                await self._clock.sleep(self._times.watch)
            self.wake()

    async def _rounds(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                await self._round()
            except CatalogError as error:
                event("fleet_round_failed", "warning", error=f"{type(error).__name__}: {error}")
                await self._clock.sleep(self._times.retry)
            except Exception as fault:  # noqa: BLE001 - the next round has the others
                failed("fleet_markers", fault)
                await self._clock.sleep(self._times.retry_most)

    async def _forget(self) -> None:
        while True:
            await self._clock.sleep(FORGET_SECONDS)
            try:
                await self._ledger.forget()
            except CatalogError as error:
                event("fleet_round_failed", "warning", error=f"{type(error).__name__}: {error}")
            except Exception as fault:  # noqa: BLE001 - the next hour has what is left
                failed("fleet_markers", fault)

    async def _round(self) -> None:
        me = self._standing.me
        if me is not None:
            rows = await self._ledger.ended(me, AT_MOST)
            if len(rows) == AT_MOST:
                self.wake()
            self._written &= set(rows)
            await self._write([each for each in rows if each not in self._written])
            if self._written:
                await self._ledger.marked(list(self._written))
                self._written.clear()
        waiting = self._waits.producer_ids
        unmarked = await self._ledger.unmarked(waiting) if waiting else frozenset[int]()
        for each in waiting:
            if each not in unmarked:
                self._waits.over(each)

    async def _write(self, rows: Sequence[EndedPartition]) -> None:
        by_ending: defaultdict[Ending, dict[Place, EndedPartition]] = defaultdict(dict)
        for row in rows:
            place = self._place(row)
            if place is not None:
                self._admission.ends(row.producer_id)
                by_ending[_ending(row)][place] = row
        await asyncio.gather(*(self._end(*each) for each in by_ending.items()))

    async def _end(self, ending: Ending, rows: dict[Place, EndedPartition]) -> None:
        errors = await self._markers.write(ending, rows)
        for place, row in rows.items():
            if place not in errors or errors[place].code in ENDED_BY_OTHERS:
                self._written.add(row)

    def _place(self, row: EndedPartition) -> Place | None:
        """None while it is not led here, or not ready: another round has it."""
        partition = self._names.partition(row.partition)
        if partition is None or self._standing.shard_of(partition) is None:
            return None
        place = partition.topic, partition.index
        return place if self._may_end(place) else None


def _ending(row: EndedPartition) -> Ending:
    return Ending(row.producer_id, row.producer_epoch, row.commits, row.coordinator_epoch)
