"""The services that transactions are coordinated with."""

from typing import Protocol

from broker.groups.coordinator import GroupCoordinator
from broker.guards.clock_guard import ClockWatch
from broker.partitions.fetch_waiters import FetchWaiters
from broker.state.services import StateServices
from broker.transactions.producer_ids import ProducerIds


class TransactionServices(StateServices, Protocol):
    """Used on the event loop."""

    clock_watch: ClockWatch
    groups: GroupCoordinator
    producer_ids: ProducerIds
    waiters: FetchWaiters
