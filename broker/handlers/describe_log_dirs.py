"""DescribeLogDirs: the data directory, what each partition takes in it, and what room is left."""

import asyncio
from pathlib import Path
from typing import NamedTuple

from broker.runtime.lanes import DiskLane
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.metadata_image import MetadataImage
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from protocol.errors import ErrorCode
from storage.env import FileSystem
from storage.errors import StorageError


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    probes: BrokerProbes
    fs: FileSystem
    lane: DiskLane


Context = RequestContext[Services]

ERROR_SINCE_VERSION = 3


async def handle(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    """All partitions for a null list, else those asked for; unknown ones are left out."""
    services = context.services
    if not context.may(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        context.count_error(code)
        return DescribeLogDirsResponse(
            error_code=code if context.api_version >= ERROR_SINCE_VERSION else ErrorCode.NONE
        )
    result = DescribeLogDirsResult(log_dir=_absolute(services.lane.log_dir))
    try:
        free: asyncio.Future[int] = services.lane.run(services.fs.free_bytes, services.lane.log_dir)
        result.usable_bytes = await free
    except StorageError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        context.count_error(result.error_code)
    result.topics = _topics(_wanted(request, services.topics.image), services.topics.image)
    return DescribeLogDirsResponse(results=[result])


def _absolute(log_dir: str) -> str:
    return str(Path(log_dir).absolute())


def _wanted(request: DescribeLogDirsRequest, image: MetadataImage) -> dict[str, set[int]]:
    if request.topics is None:
        return {name: set(range(len(topic.partitions))) for name, topic in image.topics.items()}
    wanted: dict[str, set[int]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.topic, set()).update(topic.partitions)
    return wanted


def _topics(wanted: dict[str, set[int]], image: MetadataImage) -> list[DescribeLogDirsTopic]:
    topics = []
    for name, indexes in wanted.items():
        partitions = [
            DescribeLogDirsPartition(
                partition_index=index, partition_size=partition.log.snapshot.local_bytes
            )
            for index in sorted(indexes)
            if (partition := image.partition(name, index)) is not None
        ]
        if partitions:
            topics.append(DescribeLogDirsTopic(name=name, partitions=partitions))
    return topics
