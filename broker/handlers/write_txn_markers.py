"""WriteTxnMarkers: ends transactions in partitions whatever their coordinator says.

It is how a tool ends a transaction that nobody else ends: `kafka-transactions.sh abort`.
"""

from broker.requests.services import HandlerContext
from broker.transactions.markers import Ending
from broker.transactions.transaction import Place
from protocol.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.errors import ErrorCode


async def handle(
    request: WriteTxnMarkersRequest, context: HandlerContext
) -> WriteTxnMarkersResponse:
    """One code for each partition, durable when it is 0."""
    return WriteTxnMarkersResponse(
        markers=[await _end(marker, context) for marker in request.markers]
    )


async def _end(marker: WritableTxnMarker, context: HandlerContext) -> WritableTxnMarkerResult:
    ending = Ending(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
    )
    places = [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
    codes = {place: _unknown(place, context) for place in places}
    known = [place for place, code in codes.items() if not code]
    failed = await context.broker.transactions.steps.markers.write(ending, known)
    codes.update({place: error.code for place, error in failed.items()})
    for code in codes.values():
        context.count_error(code)
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=codes[topic.name, index]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


def _unknown(place: Place, context: HandlerContext) -> int:
    is_there = context.broker.catalog.image.partition(*place) is not None
    return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
