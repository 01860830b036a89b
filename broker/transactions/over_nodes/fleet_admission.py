"""The leader's side: the rows say whether a partition takes part in a transaction (KIP-890), or its
coordinator, which is asked to have it join.

A transaction may end while one is asked; then it is asked once more, so that nothing is written
behind the marker. Used from the event loop only.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from weakref import WeakValueDictionary

from broker.fleet.catalog.rows import PartitionKey
from broker.fleet.pacing import until_answered
from broker.transactions.first_batches import FirstBatches
from broker.transactions.over_nodes.standing import TransactionReach
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.errors import ErrorCode, KafkaError

ASKED_SECONDS = 10.0
TRIES = 5
"""Questions about one producer, if a transaction of it ends during each."""


Join = Callable[[ProducerClaim, Sequence[Place]], Awaitable[Mapping[Place, KafkaError]]]
"""Refusals of partitions; the others take part, by rows."""


class _Queue:
    """Requests of one producer, in their order."""

    def __init__(self) -> None:
        self.entering = 0
        self.turn = asyncio.Lock()


class _Question:
    """A question about a producer, on its way."""

    is_stale = False


class FleetAdmission:
    """The `Admission` of a node of a fleet."""

    def __init__(self, reach: TransactionReach) -> None:
        """Nobody asks."""
        self._ledger, _, self._names, self._clock, self._times = reach
        self._queues: WeakValueDictionary[str, _Queue] = WeakValueDictionary()
        self._questions: defaultdict[int, set[_Question]] = defaultdict(set)
        self.first_batches = FirstBatches()
        self.join: Join | None = None
        """Has partitions join at coordinators; None: nodes have no way to each other."""

    def waits(self, *, joins: bool) -> bool:  # noqa: ARG002 - the call of a port
        """As the port has it: always."""
        return True

    def queue(self, transactional_id: str) -> _Queue:
        """As the port has it."""
        found = self._queues.get(transactional_id)
        if found is None:
            found = self._queues[transactional_id] = _Queue()
        return found

    async def wait_for_turn(self, transactional_id: str) -> None:
        """As the port has it."""
        async with self.queue(transactional_id).turn:
            pass

    async def admit(
        self, claim: ProducerClaim, places: Sequence[Place], *, joins: bool
    ) -> Mapping[Place, KafkaError]:
        """As the port has it. Where coordinators have them join they have made the rows, too."""
        ask = self.join if joins and self.join is not None else self._refusals
        refused: dict[Place, KafkaError] = {}
        async with self.queue(claim.transactional_id).turn:
            for _ in range(TRIES):
                left = [each for each in places if each not in refused]
                with self._asking(claim.producer_id) as question:
                    refused |= await ask(claim, left)
                if not question.is_stale:
                    return refused
                ask = self._refusals  # those that have joined have rows, or it has ended
        text = f"Transactions of producer {claim.producer_id} end all the time"
        ending = dict.fromkeys(places, KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, text))
        return ending | refused

    def check(self, claim: ProducerClaim, place: Place) -> None:
        """As the port has it: the rows are not asked without waiting."""
        text = f"{place[0]}-{place[1]} cannot say whether {claim.transactional_id} has it"
        raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, text)

    def ends(self, producer_id: int) -> None:
        """A marker of this producer is about to be written here."""
        for each in self._questions.get(producer_id, ()):
            each.is_stale = True

    @contextmanager
    def _asking(self, producer_id: int) -> Iterator[_Question]:
        question = _Question()
        self._questions[producer_id].add(question)
        try:
            yield question
        finally:
            asked = self._questions[producer_id]
            asked.discard(question)
            if not asked:
                del self._questions[producer_id]

    async def _refusals(
        self, claim: ProducerClaim, places: Sequence[Place]
    ) -> dict[Place, KafkaError]:
        keys = {place: self._names.key(place) for place in places}
        asked = [key for key in keys.values() if key is not None]
        try:
            async with asyncio.timeout(ASKED_SECONDS):
                joined = await until_answered(
                    lambda: self._ledger.joined(claim.producer_id, asked), self._clock, self._times
                )
        except TimeoutError:
            text = f"The fleet's catalog did not answer in {ASKED_SECONDS:g} s"
            return dict.fromkeys(places, KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, text))
        found = ((place, _refusal(claim, place, key, joined)) for place, key in keys.items())
        return {place: error for place, error in found if error is not None}


def _refusal(
    claim: ProducerClaim,
    place: Place,
    key: PartitionKey | None,
    joined: Mapping[PartitionKey, int],
) -> KafkaError | None:
    epoch = None if key is None else joined.get(key)
    if epoch == claim.producer_epoch:
        return None
    name = f"{place[0]}-{place[1]}"
    if epoch is not None and epoch > claim.producer_epoch:
        text = f"{name} has epoch {epoch} of producer {claim.producer_id}"
        return KafkaError(ErrorCode.PRODUCER_FENCED, text)
    text = f"{name} is not in the transaction of {claim.transactional_id}"
    return KafkaError(ErrorCode.TRANSACTION_ABORTABLE, text)
