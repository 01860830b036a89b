"""InitProducerId: an id and an epoch for an idempotent or a transactional producer.

An idempotent one gets a fresh id. With a transactional id it is the owner of that from now on: the
one before is fenced, and what it left open is aborted before the answer goes.
"""

from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.producer_ids import ProducerIds
from broker.transactions.requests import answered_code
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

NONE = -1
FENCED_SINCE_VERSION = 4


class Services(NamedTuple):
    """The services that the answer is made with."""

    transactions: TransactionCoordinator
    probes: BrokerProbes
    producer_ids: ProducerIds


Context = RequestContext[Services]


async def handle(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    """A fresh id with epoch 0, or the next epoch of a transactional id."""
    try:
        _check_rights(request, context)
        expected = _expected(request)
        if request.transactional_id is None:
            producer_id, epoch = await context.services.producer_ids.allocate(), 0
        else:
            producer_id, epoch = await context.services.transactions.begin(
                request.transactional_id, request.transaction_timeout_ms, expected
            )
    except (KafkaError, StorageError) as error:
        code = answered_code(error, context, fenced_since=FENCED_SINCE_VERSION)
        return InitProducerIdResponse(error_code=code, producer_id=NONE, producer_epoch=NONE)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)


def _check_rights(request: InitProducerIdRequest, context: Context) -> None:
    """Whoever may write to some topic may be idempotent (KIP-679)."""
    if request.transactional_id is not None:
        name = request.transactional_id
        context.require(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
    elif not (
        context.may_on_any(AclOperation.WRITE, ResourceType.TOPIC)
        or context.may(AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME)
    ):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _expected(request: InitProducerIdRequest) -> tuple[int, int] | None:
    """The id and epoch that the producer had; None when it is new."""
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty")
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Producer id and epoch must both be given")
    return None if request.producer_id == NONE else (request.producer_id, request.producer_epoch)
