"""StreamsGroupDescribe: streams groups, their topologies, their members and the tasks of these."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.groups.records.streams import StoredSubtopology
from broker.groups.streams.configuring import ConfiguredSubtopology, InternalTopic
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.tasks import NO_TASKS, DatedTasks, HeldTasks, Tasks, TaskSet
from broker.groups.streams.topology import Topology
from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.described_groups import described_groups
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.acls import AclOperation, ResourceType
from protocol.apis.streams_group_describe import (
    DescribedStreamsEndpoint,
    DescribedStreamsKeyValue,
    DescribedStreamsTopic,
    DescribedSubtopology,
    DescribedTaskIds,
    DescribedTasks,
    DescribedTopology,
    StreamsGroupDescribeGroup,
    StreamsGroupDescribeMember,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from protocol.errors import ErrorCode, KafkaError

HIDDEN_TOPIC = "The described group uses topics that the client is not authorized to describe."


class Services(NamedTuple):
    """The services that the answer is made with."""

    groups: GroupCoordinator
    probes: BrokerProbes
    answers: Answers


Context = RequestContext[Services]


def handle(
    request: StreamsGroupDescribeRequest, context: Context
) -> StreamsGroupDescribeResponse | Deferred[StreamsGroupDescribeResponse]:
    """GROUP_ID_NOT_FOUND (69) for a group that does not exist, or is of another type.

    A group that is named twice is described once.
    """
    context.asks(AclOperation.DESCRIBE, ResourceType.GROUP)
    return context.services.answers.make(
        partial(_answers, request, context),
        lambda groups: StreamsGroupDescribeResponse(groups=groups),
    )


def _answers(
    request: StreamsGroupDescribeRequest, context: Context, room: AnswerRoom
) -> Iterator[StreamsGroupDescribeGroup | None]:
    return described_groups(request, context, room, _described, StreamsGroupDescribeGroup)


def _described(
    group_id: str, context: Context, room: AnswerRoom
) -> Generator[None, None, StreamsGroupDescribeGroup]:
    _, streams = context.services.groups.require_streams(group_id)
    topology = streams.topology
    if topology is not None:
        _check_topics(topology, context)
        room.take(len(topology.required_topics), 2 * topology.size_bytes)
    members = []
    for each in list(streams.members.values()):
        target = streams.targets.get(each.member_id, NO_TASKS)
        room.take(1, 2 * each.size_bytes + target.size_bytes)
        members.append(_member(each, target))
        yield
    return StreamsGroupDescribeGroup(
        group_id=group_id,
        group_state=streams.state.value,
        group_epoch=streams.epoch,
        assignment_epoch=streams.target_epoch,
        topology=None if topology is None else _topology(streams, topology),
        members=members,
    )


def _check_topics(topology: Topology, context: Context) -> None:
    """The client may hear of every topic that the application uses."""
    sinks = [
        name for each in topology.subtopologies.values() for name in each.repartition_sink_topics
    ]
    for name in topology.required_topics.union(sinks):
        if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPIC)


def _topology(streams: StreamsGroup, topology: Topology) -> DescribedTopology:
    """The topology with its numbers, once its topics are there; before as members described it."""
    configured = streams.configured
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        parts = [_configured(each) for each in configured.subtopologies.values()]
    else:
        parts = [_said(topology.subtopologies[name]) for name in sorted(topology.subtopologies)]
    return DescribedTopology(epoch=topology.epoch, subtopologies=parts)


def _configured(part: ConfiguredSubtopology) -> DescribedSubtopology:
    return _subtopology(part.said, part.repartition_sources, part.changelogs)


def _said(part: StoredSubtopology) -> DescribedSubtopology:
    repartition, changelogs = (
        [
            InternalTopic(
                each.name,
                each.partitions,
                each.replication_factor,
                {setting.key: setting.value for setting in each.topic_configs},
            )
            for each in topics
        ]
        for topics in (part.repartition_source_topics, part.state_changelog_topics)
    )
    return _subtopology(part, repartition, changelogs)


def _subtopology(
    part: StoredSubtopology,
    repartition: Iterable[InternalTopic],
    changelogs: Iterable[InternalTopic],
) -> DescribedSubtopology:
    return DescribedSubtopology(
        subtopology_id=part.subtopology_id,
        source_topics=sorted(part.source_topics),
        repartition_sink_topics=sorted(part.repartition_sink_topics),
        state_changelog_topics=_topics(changelogs),
        repartition_source_topics=_topics(repartition),
    )


def _topics(topics: Iterable[InternalTopic]) -> list[DescribedStreamsTopic]:
    return [
        DescribedStreamsTopic(
            name=each.name,
            partitions=each.partition_count,
            replication_factor=each.replication_factor,
            topic_configs=_pairs(each.settings),
        )
        for each in sorted(topics, key=lambda topic: topic.name)
    ]


def _pairs(values: Mapping[str, str]) -> list[DescribedStreamsKeyValue]:
    return [DescribedStreamsKeyValue(key=key, value=value) for key, value in values.items()]


def _member(member: StreamsMember, target: TaskSet) -> StreamsGroupDescribeMember:
    endpoint = member.endpoint
    return StreamsGroupDescribeMember(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else DescribedStreamsEndpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=_pairs(member.tags),
        assignment=_tasks(member.held),
        target_assignment=_tasks(target),
    )


def _tasks(tasks: TaskSet | HeldTasks) -> DescribedTasks:
    return DescribedTasks(
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )


def _task_ids(tasks: Tasks | DatedTasks) -> list[DescribedTaskIds]:
    return [
        DescribedTaskIds(subtopology_id=name, partitions=sorted(tasks[name]))
        for name in sorted(tasks)
    ]
