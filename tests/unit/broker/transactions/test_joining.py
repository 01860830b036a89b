"""Partitions join transactions by themselves: whoever coordinates is asked, on whatever node."""

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from broker.fleet.peers.peers import PeerSilent, PeerUnreached
from broker.partitions.leadership import NOBODY
from broker.transactions.over_nodes.joining import PATIENCE_SECONDS, TransactionJoins
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from protocol.errors import ErrorCode, KafkaError
from tests.support.fleet.loop_time import LoopTime
from tests.support.fleet.virtual_loop import run_virtual

CLAIM = ProducerClaim("id", 4000, 3)
PLACES: list[Place] = [("t", 0), ("t", 1), ("u", 0)]
OTHER = 2


class Coordinators:
    """This node's, and another node's, which say what they are given to say."""

    def __init__(self) -> None:
        self.leader: int | None = OTHER
        """Of all partitions of the state; None: this node."""
        self.here: list[ErrorCode] = []
        self.there: list[ErrorCode | Exception | dict[Place, ErrorCode]] = []
        """Answers to the next questions; then all join."""
        self.joined_here = 0
        self.asked: list[AddPartitionsToTxnRequest] = []
        self.answers_at: asyncio.Event | None = None
        self.joining = TransactionJoins(self, self.ask, LoopTime())

    @property
    def topic(self) -> Any:
        """As `LocalCoordinator` has it."""
        elsewhere = None if self.leader is None else SimpleNamespace(node_id=self.leader)
        partitions = [SimpleNamespace(leader_elsewhere=elsewhere)]
        return SimpleNamespace(partitions=partitions, index_of=lambda _: 0)

    async def join_soon(self, claim: ProducerClaim, places: Sequence[Place]) -> None:
        """As `LocalCoordinator` has it."""
        self.joined_here += 1
        if self.here:
            raise KafkaError(self.here.pop(0))

    async def ask(self, node_id: int, request: AddPartitionsToTxnRequest) -> Any:
        assert node_id == OTHER
        self.asked.append(request)
        if self.answers_at is not None:
            await self.answers_at.wait()
        said = self.there.pop(0) if self.there else ErrorCode.NONE
        if isinstance(said, Exception):
            raise said
        if said == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return AddPartitionsToTxnResponse(error_code=said)
        return _answer(request, said)

    async def join(self, claim: ProducerClaim = CLAIM) -> dict[Place, ErrorCode]:
        found = await self.joining.join(claim, PLACES)
        return {place: error.code for place, error in found.items()}


def _answer(request: AddPartitionsToTxnRequest, said: Any) -> AddPartitionsToTxnResponse:
    def code(place: Place) -> int:
        return int(said.get(place, ErrorCode.NONE) if isinstance(said, dict) else said)

    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=index,
                                partition_error_code=code((topic.name, index)),
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in request.transactions
        ]
    )


def tried(test: Callable[[Coordinators], Any]) -> Callable[[], None]:
    """On a loop whose time costs nothing."""

    def run() -> None:
        async def main() -> None:
            await test(Coordinators())

        run_virtual(main())

    run.__name__ = test.__name__
    return run


@tried
async def test_one_that_is_coordinated_here_asks_nobody(them: Coordinators) -> None:
    them.leader = None
    assert await them.join() == {}
    assert (them.joined_here, them.asked) == (1, [])


@tried
async def test_the_other_node_hears_of_all_partitions_at_once(them: Coordinators) -> None:
    assert await them.join() == {}
    [request] = them.asked
    [asked] = request.transactions
    assert asked.transactional_id == "id"
    assert (asked.producer_id, asked.producer_epoch, asked.verify_only) == (4000, 3, False)
    assert {each.name: each.partitions for each in asked.topics} == {"t": [0, 1], "u": [0]}


@tried
async def test_what_comes_while_an_answer_is_waited_for_goes_together(them: Coordinators) -> None:
    them.answers_at = asyncio.Event()
    claims = [CLAIM._replace(transactional_id=f"id-{each}") for each in range(250)]
    joins = [asyncio.ensure_future(them.join(each)) for each in (*claims, claims[0])]
    await asyncio.sleep(1)
    assert len(them.asked) == 1
    them.answers_at.set()
    assert await asyncio.gather(*joins) == [{}] * 251
    assert [len(each.transactions) for each in them.asked] == [100, 100, 51]
    for request in them.asked:
        names = [each.transactional_id for each in request.transactions]
        assert len(set(names)) == len(names), "an answer names a transaction once"


@tried
async def test_a_coordinator_that_moves_is_asked_where_it_is_then(them: Coordinators) -> None:
    them.there = [ErrorCode.NOT_COORDINATOR, PeerUnreached("gone"), PeerSilent("perhaps")]
    joined = asyncio.ensure_future(them.join())
    await asyncio.sleep(0.035)
    them.leader = NOBODY
    await asyncio.sleep(1)
    assert not joined.done()
    them.leader, them.here = None, [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert await joined == {}
    assert them.joined_here == 2


@tried
async def test_the_end_of_the_transaction_before_is_waited_for(them: Coordinators) -> None:
    them.there = [ErrorCode.CONCURRENT_TRANSACTIONS] * 3
    assert await them.join() == {}
    assert asyncio.get_running_loop().time() < 0.2


@tried
async def test_a_topic_that_the_coordinator_does_not_know_yet(them: Coordinators) -> None:
    attempted = dict.fromkeys(PLACES, ErrorCode.OPERATION_NOT_ATTEMPTED)
    them.there = [attempted | {("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}]
    assert await them.join() == {}
    assert len(them.asked) == 2


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.POLICY_VIOLATION,
    ],
)
def test_what_is_refused_for_good_is_asked_once(code: ErrorCode) -> None:
    @tried
    async def once(them: Coordinators) -> None:
        them.there = [code]
        assert await them.join() == dict.fromkeys(PLACES, code)
        assert len(them.asked) == 1

    once()


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.NOT_ENOUGH_REPLICAS),
        (PeerSilent("node 2"), ErrorCode.NOT_ENOUGH_REPLICAS),
        (PeerUnreached("node 2"), ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_patience_has_an_end(said: ErrorCode | Exception, answered: ErrorCode) -> None:
    @tried
    async def until(them: Coordinators) -> None:
        them.there = [said] * 1000
        assert await them.join() == dict.fromkeys(PLACES, answered)
        assert asyncio.get_running_loop().time() <= PATIENCE_SECONDS

    until()


@tried
async def test_rights_of_this_node_are_no_affair_of_clients(them: Coordinators) -> None:
    """Kafka's code; the log says what is missing."""
    them.there = [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert await them.join() == dict.fromkeys(PLACES, ErrorCode.INVALID_TXN_STATE)
