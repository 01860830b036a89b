"""StreamsGroupDescribe 0: streams groups, their topologies and their members (KIP-1071)."""

from protocol.api import Api
from protocol.apis.describe_groups import UNKNOWN_OPERATIONS
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int16, Int32, Int64, String, UInt16


@message(flexible_from=0)
class StreamsGroupDescribeRequest:
    """The groups to describe."""

    group_ids: list[str] = field(Array(String))
    include_authorized_operations: bool = field(Boolean)


@message
class DescribedStreamsKeyValue:
    """A name and its value: of a topic's setting, or of a client's tag."""

    key: str = field(String)
    value: str = field(String)


@message
class DescribedStreamsTopic:
    """An internal topic."""

    name: str = field(String)
    partitions: int = field(Int32)
    replication_factor: int = field(Int16)
    topic_configs: list[DescribedStreamsKeyValue] = field(Array(DescribedStreamsKeyValue))


@message
class DescribedSubtopology:
    """A part of an application whose tasks run by themselves."""

    subtopology_id: str = field(String)
    source_topics: list[str] = field(Array(String))
    repartition_sink_topics: list[str] = field(Array(String))
    state_changelog_topics: list[DescribedStreamsTopic] = field(Array(DescribedStreamsTopic))
    repartition_source_topics: list[DescribedStreamsTopic] = field(Array(DescribedStreamsTopic))


@message
class DescribedTopology:
    """The application's parts."""

    epoch: int = field(Int32)
    subtopologies: list[DescribedSubtopology] | None = field(
        Array(DescribedSubtopology), nullable=True, default=None
    )


@message
class DescribedStreamsEndpoint:
    """Address at which an instance answers queries."""

    host: str = field(String)
    port: int = field(UInt16)


@message
class DescribedTaskOffset:
    """Sum of the changelog offsets of a task."""

    subtopology_id: str = field(String)
    partition: int = field(Int32)
    offset: int = field(Int64)


@message
class DescribedTaskIds:
    """Tasks of one subtopology, by their partitions."""

    subtopology_id: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message
class DescribedTasks:
    """Tasks of a member."""

    active_tasks: list[DescribedTaskIds] = field(Array(DescribedTaskIds))
    standby_tasks: list[DescribedTaskIds] = field(Array(DescribedTaskIds))
    warmup_tasks: list[DescribedTaskIds] = field(Array(DescribedTaskIds))


@message
class StreamsGroupDescribeMember:
    """A member, what it has and what it is to have."""

    member_id: str = field(String)
    member_epoch: int = field(Int32)
    instance_id: str | None = field(String, nullable=True, default=None)
    rack_id: str | None = field(String, nullable=True, default=None)
    client_id: str = field(String)
    client_host: str = field(String)
    topology_epoch: int = field(Int32)
    process_id: str = field(String)
    user_endpoint: DescribedStreamsEndpoint | None = field(
        DescribedStreamsEndpoint, nullable=True, default=None
    )
    client_tags: list[DescribedStreamsKeyValue] = field(Array(DescribedStreamsKeyValue))
    task_offsets: list[DescribedTaskOffset] = field(Array(DescribedTaskOffset))
    task_end_offsets: list[DescribedTaskOffset] = field(Array(DescribedTaskOffset))
    assignment: DescribedTasks = field(DescribedTasks)
    target_assignment: DescribedTasks = field(DescribedTasks)
    is_classic: bool = field(Boolean)


@message
class StreamsGroupDescribeGroup:
    """A group; an error instead of the rest where it cannot be described."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    group_id: str = field(String)
    group_state: str = field(String)
    group_epoch: int = field(Int32)
    assignment_epoch: int = field(Int32)
    topology: DescribedTopology | None = field(DescribedTopology, nullable=True, default=None)
    members: list[StreamsGroupDescribeMember] = field(Array(StreamsGroupDescribeMember))
    authorized_operations: int = field(Int32, default=UNKNOWN_OPERATIONS)


@message(flexible_from=0)
class StreamsGroupDescribeResponse:
    """The groups, as they were asked for."""

    throttle_time_ms: int = field(Int32)
    groups: list[StreamsGroupDescribeGroup] = field(Array(StreamsGroupDescribeGroup))


API = Api(
    89, "StreamsGroupDescribe", 0, 0, StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
)
