"""WriteTxnMarkers: ends transactions in partitions whatever their coordinator says.

It is how a tool ends a transaction that nobody else ends: `kafka-transactions.sh abort`. It tries
again after NOT_LEADER_OR_FOLLOWER, which it hears while the coordinator of groups reads the
partition: offsets of the transaction would wait there without end.
"""

from collections.abc import Mapping
from typing import NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.names import CONSUMER_OFFSETS
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.markers import Markers
from broker.transactions.participants import Ending
from broker.transactions.transaction import Place
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.errors import ErrorCode


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    groups: GroupCoordinator
    markers: Markers
    probes: BrokerProbes


Context = RequestContext[Services]


async def handle(request: WriteTxnMarkersRequest, context: Context) -> WriteTxnMarkersResponse:
    """One code for each partition, durable when it is 0."""
    if not _may_end_others(context):
        return _refused(request, context)
    return WriteTxnMarkersResponse(
        markers=[await _end(marker, context) for marker in request.markers]
    )


def _may_end_others(context: Context) -> bool:
    return context.sees(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME) or context.may(
        AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
    )


def _refused(request: WriteTxnMarkersRequest, context: Context) -> WriteTxnMarkersResponse:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    context.count_error(code)
    return WriteTxnMarkersResponse(
        markers=[_result(each, dict.fromkeys(_places(each), code)) for each in request.markers]
    )


def _places(marker: WritableTxnMarker) -> list[Place]:
    return [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


async def _end(marker: WritableTxnMarker, context: Context) -> WritableTxnMarkerResult:
    ending = Ending(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
    )
    places = _places(marker)
    codes = {place: _refusal(place, context) for place in places}
    known = [place for place, code in codes.items() if not code]
    failed = await context.services.markers.write(ending, known)
    codes.update({place: error.code for place, error in failed.items()})
    for code in codes.values():
        context.count_error(code)
    return _result(marker, codes)


def _result(marker: WritableTxnMarker, codes: Mapping[Place, int]) -> WritableTxnMarkerResult:
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


def _refusal(place: Place, context: Context) -> int:
    topic, index = place
    if context.services.topics.image.partition(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic == CONSUMER_OFFSETS and context.services.groups.loading.may_miss(index):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE
