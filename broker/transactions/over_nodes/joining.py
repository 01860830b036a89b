"""Partitions that this node leads join transactions at their coordinators, wherever those are
(KIP-890, part 2). Asked again for a while: a coordinator moves, an earlier transaction ends.
Used from the event loop only.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from broker.fleet.pacing import FleetClock
from broker.fleet.peers.peers import PeerSilent, PeerUnreached
from broker.partitions.leadership import NOBODY
from broker.runtime.event_log import event
from broker.runtime.growing_wait import growing_wait
from broker.state.state_topic import StateTopic
from broker.transactions.over_nodes.join_asking import JoinAsking
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.errors import ErrorCode, KafkaError

PATIENCE_SECONDS = 4.0
"""Clients wait 30 s for an answer; a coordinator moves in less, or they send again."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.01, 0.5
AGAIN = frozenset((
    ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
))  # fmt: skip
"""Codes after which another try may succeed; the last one of a node that does not know it yet."""


class LocalCoordinator(Protocol):
    """The coordinator of this node."""

    @property
    def topic(self) -> StateTopic:
        """The topic in which coordinators remember, each in the partitions that it leads."""

    async def join_soon(self, claim: ProducerClaim, places: Sequence[Place]) -> None:
        """All of the partitions take part when it returns; else KafkaError, before long."""


class TransactionJoins:
    """Asks coordinators. A question may come twice: to join again is harmless, and one of a
    transaction that has ended is refused by its epoch.
    """

    def __init__(
        self,
        local: LocalCoordinator,
        ask: Callable[[int, Any], Awaitable[Any]],
        clock: FleetClock,
    ) -> None:
        """Nobody was asked. `ask` sends a request to a node, as `Peers` do."""
        self._local = local
        self._asking = JoinAsking(ask)
        self._clock = clock

    async def join(
        self, claim: ProducerClaim, places: Sequence[Place]
    ) -> Mapping[Place, KafkaError]:
        """Refusals; the other partitions take part."""
        end, failures = self._clock.monotonic() + PATIENCE_SECONDS, 0
        while True:
            refused = await self._once(claim, places)
            failures += 1
            pause = growing_wait(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, failures)
            is_final = not any(each.code in AGAIN for each in refused.values())
            if is_final or self._clock.monotonic() + pause > end:
                return {place: _for_leaders(claim, error) for place, error in refused.items()}
            await self._clock.sleep(pause)

    async def _once(
        self, claim: ProducerClaim, places: Sequence[Place]
    ) -> Mapping[Place, KafkaError]:
        try:
            coordinator = self._coordinator(claim.transactional_id)
            if coordinator is not None:
                return await self._asking.join(coordinator, claim, places)
            await self._local.join_soon(claim, places)
        except KafkaError as error:
            return dict.fromkeys(places, error)
        except (PeerUnreached, PeerSilent) as error:
            return dict.fromkeys(places, KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, str(error)))
        return {}

    def _coordinator(self, transactional_id: str) -> int | None:
        """The node; None for this one. COORDINATOR_NOT_AVAILABLE (15) while there is none."""
        topic = self._local.topic
        partitions = topic.partitions
        if not partitions:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elsewhere = partitions[topic.index_of(transactional_id)].leader_elsewhere
        if elsewhere is None:
            return None
        if elsewhere.node_id == NOBODY:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Nobody leads its partition")
        return elsewhere.node_id


def _for_leaders(claim: ProducerClaim, error: KafkaError) -> KafkaError:
    """As Kafka's `AddPartitionsToTxnManager`: rights of this node are no affair of clients."""
    match error.code:
        case ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            event(
                "transaction_not_joined", "error",
                transactional_id=claim.transactional_id, error=error,
            )  # fmt: skip
            return KafkaError(ErrorCode.INVALID_TXN_STATE, error.message)
        case ErrorCode.OPERATION_NOT_ATTEMPTED | ErrorCode.REQUEST_TIMED_OUT:
            return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, error.message)
        case _:
            return error
