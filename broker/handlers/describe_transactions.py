"""DescribeTransactions: what is known of transactional ids."""

from broker.context import RequestContext
from broker.transactions.transaction import Facts
from protocol.apis.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from protocol.errors import ErrorCode, KafkaError


def handle(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    """TRANSACTIONAL_ID_NOT_FOUND (105) for one that nobody uses."""
    return DescribeTransactionsResponse(
        transaction_states=[_describe(each, context) for each in request.transactional_ids]
    )


def _describe(transactional_id: str, context: RequestContext) -> TransactionState:
    try:
        facts = _facts(transactional_id, context)
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
        topics=_topics(facts),
    )


def _facts(transactional_id: str, context: RequestContext) -> Facts:
    transactions = context.broker.transactions
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    transactions.check_loaded(transactional_id)
    owner = transactions.ids.get(transactional_id)
    if owner is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return owner.facts


def _topics(facts: Facts) -> list[TopicData]:
    topics: dict[str, TopicData] = {}
    for topic, index in sorted(facts.partitions):
        topics.setdefault(topic, TopicData(topic=topic)).partitions.append(index)
    return list(topics.values())
