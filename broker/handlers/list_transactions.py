"""ListTransactions: the transactional ids there are, by state, producer and how long they are open.

While some are still being read after the start the answer says so, and lists the others.
"""

from broker.context import RequestContext
from broker.transactions.transaction import State
from broker.transactions.transactional import Transactional
from protocol.apis.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from protocol.errors import ErrorCode

KNOWN_STATES = {state.value for state in State}


def handle(request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
    """Those that fit all filters; an empty one fits everything."""
    transactions = context.broker.transactions
    code = ErrorCode.NONE
    if transactions.loading.is_under_way:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        context.count_error(code)
    now_ms = context.broker.clock.now_ms()
    unknown = [name for name in request.state_filters if name not in KNOWN_STATES]
    found = [
        TransactionState(
            transactional_id=owner.transactional_id,
            producer_id=owner.facts.producer_id,
            transaction_state=owner.facts.state.value,
        )
        for owner in transactions.ids.values()
        if _fits(owner, request, now_ms)
    ]
    return ListTransactionsResponse(
        error_code=code, unknown_state_filters=unknown, transaction_states=found
    )


def _fits(owner: Transactional, request: ListTransactionsRequest, now_ms: int) -> bool:
    facts = owner.facts
    if request.state_filters and facts.state.value not in request.state_filters:
        return False
    if request.producer_id_filters and facts.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter < 0:
        return True
    return facts.started_ms >= 0 and now_ms - facts.started_ms > request.duration_filter
