"""Admission of a transaction's records to a partition that has none of it yet."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from broker.transactions.first_batches import FirstBatches
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import VERSION_2, Place
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.transactions.coordinator import TransactionCoordinator


class Queue(Protocol):
    """Requests of one producer, which keep their order."""

    entering: int
    """Requests that wait for partitions to join; others of its producer wait behind them."""


class Admission(Protocol):
    """The port through which the leader of a partition asks."""

    @property
    def first_batches(self) -> FirstBatches:
        """Those that were refused after a wait."""

    def waits(self, *, joins: bool) -> bool:
        """True when it takes time, and `admit` is asked; else `check`. `joins`: partitions of such
        a request join by themselves (KIP-890).
        """

    def queue(self, transactional_id: str) -> Queue | None:
        """The requests of a producer; None for one that nobody knows."""

    async def wait_for_turn(self, transactional_id: str) -> None:
        """Until those that were there before are admitted, or refused."""

    async def admit(
        self, claim: ProducerClaim, places: Sequence[Place], *, joins: bool
    ) -> Mapping[Place, KafkaError]:
        """Refusals; the others may be written to, in this turn of the loop. `joins` as above."""

    def check(self, claim: ProducerClaim, place: Place) -> None:
        """KafkaError unless the partition takes part already."""


class LocalAdmission:
    """The coordinator is this node's."""

    def __init__(self, transactions: "TransactionCoordinator") -> None:
        """Nobody asks."""
        self._transactions = transactions
        self.first_batches = FirstBatches()

    def waits(self, *, joins: bool) -> bool:
        """As the port has it: a partition that joins waits for the disk."""
        return joins

    def queue(self, transactional_id: str) -> Queue | None:
        """As the port has it."""
        return self._transactions.ids.get(transactional_id)

    async def wait_for_turn(self, transactional_id: str) -> None:
        """As the port has it."""
        owner = self._transactions.ids.get(transactional_id)
        if owner is not None:
            async with self._transactions.steps.turn(owner):
                pass

    async def admit(
        self,
        claim: ProducerClaim,
        places: Sequence[Place],
        *,
        joins: bool,  # noqa: ARG002 - the call of a port; else `check` is asked
    ) -> Mapping[Place, KafkaError]:
        """As the port has it: all of them join, or none does."""
        try:
            await self._transactions.join(claim, places, VERSION_2)
        except KafkaError as error:
            return dict.fromkeys(places, error)
        return {}

    def check(self, claim: ProducerClaim, place: Place) -> None:
        """As the port has it."""
        self._transactions.check_joined(claim, place)
