"""EndTxn: a transaction is committed or aborted; answered when that is durable."""

from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.requests import answered_code
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import VERSION_2
from protocol.acls import AclOperation, ResourceType
from protocol.apis.end_txn import EndTxnRequest, EndTxnResponse
from protocol.errors import KafkaError
from storage.errors import StorageError

FENCED_SINCE_VERSION = 2
NEW_EPOCH_SINCE_VERSION = 5


class Services(NamedTuple):
    """The services that the answer is made with."""

    transactions: TransactionCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]


async def handle(request: EndTxnRequest, context: Context) -> EndTxnResponse:
    """The id and epoch to go on with, from version 5 on a new one."""
    claim = ProducerClaim(request.transactional_id, request.producer_id, request.producer_epoch)
    version = VERSION_2 if context.api_version >= NEW_EPOCH_SINCE_VERSION else 0
    try:
        name = request.transactional_id
        context.require(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
        producer_id, epoch = await context.services.transactions.end(
            claim, commit=request.committed, version=version
        )
    except (KafkaError, StorageError) as error:
        code = answered_code(error, context, fenced_since=FENCED_SINCE_VERSION)
        return EndTxnResponse(error_code=code)
    return EndTxnResponse(producer_id=producer_id, producer_epoch=epoch)
