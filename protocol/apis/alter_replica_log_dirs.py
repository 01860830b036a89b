"""AlterReplicaLogDirs 1-2: moves replicas between directories of a broker (KIP-113).

2: flexible.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, String


@message
class AlterReplicaLogDirTopic:
    """Partitions of one topic."""

    name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message
class AlterReplicaLogDir:
    """A directory, by its absolute path, and what is to be there."""

    path: str = field(String)
    topics: list[AlterReplicaLogDirTopic] = field(Array(AlterReplicaLogDirTopic))


@message(flexible_from=2)
class AlterReplicaLogDirsRequest:
    """The moves."""

    dirs: list[AlterReplicaLogDir] = field(Array(AlterReplicaLogDir))


@message
class AlterReplicaLogDirPartitionResult:
    """Result of one partition."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@message
class AlterReplicaLogDirTopicResult:
    """Results of one topic."""

    topic_name: str = field(String)
    partitions: list[AlterReplicaLogDirPartitionResult] = field(
        Array(AlterReplicaLogDirPartitionResult)
    )


@message(flexible_from=2)
class AlterReplicaLogDirsResponse:
    """The results."""

    throttle_time_ms: int = field(Int32)
    results: list[AlterReplicaLogDirTopicResult] = field(Array(AlterReplicaLogDirTopicResult))


API = Api(34, "AlterReplicaLogDirs", 1, 2, AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse)
