"""The part of a broker in the transactions of its fleet."""

import asyncio

from broker.daemon.led_coordinator import ended
from broker.fleet.catalog.postgres_ledger import PostgresLedger
from broker.fleet.pacing import FleetClock
from broker.fleet.peers.peers import Peers
from broker.fleet.times import FleetTimes
from broker.groups.coordinator import GroupCoordinator
from broker.topics.names import CONSUMER_OFFSETS
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.markers import Markers
from broker.transactions.over_nodes.due_markers import DueMarkers
from broker.transactions.over_nodes.fleet_admission import FleetAdmission
from broker.transactions.over_nodes.fleet_participants import FleetParticipants, MarkerWaits
from broker.transactions.over_nodes.joining import TransactionJoins
from broker.transactions.over_nodes.standing import (
    FleetStanding,
    PartitionNames,
    TransactionReach,
)
from broker.transactions.transaction import Place


class FleetTransactions:
    """Orders of its coordinators, markers of its partitions. Used from the event loop."""

    def __init__(
        self,
        ledger: PostgresLedger,
        topics: TopicCatalog,
        standing: FleetStanding,
        pace: tuple[FleetClock, FleetTimes],
    ) -> None:
        """Nothing is connected."""
        self._ledger = ledger
        self._reach = TransactionReach(ledger, standing, PartitionNames(topics), *pace)
        self._waits = MarkerWaits()
        self._due: DueMarkers | None = None
        self._task: asyncio.Task[None] | None = None
        self.participants = FleetParticipants(self._reach, self._waits)
        self.admission = FleetAdmission(self._reach)

    def joins(self, transactions: TransactionCoordinator, peers: Peers) -> None:
        """Partitions join by themselves, at this coordinator or at those of other nodes."""
        self.admission.join = TransactionJoins(transactions, peers.ask, self._reach.clock).join

    def marks(self, markers: Markers, groups: GroupCoordinator) -> None:
        """Markers are written by these, of offsets when their groups are in memory."""

        def may_end(place: Place) -> bool:
            return place[0] != CONSUMER_OFFSETS or groups.loading.has_read(place[1])

        self._due = DueMarkers(self._reach, markers, self.admission, self._waits, may_end)

    def wake(self) -> None:
        """A partition is ready for markers from now on, perhaps."""
        if self._due is not None:
            self._due.wake()

    def begin(self) -> None:
        """Markers are written from now on."""
        assert self._due is not None
        self._task = asyncio.create_task(self._due.run())
        self._task.add_done_callback(ended)

    async def end(self) -> None:
        """No marker is written any more: the next owner of each partition does it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._ledger.close()
