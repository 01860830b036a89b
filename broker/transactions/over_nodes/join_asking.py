"""Asks other nodes to have partitions join transactions, by AddPartitionsToTxn: of each node one
request is under way, and what comes meanwhile goes together with the next one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.errors import ErrorCode, KafkaError

MOST_TRANSACTIONS = 100
"""In one request."""
_NOT_ALLOWED = (
    "node {} refuses this one the right ClusterAction: the user of horolog.fleet.client.config "
    "needs it, or has to be one of super.users"
)

Refusals = Mapping[Place, KafkaError]


class _Asked(NamedTuple):
    claim: ProducerClaim
    places: Sequence[Place]
    answer: "asyncio.Future[Refusals]"


class JoinAsking:
    """Requests on their way. Used from the event loop."""

    def __init__(self, ask: Callable[[int, Any], Awaitable[Any]]) -> None:
        """Nobody was asked."""
        self._ask = ask
        self._waiting: dict[int, list[_Asked]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def join(self, node_id: int, claim: ProducerClaim, places: Sequence[Place]) -> Refusals:
        """Refusals; the others take part. KafkaError, and what the node's client raises."""
        answer: asyncio.Future[Refusals] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(node_id, []).append(_Asked(claim, places, answer))
        if node_id not in self._tasks:
            self._tasks[node_id] = asyncio.ensure_future(self._send_all(node_id))
        return await answer

    async def _send_all(self, node_id: int) -> None:
        try:
            while waiting := self._waiting.get(node_id):
                now, self._waiting[node_id] = _of_one_request(waiting)
                await self._send(node_id, now)
        finally:
            del self._tasks[node_id]
            for each in self._waiting.pop(node_id, ()):
                each.answer.cancel()  # this task was cancelled: the node stops

    async def _send(self, node_id: int, asked: Sequence[_Asked]) -> None:
        try:
            response = await self._ask(node_id, _request(asked))
            results = _results(node_id, response)
        except Exception as error:  # noqa: BLE001 - whoever asked judges it
            for each in asked:
                if not each.answer.done():
                    each.answer.set_exception(error)
            return
        for each in asked:
            if not each.answer.done():
                codes = results.get(each.claim.transactional_id, {})
                each.answer.set_result(_refusals(node_id, each.places, codes))


def _of_one_request(waiting: Sequence[_Asked]) -> tuple[list[_Asked], list[_Asked]]:
    """The first ones, each of another transactional id, since an answer names no more than that;
    and the others.
    """
    found: dict[str, _Asked] = {}
    later = list[_Asked]()
    for each in waiting:
        if len(found) == MOST_TRANSACTIONS or each.claim.transactional_id in found:
            later.append(each)
        else:
            found[each.claim.transactional_id] = each
    return list(found.values()), later


def _request(asked: Sequence[_Asked]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(transactions=[_transaction(each) for each in asked])


def _transaction(asked: _Asked) -> AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for topic, index in asked.places:
        topics.setdefault(topic, []).append(index)
    return AddPartitionsToTxnTransaction(
        transactional_id=asked.claim.transactional_id,
        producer_id=asked.claim.producer_id,
        producer_epoch=asked.claim.producer_epoch,
        verify_only=False,
        topics=[
            AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in topics.items()
        ],
    )


def _results(node_id: int, response: Any) -> Mapping[str, Mapping[Place, int]]:
    if response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, _NOT_ALLOWED.format(node_id))
    if response.error_code:
        raise KafkaError(_code(response.error_code), f"node {node_id} refuses it")
    return {each.transactional_id: _codes(each) for each in response.results_by_transaction}


def _codes(result: AddPartitionsToTxnResult) -> Mapping[Place, int]:
    return {
        (topic.name, each.partition_index): each.partition_error_code
        for topic in result.topic_results
        for each in topic.results_by_partition
    }


def _refusals(node_id: int, places: Sequence[Place], codes: Mapping[Place, int]) -> Refusals:
    """Places that the node says nothing of have not joined."""
    found = ((each, codes.get(each, ErrorCode.UNKNOWN_SERVER_ERROR)) for each in places)
    return {
        place: KafkaError(_code(code), f"the coordinator, node {node_id}, says so")
        for place, code in found
        if code
    }


def _code(number: int) -> ErrorCode:
    """A node of a later version may have other codes."""
    return ErrorCode(number) if number in set(ErrorCode) else ErrorCode.UNKNOWN_SERVER_ERROR
