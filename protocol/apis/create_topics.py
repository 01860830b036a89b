"""CreateTopics 0-7: make topics, or say whether it could be done.

0. 1: validation only; error texts. 2: throttle time. 3: throttling after the answer. 4: -1 asks for
the broker's number of partitions and replicas (KIP-464). 5: flexible; the answer tells the settings
(KIP-525). 6: the answer may hold THROTTLING_QUOTA_EXCEEDED. 7: topic ids.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, String, Uuid


@message
class CreatableReplicaAssignment:
    """Replicas of one partition."""

    partition_index: int = field(Int32)
    broker_ids: list[int] = field(Array(Int32))


@message
class CreatableTopicConfig:
    """One setting of a topic to be."""

    name: str = field(String)
    value: str | None = field(String, nullable=True)


@message
class CreatableTopic:
    """A topic to make; partitions and replicas are -1 for the default, or with assignments."""

    name: str = field(String)
    num_partitions: int = field(Int32)
    replication_factor: int = field(Int16)
    assignments: list[CreatableReplicaAssignment] = field(Array(CreatableReplicaAssignment))
    configs: list[CreatableTopicConfig] = field(Array(CreatableTopicConfig))


@message(flexible_from=5)
class CreateTopicsRequest:
    """The topics to make."""

    topics: list[CreatableTopic] = field(Array(CreatableTopic))
    timeout_ms: int = field(Int32, default=60_000)
    validate_only: bool = field(Boolean, since=1)


@message
class CreatableTopicConfigs:
    """One setting of a new topic."""

    name: str = field(String, since=5)
    value: str | None = field(String, since=5, nullable=True)
    read_only: bool = field(Boolean, since=5)
    config_source: int = field(Int8, since=5, default=-1)
    is_sensitive: bool = field(Boolean, since=5)


@message
class CreatableTopicResult:
    """Result of one topic."""

    name: str = field(String)
    topic_id: UUID = field(Uuid, since=7)
    error_code: int = field(Int16)
    error_message: str | None = field(String, since=1, nullable=True)
    topic_config_error_code: int = field(Int16, since=5, tag=0)
    num_partitions: int = field(Int32, since=5, default=-1)
    replication_factor: int = field(Int16, since=5, default=-1)
    configs: list[CreatableTopicConfigs] | None = field(
        Array(CreatableTopicConfigs), since=5, nullable=True
    )


@message(flexible_from=5)
class CreateTopicsResponse:
    """Result of each topic."""

    throttle_time_ms: int = field(Int32, since=2)
    topics: list[CreatableTopicResult] = field(Array(CreatableTopicResult))


API = Api(19, "CreateTopics", 0, 7, CreateTopicsRequest, CreateTopicsResponse)
