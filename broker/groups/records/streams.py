"""Records of streams groups (KIP-1071) in `__consumer_offsets`: Kafka 4.3's schemas.

A key begins with its kind (two bytes), a value with its version, which is 0. 17: the group's epoch.
19: a member's own statements. 20: the epoch of the target assignment. 21: a member's target.
22: what a member has. 23: the topology.
"""

from enum import IntEnum
from typing import Any, NamedTuple

from broker.groups.records.assigned import framed_key, read_key, read_value
from broker.groups.records.consumer import TargetEpochValue
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, Int64, String, UInt16


class StreamsKind(IntEnum):
    """Kinds of records."""

    GROUP = 17
    MEMBER = 19
    TARGET_EPOCH = 20
    TARGET = 21
    CURRENT = 22
    TOPOLOGY = 23


@message
class StoredSetting:
    """A name and its value."""

    key: str = field(String)
    value: str = field(String)


@message(flexible_from=0)
class StreamsGroupValue:
    """The group's epoch, the topology that its topics were found valid for, the assignor's
    settings.
    """

    epoch: int = field(Int32)
    metadata_hash: int = field(Int64)
    validated_topology_epoch: int = field(Int32, tag=0, default=-1)
    last_assignment_configs: list[StoredSetting] | None = field(
        Array(StoredSetting), tag=1, nullable=True, default=None
    )


@message
class StoredEndpoint:
    """Address at which an instance answers queries."""

    host: str = field(String)
    port: int = field(UInt16)


@message(flexible_from=0)
class StreamsMemberValue:
    """A member's own statements."""

    instance_id: str | None = field(String, nullable=True)
    rack_id: str | None = field(String, nullable=True)
    client_id: str = field(String)
    client_host: str = field(String)
    rebalance_timeout_ms: int = field(Int32, default=-1)
    topology_epoch: int = field(Int32)
    process_id: str = field(String)
    user_endpoint: StoredEndpoint | None = field(StoredEndpoint, nullable=True, default=None)
    client_tags: list[StoredSetting] = field(Array(StoredSetting))


@message
class TargetTasks:
    """Tasks of one subtopology, by their partitions."""

    subtopology_id: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(flexible_from=0)
class StreamsTargetValue:
    """Tasks that a member is to run."""

    active_tasks: list[TargetTasks] = field(Array(TargetTasks))
    standby_tasks: list[TargetTasks] = field(Array(TargetTasks))
    warmup_tasks: list[TargetTasks] = field(Array(TargetTasks))


@message
class CurrentTasks:
    """Tasks of one subtopology; of active ones the epochs in which the member was given each."""

    subtopology_id: str = field(String)
    partitions: list[int] = field(Array(Int32))
    assignment_epochs: list[int] | None = field(Array(Int32), tag=0, nullable=True, default=None)


@message(flexible_from=0)
class StreamsCurrentValue:
    """Tasks that a member runs, and those that it has yet to give back."""

    member_epoch: int = field(Int32)
    previous_member_epoch: int = field(Int32)
    state: int = field(Int8)
    active_tasks: list[CurrentTasks] = field(Array(CurrentTasks))
    standby_tasks: list[CurrentTasks] = field(Array(CurrentTasks))
    warmup_tasks: list[CurrentTasks] = field(Array(CurrentTasks))
    active_tasks_pending_revocation: list[CurrentTasks] = field(Array(CurrentTasks))
    standby_tasks_pending_revocation: list[CurrentTasks] = field(Array(CurrentTasks))
    warmup_tasks_pending_revocation: list[CurrentTasks] = field(Array(CurrentTasks))


@message
class StoredTopic:
    """An internal topic; 0 partitions: as many as what feeds it, 0 replicas: the default."""

    name: str = field(String)
    partitions: int = field(Int32)
    replication_factor: int = field(Int16)
    topic_configs: list[StoredSetting] = field(Array(StoredSetting))


@message
class StoredCopartitionGroup:
    """Topics that need as many partitions each; numbers into the lists of the subtopology."""

    source_topics: list[int] = field(Array(Int16))
    source_topic_regex: list[int] = field(Array(Int16))
    repartition_source_topics: list[int] = field(Array(Int16))


@message
class StoredSubtopology:
    """A part of an application whose tasks run by themselves."""

    subtopology_id: str = field(String)
    source_topics: list[str] = field(Array(String))
    source_topic_regex: list[str] = field(Array(String))
    state_changelog_topics: list[StoredTopic] = field(Array(StoredTopic))
    repartition_sink_topics: list[str] = field(Array(String))
    repartition_source_topics: list[StoredTopic] = field(Array(StoredTopic))
    copartition_groups: list[StoredCopartitionGroup] = field(Array(StoredCopartitionGroup))


@message(flexible_from=0)
class TopologyValue:
    """The application's parts."""

    epoch: int = field(Int32)
    subtopologies: list[StoredSubtopology] = field(Array(StoredSubtopology))


VALUES: dict[StreamsKind, type[Any]] = {
    StreamsKind.GROUP: StreamsGroupValue,
    StreamsKind.MEMBER: StreamsMemberValue,
    StreamsKind.TARGET_EPOCH: TargetEpochValue,
    StreamsKind.TARGET: StreamsTargetValue,
    StreamsKind.CURRENT: StreamsCurrentValue,
    StreamsKind.TOPOLOGY: TopologyValue,
}
_OF_MEMBERS = {StreamsKind.MEMBER, StreamsKind.TARGET, StreamsKind.CURRENT}


class StreamsRow(NamedTuple):
    """One record; `member` is empty for one of the group, `value` None for what went."""

    kind: StreamsKind
    group: str
    member: str
    value: Any


def streams_key(kind: StreamsKind, group: str, member: str = "") -> bytes:
    """The key of a record."""
    return framed_key(kind, group, member if kind in _OF_MEMBERS else None)


def read_streams_row(kind: StreamsKind, key: bytes, value: bytes | None) -> StreamsRow:
    """Parses a record. DecodeError for a damaged one, or one of an unknown version."""
    group, member = read_key(key, has_part=kind in _OF_MEMBERS)
    read = None if value is None else read_value(VALUES[kind], value, "streams")
    return StreamsRow(kind, group, member, read)
