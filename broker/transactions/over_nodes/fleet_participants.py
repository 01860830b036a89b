"""The coordinator's side: partitions join and end by rows, which their leaders read.

An order goes out in the same words until it is answered. The end of a transaction is over when no
partition has a row any more: each leader removes that of its own when the marker counts.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import count

from broker.fleet.catalog.ledger import OrderAnswer, TransactionOrder
from broker.fleet.catalog.rows import OwnedShard
from broker.fleet.pacing import until_answered
from broker.state.state_topic import StateTopic
from broker.transactions.over_nodes.standing import TransactionReach
from broker.transactions.participants import Ending
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.errors import ErrorCode, KafkaError

ORDER_SECONDS = 10.0
MARKED_SECONDS = 15.0
"""Longest wait for markers; a take-over takes a lease and a load."""


class MarkerWaits:
    """Producers whose markers a coordinator of this node waits for."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._waits: dict[int, asyncio.Future[None]] = {}
        self.on_wait: Callable[[], None] = lambda: None
        """Called when a wait begins: it may be over by now."""

    @property
    def producer_ids(self) -> list[int]:
        """All of them."""
        return list(self._waits)

    async def wait(self, producer_id: int, seconds: float) -> bool:
        """True when all its markers count."""
        self._waits[producer_id] = asked = asyncio.get_running_loop().create_future()
        self.on_wait()
        try:
            await asyncio.wait_for(asked, seconds)
        except TimeoutError:
            return False
        finally:
            if self._waits.get(producer_id) is asked:
                del self._waits[producer_id]
        return True

    def over(self, producer_id: int) -> None:
        """All its markers count."""
        asked = self._waits.get(producer_id)
        if asked is not None and not asked.done():
            asked.set_result(None)


class FleetParticipants:
    """The `Participants` of a node of a fleet."""

    def __init__(self, reach: TransactionReach, waits: MarkerWaits) -> None:
        """Nothing is ordered."""
        self._ledger, self._standing, self._names, self._clock, self._times = reach
        self._waits = waits
        self._numbers = count(1)
        self._closed: dict[int, tuple[Ending, OwnedShard]] = {}
        """Ends that are ordered, and by which shard, until their markers are waited for."""
        self.topic: StateTopic | None = None
        """Topic of the coordinator that orders, as soon as there is one."""

    async def join(self, claim: ProducerClaim, places: Iterable[Place]) -> None:
        """As the port has it. UNKNOWN_TOPIC_OR_PARTITION (3) for one that is not there, or is
        another one by now: its leader may have heard earlier that it was made again.
        """
        wanted = [self._names.key(each) for each in places]
        keys = [key for key in wanted if key is not None]
        if len(keys) < len(wanted):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        producer = claim.producer_id, claim.producer_epoch
        order = self._order(claim.transactional_id, producer, None)
        await self._ordered(order._replace(partitions=keys))

    async def close(self, transactional_id: str, ending: Ending) -> None:
        """As the port has it: all that joined are ended."""
        producer = ending.producer_id, ending.producer_epoch
        order = self._order(transactional_id, producer, ending.commit)
        await self._ordered(order)
        self._closed[ending.producer_id] = ending, order.shard

    async def end(
        self, transactional_id: str, ending: Ending, places: Iterable[Place]
    ) -> Mapping[Place, KafkaError]:
        """As the port has it: all that joined are ended, whatever `places` are."""
        closed = self._closed.pop(ending.producer_id, None)
        try:
            if closed is None or closed != (ending, self._shard_of(transactional_id)):
                await self.close(transactional_id, ending)
                del self._closed[ending.producer_id]
            await self._marked(ending.producer_id)
        except KafkaError as error:
            return dict.fromkeys(places, error)
        return {}

    def _order(
        self, transactional_id: str, producer: tuple[int, int], commits: bool | None
    ) -> TransactionOrder:
        me, shard = self._standing.me, self._shard_of(transactional_id)
        if me is None or shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return TransactionOrder(me, shard, next(self._numbers), *producer, commits)

    def _shard_of(self, transactional_id: str) -> OwnedShard | None:
        assert self.topic is not None
        partitions = self.topic.partitions
        if not partitions:
            return None
        return self._standing.shard_of(partitions[self.topic.index_of(transactional_id)])

    async def _ordered(self, order: TransactionOrder) -> None:
        try:
            async with asyncio.timeout(ORDER_SECONDS):
                answer = await until_answered(
                    lambda: self._ledger.order(order), self._clock, self._times
                )
        except TimeoutError:
            text = f"The fleet's catalog did not answer in {ORDER_SECONDS:g} s"
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text) from None
        if answer is OrderAnswer.NO_PARTITION:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if answer not in {OrderAnswer.OK, OrderAnswer.ALREADY}:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"The order was refused: {answer}")

    async def _marked(self, producer_id: int) -> None:
        if not await self._waits.wait(producer_id, MARKED_SECONDS):
            text = f"The markers of producer {producer_id} are not all written yet"
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, text)
