"""StreamsGroupHeartbeat: a member of a streams group joins, lives or leaves (KIP-1071)."""

from functools import partial
from typing import NamedTuple

from broker.groups.classic.group import Group, GroupState
from broker.groups.coordinator import GroupCoordinator
from broker.groups.streams.endpoints import EndpointPartitions, Partitions
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.groups import StreamsOutcome
from broker.groups.streams.heartbeat import (
    GroupStatus,
    StreamsHeard,
    StreamsHeartbeat,
    check,
    check_features,
    owned_tasks,
    topic_names,
)
from broker.groups.streams.status import Status
from broker.groups.streams.tasks import DatedTasks, Tasks
from broker.groups.streams.topology import Topology, stored_topology
from broker.quotas.service import Quotas
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.names import INTERNAL_TOPICS, check_name
from config.store import ConfigStore
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.streams_group_heartbeat import (
    StreamsEndpoint,
    StreamsEndpointPartitions,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsStatus,
    StreamsTaskIds,
    StreamsTopicPartitions,
    StreamsTopology,
)
from protocol.errors import ErrorCode, KafkaError

Answer = StreamsGroupHeartbeatResponse | Deferred[StreamsGroupHeartbeatResponse]


class Services(NamedTuple):
    """The services that the answer is made with."""

    config: ConfigStore
    groups: GroupCoordinator
    probes: BrokerProbes
    quotas: Quotas


Context = RequestContext[Services]


def handle(request: StreamsGroupHeartbeatRequest, context: Context) -> Answer:
    """The member's epoch, and its tasks when they changed; answered when that is durable."""
    try:
        context.require(AclOperation.READ, ResourceType.GROUP, request.group_id)
        if request.topology is not None:
            _check_topics(request.topology, context)
        check_features(request)
        check(request)
        heard, written = _heard(_beat(request, context), context)
    except KafkaError as error:
        return _refusal(context, error)
    respond = partial(_respond, context, request.group_id, heard)
    if written is None:
        return respond()
    return after(written, lambda _: respond(), partial(_refusal, context))


def _check_topics(topology: StreamsTopology, context: Context) -> None:
    """STREAMS_INVALID_TOPOLOGY (130) for names that cannot be; TOPIC_AUTHORIZATION_FAILED (29)."""
    names = topic_names(topology)
    own = [name for name in names if name in INTERNAL_TOPICS]
    if own:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(own)} in a Kafka Streams topology is "
            "prohibited.",
        )
    wrong = [name for name in names if not _is_name(name)]
    if wrong:
        text = f"Topic names {','.join(wrong)} are not valid topic names."
        raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    for name in names:
        if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _is_name(name: str) -> bool:
    try:
        check_name(name)
    except KafkaError:
        return False
    return True


def _heard(beat: StreamsHeartbeat, context: Context) -> StreamsOutcome:
    groups = context.services.groups
    groups.check_loaded(beat.group_id)
    if not beat.joins:
        if beat.group_id not in groups.groups and not beat.leaves:
            text = f"Streams group {beat.group_id} not found."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        group, streams = groups.require_streams(beat.group_id)
        _check_serves(group)
        if beat.leaves:
            return groups.streams.leave(streams, beat)
        _check_words(streams, beat, context)
        return groups.streams.heartbeat(streams, beat)
    group = groups.find_or_make(beat.group_id)
    try:
        _check_serves(group)
        streams, _ = groups.streams.streams_of(group)
        _check_words(streams, beat, context)
        return groups.streams.join(group, beat)
    except KafkaError:
        groups.drop_unused(group)
        raise


def _check_words(streams: StreamsGroup, beat: StreamsHeartbeat, context: Context) -> None:
    """Reserves room in memory, and in a record, for what the member says of itself."""
    if not beat.has_words:
        return
    known = streams.members.get(beat.member_id)
    growth = beat.size_bytes - (0 if known is None else known.size_bytes)
    if streams.topology is None and beat.topology is not None:
        growth += beat.topology.size_bytes
    context.services.groups.room.check_subscription(growth, beat.stored_bytes)


def _check_serves(group: Group) -> None:
    if group.state is GroupState.DEAD:  # the broker stops
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _beat(request: StreamsGroupHeartbeatRequest, context: Context) -> StreamsHeartbeat:
    topology, endpoint, tags = request.topology, request.user_endpoint, request.client_tags
    return StreamsHeartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.endpoint_information_epoch,
        request.rack_id,
        request.rebalance_timeout_ms,
        None if topology is None else Topology(stored_topology(topology)),
        owned_tasks(request),
        request.process_id,
        None if endpoint is None else (endpoint.host, endpoint.port),
        None if tags is None else {each.key: each.value for each in tags},
        request.shutdown_application,
        context.client_id,
        f"/{context.client_host}",
    )


# --- answers ---


def _respond(context: Context, group_id: str, heard: StreamsHeard) -> StreamsGroupHeartbeatResponse:
    interval_ms = context.services.config.group_config(group_id).streams_heartbeat_interval_ms
    statuses, tasks = _statuses(heard, context, 2 * interval_ms), heard.tasks
    return StreamsGroupHeartbeatResponse(
        member_id=heard.member_id,
        member_epoch=heard.epoch,
        heartbeat_interval_ms=0 if heard.is_over else interval_ms,
        status=[
            StreamsStatus(status_code=each.status, status_detail=each.text) for each in statuses
        ],
        active_tasks=None if tasks is None else _task_ids(tasks.active),
        standby_tasks=None if tasks is None else _task_ids(tasks.standby),
        warmup_tasks=None if tasks is None else _task_ids(tasks.warmup),
        endpoint_information_epoch=heard.endpoint_epoch,
        partitions_by_user_endpoint=None
        if heard.endpoints is None
        else [_endpoint(each) for each in heard.endpoints],
    )


def _statuses(heard: StreamsHeard, context: Context, retry_ms: int) -> list[GroupStatus]:
    """The statuses; missing topics are made meanwhile, if the client may make them."""
    if not heard.missing:
        return list(heard.statuses)
    more = _refused_topics(heard, context)
    if not more:
        allowance = context.services.quotas.allowance(context, strict=True)
        internal = context.services.groups.internal_topics
        internal.make(heard.missing, allowance.take, retry_ms)
        errors = internal.errors_of(heard.missing)
        more = f"; Creation failed: {errors}." if errors else ""
    return [
        each._replace(text=each.text + more)
        if each.status is Status.MISSING_INTERNAL_TOPICS
        else each
        for each in heard.statuses
    ]


def _refused_topics(heard: StreamsHeard, context: Context) -> str:
    if context.sees(AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        return ""
    refused = [
        name
        for name in heard.missing
        if not context.may(AclOperation.CREATE, ResourceType.TOPIC, name)
    ]
    return f"; Unauthorized to CREATE on topics {', '.join(refused)}." if refused else ""


def _task_ids(tasks: Tasks | DatedTasks) -> list[StreamsTaskIds]:
    return [
        StreamsTaskIds(subtopology_id=name, partitions=sorted(tasks[name]))
        for name in sorted(tasks)
    ]


def _endpoint(each: EndpointPartitions) -> StreamsEndpointPartitions:
    host, port = each.endpoint
    return StreamsEndpointPartitions(
        user_endpoint=StreamsEndpoint(host=host, port=port),
        active_partitions=_partitions(each.active),
        standby_partitions=_partitions(each.standby),
    )


def _partitions(by_topic: Partitions) -> list[StreamsTopicPartitions]:
    return [
        StreamsTopicPartitions(topic=name, partitions=indexes) for name, indexes in by_topic.items()
    ]


def _refusal(context: Context, error: KafkaError) -> StreamsGroupHeartbeatResponse:
    context.count_error(error.code)
    return StreamsGroupHeartbeatResponse(
        error_code=error.code, error_message=error.message, status=[]
    )
