"""AddOffsetsToTxn: the partition that remembers a group's offsets joins the transaction."""

from broker.groups.requests import check_group_id
from broker.requests.services import HandlerContext
from broker.topics.names import CONSUMER_OFFSETS
from broker.transactions.requests import told
from broker.transactions.rules import ProducerClaim
from protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.errors import KafkaError

FENCED_SINCE_VERSION = 2


async def handle(
    request: AddOffsetsToTxnRequest, context: HandlerContext
) -> AddOffsetsToTxnResponse:
    """Durable when the code is 0."""
    groups = context.broker.groups
    claim = ProducerClaim(request.transactional_id, request.producer_id, request.producer_epoch)
    try:
        check_group_id(request.group_id)
        await groups.topic.make()
        place = CONSUMER_OFFSETS, groups.topic.index_of(request.group_id)
        await context.broker.transactions.join(claim, [place])
    except KafkaError as error:
        code = told(error, context, fenced_since=FENCED_SINCE_VERSION)
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse()
