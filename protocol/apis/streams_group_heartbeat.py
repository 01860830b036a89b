"""StreamsGroupHeartbeat 0: join, stay in, or leave a streams group (KIP-1071).

What is null did not change since the member's last heartbeat. A topology comes with a join.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, Int64, String, UInt16

JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH = 0, -1, -2


@message
class StreamsKeyValue:
    """A name and its value: of a topic's setting, or of a client's tag."""

    key: str = field(String)
    value: str = field(String)


@message
class StreamsTopicInfo:
    """An internal topic; 0 partitions: as many as what feeds it, 0 replicas: the default."""

    name: str = field(String)
    partitions: int = field(Int32)
    replication_factor: int = field(Int16)
    topic_configs: list[StreamsKeyValue] = field(Array(StreamsKeyValue))


@message
class StreamsCopartitionGroup:
    """Topics that need as many partitions each; numbers into the lists of the subtopology."""

    source_topics: list[int] = field(Array(Int16))
    source_topic_regex: list[int] = field(Array(Int16))
    repartition_source_topics: list[int] = field(Array(Int16))


@message
class StreamsSubtopology:
    """A part of an application whose tasks run by themselves."""

    subtopology_id: str = field(String)
    source_topics: list[str] = field(Array(String))
    source_topic_regex: list[str] = field(Array(String))
    state_changelog_topics: list[StreamsTopicInfo] = field(Array(StreamsTopicInfo))
    repartition_sink_topics: list[str] = field(Array(String))
    repartition_source_topics: list[StreamsTopicInfo] = field(Array(StreamsTopicInfo))
    copartition_groups: list[StreamsCopartitionGroup] = field(Array(StreamsCopartitionGroup))


@message
class StreamsTopology:
    """An application's parts; the epoch tells one version of it from the next."""

    epoch: int = field(Int32)
    subtopologies: list[StreamsSubtopology] = field(Array(StreamsSubtopology))


@message
class StreamsTaskIds:
    """Tasks of one subtopology, by their partitions."""

    subtopology_id: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message
class StreamsEndpoint:
    """Address at which an instance answers queries."""

    host: str = field(String)
    port: int = field(UInt16)


@message
class StreamsTaskOffset:
    """Sum of the changelog offsets of a task."""

    subtopology_id: str = field(String)
    partition: int = field(Int32)
    offset: int = field(Int64)


@message(flexible_from=0)
class StreamsGroupHeartbeatRequest:
    """Epoch 0 joins, -1 leaves; the member makes its id."""

    group_id: str = field(String)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    endpoint_information_epoch: int = field(Int32)
    instance_id: str | None = field(String, nullable=True, default=None)
    rack_id: str | None = field(String, nullable=True, default=None)
    rebalance_timeout_ms: int = field(Int32, default=-1)
    topology: StreamsTopology | None = field(StreamsTopology, nullable=True, default=None)
    active_tasks: list[StreamsTaskIds] | None = field(
        Array(StreamsTaskIds), nullable=True, default=None
    )
    standby_tasks: list[StreamsTaskIds] | None = field(
        Array(StreamsTaskIds), nullable=True, default=None
    )
    warmup_tasks: list[StreamsTaskIds] | None = field(
        Array(StreamsTaskIds), nullable=True, default=None
    )
    process_id: str | None = field(String, nullable=True, default=None)
    user_endpoint: StreamsEndpoint | None = field(StreamsEndpoint, nullable=True, default=None)
    client_tags: list[StreamsKeyValue] | None = field(
        Array(StreamsKeyValue), nullable=True, default=None
    )
    task_offsets: list[StreamsTaskOffset] | None = field(
        Array(StreamsTaskOffset), nullable=True, default=None
    )
    task_end_offsets: list[StreamsTaskOffset] | None = field(
        Array(StreamsTaskOffset), nullable=True, default=None
    )
    shutdown_application: bool = field(Boolean)


@message
class StreamsStatus:
    """A state of the group that its members have to know."""

    status_code: int = field(Int8)
    status_detail: str = field(String)


@message
class StreamsTopicPartitions:
    """Partitions of one topic."""

    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message
class StreamsEndpointPartitions:
    """Partitions whose state an instance has, to be asked for at its address."""

    user_endpoint: StreamsEndpoint = field(StreamsEndpoint)
    active_partitions: list[StreamsTopicPartitions] = field(Array(StreamsTopicPartitions))
    standby_partitions: list[StreamsTopicPartitions] = field(Array(StreamsTopicPartitions))


@message(flexible_from=0)
class StreamsGroupHeartbeatResponse:
    """The member's epoch; the tasks on a join and when they changed."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    heartbeat_interval_ms: int = field(Int32)
    acceptable_recovery_lag: int = field(Int32)
    task_offset_interval_ms: int = field(Int32)
    status: list[StreamsStatus] | None = field(Array(StreamsStatus), nullable=True)
    active_tasks: list[StreamsTaskIds] | None = field(
        Array(StreamsTaskIds), nullable=True, default=None
    )
    standby_tasks: list[StreamsTaskIds] | None = field(
        Array(StreamsTaskIds), nullable=True, default=None
    )
    warmup_tasks: list[StreamsTaskIds] | None = field(
        Array(StreamsTaskIds), nullable=True, default=None
    )
    endpoint_information_epoch: int = field(Int32)
    partitions_by_user_endpoint: list[StreamsEndpointPartitions] | None = field(
        Array(StreamsEndpointPartitions), nullable=True, default=None
    )


API = Api(
    88, "StreamsGroupHeartbeat", 0, 0, StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
)
