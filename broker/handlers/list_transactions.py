"""ListTransactions: the transactional ids there are, by state, producer and how long they are open.

While some are still being read after the start the answer says so, and lists the others.
"""

from collections.abc import Collection, Iterator
from functools import partial
from typing import NamedTuple

from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.transaction import Facts, TransactionState
from protocol.acls import AclOperation, ResourceType
from protocol.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from protocol.apis.list_transactions import TransactionState as ListedTransaction
from protocol.errors import ErrorCode
from storage.env import Clock

KNOWN_STATES = {state.value for state in TransactionState}


class Services(NamedTuple):
    """The services that the answer is made with."""

    transactions: TransactionCoordinator
    probes: BrokerProbes
    clock: Clock
    answers: Answers


Context = RequestContext[Services]


def handle(
    request: ListTransactionsRequest, context: Context
) -> ListTransactionsResponse | Deferred[ListTransactionsResponse]:
    """Those that fit all filters; an empty one fits everything."""
    context.asks(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
    code = ErrorCode.NONE
    if context.services.transactions.loading.is_under_way:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        context.count_error(code)
    states: dict[str, None] = {}
    return context.services.answers.make(
        partial(_listed, request, states, context),
        lambda found: ListTransactionsResponse(
            error_code=code,
            unknown_state_filters=[name for name in states if name not in KNOWN_STATES],
            transaction_states=found,
        ),
    )


def _listed(
    request: ListTransactionsRequest, states: dict[str, None], context: Context, _: AnswerRoom
) -> Iterator[ListedTransaction | None]:
    """Those there are now that fit; the filter of states goes into `states`, each once."""
    owners = tuple(context.services.transactions.ids.values())
    for name in request.state_filters:
        states[name] = None
        yield None
    producers = frozenset(request.producer_id_filters)
    now_ms = context.services.clock.now_ms()
    for owner in owners:
        facts = owner.facts
        if (
            _is_named(facts, states, producers)
            and _is_open_for(facts, request.duration_filter, now_ms)
            and _is_shown(owner.transactional_id, context)
        ):
            yield ListedTransaction(
                transactional_id=owner.transactional_id,
                producer_id=facts.producer_id,
                transaction_state=facts.state.value,
            )
        else:
            yield None


def _is_shown(transactional_id: str, context: Context) -> bool:
    return context.sees(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)


def _is_named(facts: Facts, states: Collection[str], producers: frozenset[int]) -> bool:
    is_wanted = not states or facts.state.value in states
    return is_wanted and (not producers or facts.producer_id in producers)


def _is_open_for(facts: Facts, duration_ms: int, now_ms: int) -> bool:
    return duration_ms < 0 or (facts.started_ms >= 0 and now_ms - facts.started_ms > duration_ms)
