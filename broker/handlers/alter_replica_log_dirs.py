"""AlterReplicaLogDirs: a broker has one directory, so a replica is there already, or cannot go.

As a Kafka with one log directory answers: its own is where the partition is, and any other one is
LOG_DIR_NOT_FOUND (57), whatever the partition.
"""

from pathlib import Path
from typing import NamedTuple

from broker.runtime.lanes import DiskLane
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from protocol.errors import ErrorCode


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    probes: BrokerProbes
    lane: DiskLane


Context = RequestContext[Services]


def handle(request: AlterReplicaLogDirsRequest, context: Context) -> AlterReplicaLogDirsResponse:
    """One result a partition; of one that is named twice, that of the last directory."""
    is_allowed = context.may(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    here = str(Path(context.services.lane.log_dir).absolute())
    found: dict[str, dict[int, int]] = {}
    for each in request.dirs:
        for topic in each.topics:
            results = found.setdefault(topic.name, {})
            for index in topic.partitions:
                code = _code(topic.name, index, context, is_here=each.path == here)
                results[index] = code if is_allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return AlterReplicaLogDirsResponse(
        results=[_result(name, codes, context) for name, codes in found.items()]
    )


def _code(topic: str, index: int, context: Context, *, is_here: bool) -> ErrorCode:
    if not is_here:
        return ErrorCode.LOG_DIR_NOT_FOUND
    is_known = context.services.topics.image.partition(topic, index) is not None
    return ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _result(name: str, codes: dict[int, int], context: Context) -> AlterReplicaLogDirTopicResult:
    for code in codes.values():
        if code != ErrorCode.NONE:
            context.count_error(code)
    return AlterReplicaLogDirTopicResult(
        topic_name=name,
        partitions=[
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
            for index, code in codes.items()
        ],
    )
