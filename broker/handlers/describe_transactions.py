"""DescribeTransactions: what is known of transactional ids."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.transaction import Facts
from protocol.acls import AclOperation, ResourceType
from protocol.apis.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from protocol.errors import ErrorCode, KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    transactions: TransactionCoordinator
    probes: BrokerProbes
    answers: Answers


Context = RequestContext[Services]


def handle(
    request: DescribeTransactionsRequest, context: Context
) -> DescribeTransactionsResponse | Deferred[DescribeTransactionsResponse]:
    """The transactions, each once; TRANSACTIONAL_ID_NOT_FOUND (105) for an unknown id."""
    context.asks(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
    return context.services.answers.make(
        partial(_answers, request, context),
        lambda states: DescribeTransactionsResponse(transaction_states=states),
    )


def _answers(
    request: DescribeTransactionsRequest, context: Context, room: AnswerRoom
) -> Iterator[TransactionState]:
    for each in dict.fromkeys(request.transactional_ids):
        yield _describe(each, context, room)


def _describe(transactional_id: str, context: Context, room: AnswerRoom) -> TransactionState:
    try:
        context.require(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        facts = _facts(transactional_id, context)
        room.take(1 + len(facts.partitions))
    except KafkaError as error:
        context.count_error(error.code)
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=facts.state.value,
        transaction_timeout_ms=facts.timeout_ms,
        transaction_start_time_ms=facts.started_ms,
        producer_id=facts.producer_id,
        producer_epoch=facts.producer_epoch,
        topics=_topics(facts, context),
    )


def _facts(transactional_id: str, context: Context) -> Facts:
    transactions = context.services.transactions
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    transactions.check_loaded(transactional_id)
    owner = transactions.ids.get(transactional_id)
    if owner is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return owner.facts


def _topics(facts: Facts, context: Context) -> list[TopicData]:
    """Those that the client may describe."""
    topics: dict[str, TopicData] = {}
    for topic, index in sorted(facts.partitions):
        if not context.sees(AclOperation.DESCRIBE, ResourceType.TOPIC, topic):
            continue
        topics.setdefault(topic, TopicData(topic=topic)).partitions.append(index)
    return list(topics.values())
