"""Partitions that take part in transactions, wherever they are led."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.errors import KafkaError


class Ending(NamedTuple):
    """A transaction that ends: whose, how, and who says so."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int


class Participants(Protocol):
    """The port through which a coordinator reaches them."""

    async def join(self, claim: ProducerClaim, places: Iterable[Place]) -> None:
        """They take records of the transaction from now on. KafkaError; a second time is harmless.

        That they do is durable already.
        """

    async def close(self, transactional_id: str, ending: Ending) -> None:
        """They take no record of the transaction any more when it returns. KafkaError."""

    async def end(
        self, transactional_id: str, ending: Ending, places: Iterable[Place]
    ) -> Mapping[Place, KafkaError]:
        """Marks all partitions; the answer are those where that failed."""
