"""DescribeQuorum: who keeps the metadata. Here each broker its own: it is the only voter.

There is no log of the metadata, so its end is 0, and nobody is behind it.
"""

from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.server.endpoints import AdvertisedEndpoints
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumListener,
    QuorumNode,
    QuorumPartitionData,
    QuorumTopic,
    QuorumTopicData,
    ReplicaState,
)
from protocol.errors import ErrorCode
from protocol.wire import ZERO_UUID
from storage.directory.log_manager import LogManager
from storage.env import Clock

TOPIC = "__cluster_metadata"
NOT_HERE = "This server does not host this topic-partition."


class Services(NamedTuple):
    """The services that the answer is made with."""

    clock: Clock
    logs: LogManager
    probes: BrokerProbes
    node_id: int
    endpoints: AdvertisedEndpoints


Context = RequestContext[Services]


def handle(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    """The one partition of the metadata; UNKNOWN_TOPIC_OR_PARTITION (3) for all else."""
    if not context.may(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        context.count_error(code)
        return DescribeQuorumResponse(error_code=code, error_message=code.description)
    asked = [
        (topic.topic_name, [p.partition_index for p in topic.partitions])
        for topic in request.topics
    ]
    if asked != [(TOPIC, [0])]:
        return _unknown(request, context)
    host, port = context.services.endpoints.of(context.peer)
    listener = QuorumListener(name=context.peer.listener_name, host=host, port=port)
    return DescribeQuorumResponse(
        topics=[QuorumTopicData(topic_name=TOPIC, partitions=[_partition(context.services)])],
        nodes=[QuorumNode(node_id=context.services.node_id, listeners=[listener])],
    )


def _named(topic: QuorumTopic) -> tuple[str, list[int]]:
    return topic.topic_name, [each.partition_index for each in topic.partitions]


def _partition(services: Services) -> QuorumPartitionData:
    now_ms = services.clock.now_ms()
    voter = ReplicaState(
        replica_id=services.node_id,
        replica_directory_id=services.logs.directory_id or ZERO_UUID,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return QuorumPartitionData(leader_id=services.node_id, current_voters=[voter])


def _unknown(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    context.count_error(code)
    return DescribeQuorumResponse(
        topics=[
            QuorumTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    QuorumPartitionData(
                        partition_index=each.partition_index,
                        error_code=code,
                        error_message=NOT_HERE,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
