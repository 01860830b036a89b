"""The coordinator of transactions of a broker, alone or in a fleet."""

from typing import TYPE_CHECKING, NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.guards.clock_guard import ClockWatch
from broker.state.services import StateServices
from broker.transactions.admission import Admission, LocalAdmission
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.markers import LocalParticipants, Markers
from broker.transactions.producer_ids import ProducerIds

if TYPE_CHECKING:
    from broker.daemon.fleet import Fleet


class TransactionParts(NamedTuple):
    """Services that transactions are made of."""

    state: StateServices
    clock_watch: ClockWatch
    producer_ids: ProducerIds
    groups: GroupCoordinator
    markers: Markers


def made_transactions(
    parts: TransactionParts, fleet: "Fleet | None"
) -> tuple[TransactionCoordinator, Admission]:
    """The coordinator, and who says which partitions take part."""
    state, clock_watch, producer_ids, groups, markers = parts
    if fleet is None:
        alone = LocalParticipants(markers)
        transactions = TransactionCoordinator(state, clock_watch, producer_ids, alone)
        return transactions, LocalAdmission(transactions)
    shared = fleet.transactions
    transactions = TransactionCoordinator(state, clock_watch, producer_ids, shared.participants)
    fleet.coordinates(groups, transactions, markers)
    return transactions, shared.admission
