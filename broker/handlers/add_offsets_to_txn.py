"""AddOffsetsToTxn: the partition that remembers a group's offsets joins the transaction."""

from typing import NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.groups.requests import check_group_id
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.names import CONSUMER_OFFSETS
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.requests import answered_code
from broker.transactions.rules import ProducerClaim
from protocol.acls import AclOperation, ResourceType
from protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.errors import KafkaError

FENCED_SINCE_VERSION = 2


class Services(NamedTuple):
    """The services that the answer is made with."""

    groups: GroupCoordinator
    transactions: TransactionCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]


async def handle(request: AddOffsetsToTxnRequest, context: Context) -> AddOffsetsToTxnResponse:
    """Durable when the code is 0."""
    groups = context.services.groups
    claim = ProducerClaim(request.transactional_id, request.producer_id, request.producer_epoch)
    try:
        name = request.transactional_id
        context.require(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
        context.require(AclOperation.READ, ResourceType.GROUP, request.group_id)
        check_group_id(request.group_id)
        await groups.topic.make()
        place = CONSUMER_OFFSETS, groups.topic.index_of(request.group_id)
        await context.services.transactions.join(claim, [place])
    except KafkaError as error:
        code = answered_code(error, context, fenced_since=FENCED_SINCE_VERSION)
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse()
